// SPDX-License-Identifier: Apache-2.0
// A merge of sorted runs by tick. Only equal ticks of different threads need
// thought: within a tick (100 ns) the clock does not tell who was first.
//
// If the threads touched different addresses, no order is wrong. If they touched
// the same address, there is usually one order in which every allocation finds
// the address free and every free finds it live: that one is taken, which needs
// to know whether it was live before. If there is none, the events are shown as
// they come, and whoever keeps accounts will find and count the impossibility.

#include "trace/merge.h"

#include <algorithm>
#include <map>

namespace malloscope::trace {

using wire::Event;
using wire::Kind;

static constexpr size_t kBatch = 4096;

void EpochMerger::flush() {
  if (!batch_.empty()) listener_->events(batch_);
  batch_.clear();
}

void EpochMerger::show(const Event* first, const Event* last) {
  while (first != last) {
    const Event* stop = last;
    if (next_end_ < ends_.size()) {
      const End& end = ends_[next_end_];
      stop = std::find_if(first, last, [&](const Event& e) { return e.tick > end.tick; });
      if (stop == first) {
        flush();
        listener_->image_ended(*end.image);
        ++next_end_;
        continue;
      }
    }
    batch_.insert(batch_.end(), first, stop);
    first = stop;
    if (batch_.size() >= kBatch) flush();
  }
}

void EpochMerger::merge() {
  std::stable_sort(ends_.begin(), ends_.end(),
                   [](const End& a, const End& b) { return a.tick < b.tick; });
  next_end_ = 0;
  // A heap with the earliest run on top.
  auto later = [](const Run& a, const Run& b) {
    return a.next->tick != b.next->tick ? a.next->tick > b.next->tick : a.order > b.order;
  };
  std::make_heap(runs_.begin(), runs_.end(), later);
  while (!runs_.empty()) {
    std::pop_heap(runs_.begin(), runs_.end(), later);
    Run run = runs_.back();
    runs_.pop_back();
    if (runs_.empty()) {
      show(run.next, run.end);
      break;
    }
    uint64_t until = runs_.front().next->tick;
    const Event* stop = run.next;
    while (stop != run.end && stop->tick < until) ++stop;
    if (stop != run.next) {
      show(run.next, stop);
      run.next = stop;
    } else {
      tied_.clear();
      tied_.push_back(run);
      while (!runs_.empty() && runs_.front().next->tick == until) {
        std::pop_heap(runs_.begin(), runs_.end(), later);
        tied_.push_back(runs_.back());
        runs_.pop_back();
      }
      show_tie(tied_, until);
      for (const Run& rest : tied_) {
        if (rest.next == rest.end) continue;
        runs_.push_back(rest);
        std::push_heap(runs_.begin(), runs_.end(), later);
      }
      continue;
    }
    if (run.next != run.end) {
      runs_.push_back(run);
      std::push_heap(runs_.begin(), runs_.end(), later);
    }
  }
  flush();
  for (; next_end_ < ends_.size(); ++next_end_) listener_->image_ended(*ends_[next_end_].image);
  runs_.clear();
  ends_.clear();
}

static const Event* end_of_tick(const Event* first, const Event* last, uint64_t tick) {
  while (first != last && first->tick == tick) ++first;
  return first;
}

void EpochMerger::show_tie(std::vector<Run>& tied, uint64_t tick) {
  // Whether two runs touch one address. Ties are short: a handful of events each.
  auto disputed = [&] {
    for (size_t i = 0; i < tied.size(); ++i)
      for (const Event* a = tied[i].next; a != tied[i].end && a->tick == tick; ++a) {
        if (a->address == 0) continue;
        for (size_t j = i + 1; j < tied.size(); ++j)
          for (const Event* b = tied[j].next; b != tied[j].end && b->tick == tick; ++b)
            if (a->address == b->address && a->image == b->image) return true;
      }
    return false;
  };
  if (disputed()) return show_disputed(tied, tick);
  for (Run& run : tied) {
    const Event* stop = end_of_tick(run.next, run.end, tick);
    show(run.next, stop);
    run.next = stop;
  }
}

void EpochMerger::show_disputed(std::vector<Run>& tied, uint64_t tick) {
  flush();
  std::map<std::pair<ImageId, uint64_t>, bool> live;
  auto is_live = [&](const Event& e) -> bool& {
    auto [it, is_new] = live.try_emplace({e.image, e.address}, false);
    if (is_new) it->second = listener_->is_live(e.image, e.address);
    return it->second;
  };
  auto makes = [](const Event& e) { return e.kind == Kind::kAlloc || e.kind == Kind::kReallocEnd; };
  auto possible = [&](const Event& e) {
    return e.address == 0 || e.kind == Kind::kMapping || is_live(e) != makes(e);
  };
  for (;;) {
    Run* chosen = nullptr;
    for (Run& run : tied) {
      if (run.next == run.end || run.next->tick != tick) continue;
      bool fits = possible(*run.next);
      if (!chosen || fits) chosen = &run;
      if (fits) break;
    }
    if (!chosen) return;
    const Event& event = *chosen->next++;
    if (event.address != 0 && event.kind != Kind::kMapping) is_live(event) = makes(event);
    show(&event, &event + 1);
  }
}

}  // namespace malloscope::trace
