// SPDX-License-Identifier: Apache-2.0
// The events of a process in an order in which they can have happened.
//
// A thread frees a block that another has just made, and the trace has the free first: the two read
// clocks that did not quite agree. So a free or a realloc of a block that is not there holds its
// thread back, with all that it did later, until another thread makes a block at that address. That
// has to happen soon, or the block is from before the recording. Every thread's own order stays as
// it was.

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <utility>

#include "wire/event.h"

namespace malloscope::replay {

class Untangler {
 public:
  // Ticks, of some 100 ns, that clocks may be apart.
  static constexpr uint64_t kWindow = 100;

  // Performs an event. False, and nothing has happened, if it is of a block that is not there;
  // unless it is to be done `anyway`.
  using Perform = std::function<bool(const wire::Event& event, bool anyway)>;
  explicit Untangler(Perform perform) : perform_(std::move(perform)) {}

  void add(const wire::Event& event) {
    if (held_.empty() && perform_(event, false)) [[likely]]
      return;
    add_slowly(event);
  }
  // Nothing comes that could help those who are held back.
  void flush();

  // How many were held back and then had their block.
  uint64_t put_right() const { return put_right_; }

 private:
  void add_slowly(const wire::Event& event);
  void release(uint32_t thread);

  Perform perform_;
  std::map<uint32_t, std::deque<wire::Event>> held_;  // By thread; the first is what it waits with.
  uint64_t put_right_ = 0;
};

}  // namespace malloscope::replay
