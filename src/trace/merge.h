// SPDX-License-Identifier: Apache-2.0
// The events of one epoch, from many threads, put into one order.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/event_stream.h"
#include "wire/decode.h"

namespace malloscope::trace {

class EpochMerger {
 public:
  explicit EpochMerger(Listener* listener) : listener_(listener) {}

  // A thread's events in time order; they must stay where they are until they were shown. Of events
  // of one tick those of the lowest `order` come first, if nothing else tells. `left`, if there is
  // one, counts the runs not yet shown.
  void add(std::span<const wire::Event> events, uint64_t order, uint32_t* left = nullptr);
  // `image` is to be told to have ended, after all events up to this tick.
  void add_end(uint64_t tick, const Image* image);

  // Shows everything before this tick to the listener; whatever is added later must not be earlier.
  void merge_before(uint64_t tick);
  // Shows the rest; empty again afterwards.
  void merge();

 private:
  struct Run {
    const wire::Event* next;
    const wire::Event* end;
    uint64_t order;
    uint32_t* left;
  };
  struct End {
    uint64_t tick;
    const Image* image;
  };

  static bool later(const Run& a, const Run& b);
  void put_back(const Run& run);
  Run take_earliest();
  void show(const wire::Event* first, const wire::Event* last);
  void show_tie(uint64_t tick);
  void show_disputed(uint64_t tick);
  void flush();

  Listener* listener_;
  std::vector<Run> runs_;  // A heap with the earliest run on top.
  std::vector<Run> tied_;
  std::vector<End> ends_;  // In order.
  size_t next_end_ = 0;
  std::vector<wire::Event> batch_;
};

}  // namespace malloscope::trace
