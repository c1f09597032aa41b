// SPDX-License-Identifier: Apache-2.0
// The events of one epoch, from many threads, put into one order.

#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "trace/event_stream.h"
#include "wire/decode.h"

namespace malloscope::trace {

class EpochMerger {
 public:
  explicit EpochMerger(Listener* listener) : listener_(listener) {}

  // A thread's events in time order; they must stay where they are until merge().
  void add(const wire::Event* first, const wire::Event* last) {
    if (first != last) runs_.push_back({first, last, runs_.size()});
  }
  // `ended` is to be told that the image ended, after all events up to this tick.
  void add_end(uint64_t tick, const Image* image) { ends_.push_back({tick, image}); }

  // Shows everything to the listener; empty again afterwards.
  void merge();

 private:
  struct Run {
    const wire::Event* next;
    const wire::Event* end;
    size_t order;
  };
  struct End {
    uint64_t tick;
    const Image* image;
  };

  void show(const wire::Event* first, const wire::Event* last);
  void show_tie(std::vector<Run>& tied, uint64_t tick);
  void show_disputed(std::vector<Run>& tied, uint64_t tick);
  void flush();

  Listener* listener_;
  std::vector<Run> runs_, tied_;
  std::vector<End> ends_;
  size_t next_end_ = 0;
  std::vector<wire::Event> batch_;
};

}  // namespace malloscope::trace
