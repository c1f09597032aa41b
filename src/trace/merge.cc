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
#include <set>

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

namespace {

// Looks for an order of a tick's events in which each is possible: a search with
// backtracking, since a choice that fits now may leave none that fits later (two
// threads may hand one address to and fro within a tick).
class TickOrder {
 public:
  TickOrder(Listener* listener, std::span<const std::span<const Event>> threads)
      : listener_(listener), threads_(threads), next_(threads.size(), 0) {
    for (auto events : threads) wanted_ += events.size();
  }

  // The events in that order; if there is none, or it takes too long, as they come.
  std::vector<const Event*> find() {
    if (search()) return order_;
    std::vector<const Event*> as_they_come;
    for (auto events : threads_)
      for (const Event& event : events) as_they_come.push_back(&event);
    return as_they_come;
  }

 private:
  static bool makes(const Event& e) {
    return e.kind == Kind::kAlloc || e.kind == Kind::kReallocEnd;
  }
  static bool matters(const Event& e) { return e.address != 0 && e.kind != Kind::kMapping; }

  bool& live(const Event& e) {
    auto [it, is_new] = live_.try_emplace({e.image, e.address}, false);
    if (is_new) it->second = listener_->is_live(e.image, e.address);
    return it->second;
  }

  bool search() {
    if (order_.size() == wanted_) return true;
    // How far each thread has come decides what is live, so no such place is tried twice.
    if (been_.size() > kPatience || !been_.insert(next_).second) return false;
    for (size_t i = 0; i < threads_.size(); ++i) {
      if (next_[i] == threads_[i].size()) continue;
      const Event& event = threads_[i][next_[i]];
      if (matters(event) && live(event) == makes(event)) continue;
      if (matters(event)) live(event) = makes(event);
      ++next_[i];
      order_.push_back(&event);
      if (search()) return true;
      order_.pop_back();
      --next_[i];
      if (matters(event)) live(event) = !makes(event);
      if (!matters(event)) return false;  // It fits anywhere; the others were tried behind it.
    }
    return false;
  }

  static constexpr size_t kPatience = 50'000;
  Listener* listener_;
  std::span<const std::span<const Event>> threads_;
  std::vector<size_t> next_;
  std::vector<const Event*> order_;
  std::map<std::pair<ImageId, uint64_t>, bool> live_;
  std::set<std::vector<size_t>> been_;
  size_t wanted_ = 0;
};

}  // namespace

void EpochMerger::show_disputed(std::vector<Run>& tied, uint64_t tick) {
  flush();
  std::vector<std::span<const Event>> threads;
  for (Run& run : tied) {
    const Event* stop = end_of_tick(run.next, run.end, tick);
    threads.emplace_back(run.next, stop);
    run.next = stop;
  }
  for (const Event* event : TickOrder(listener_, threads).find()) show(event, event + 1);
}

}  // namespace malloscope::trace
