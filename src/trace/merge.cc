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
static constexpr size_t kLong = 256;  // So many events in a row are shown where they are.

bool EpochMerger::later(const Run& a, const Run& b) {
  return a.next->tick != b.next->tick ? a.next->tick > b.next->tick : a.order > b.order;
}

void EpochMerger::add(std::span<const Event> events, uint64_t order, uint32_t* left) {
  if (events.empty()) return;
  if (left) ++*left;
  put_back({events.data(), events.data() + events.size(), order, left});
}

void EpochMerger::add_end(uint64_t tick, const Image* image) {
  auto after = std::ranges::upper_bound(ends_, tick, {}, &End::tick);
  ends_.insert(after, {tick, image});
}

void EpochMerger::put_back(const Run& run) {
  if (run.next == run.end) {
    if (run.left) --*run.left;
    return;
  }
  runs_.push_back(run);
  std::push_heap(runs_.begin(), runs_.end(), later);
}

EpochMerger::Run EpochMerger::take_earliest() {
  std::pop_heap(runs_.begin(), runs_.end(), later);
  Run run = runs_.back();
  runs_.pop_back();
  return run;
}

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
    std::span<const Event> some(first, stop);
    first = stop;
    if (some.size() >= kLong) {
      flush();
      listener_->events(some);
      continue;
    }
    batch_.insert(batch_.end(), some.begin(), some.end());
    if (batch_.size() >= kBatch) flush();
  }
}

void EpochMerger::merge_before(uint64_t limit) {
  while (!runs_.empty() && runs_.front().next->tick < limit) {
    Run run = take_earliest();
    uint64_t until = runs_.empty() ? limit : std::min(limit, runs_.front().next->tick);
    if (run.next->tick < until) {
      const Event* stop = run.next;
      while (stop != run.end && stop->tick < until) ++stop;
      show(run.next, stop);
      run.next = stop;
      put_back(run);
    } else {
      tied_.assign(1, run);
      while (!runs_.empty() && runs_.front().next->tick == until) tied_.push_back(take_earliest());
      show_tie(until);
      for (const Run& rest : tied_) put_back(rest);
    }
  }
}

void EpochMerger::merge() {
  merge_before(UINT64_MAX);
  // Only a file that lies has events at the end of time.
  while (!runs_.empty()) {
    Run run = take_earliest();
    show(run.next, run.end);
    run.next = run.end;
    put_back(run);
  }
  flush();
  for (; next_end_ < ends_.size(); ++next_end_) listener_->image_ended(*ends_[next_end_].image);
  ends_.clear();
  next_end_ = 0;
}

static const Event* end_of_tick(const Event* first, const Event* last, uint64_t tick) {
  while (first != last && first->tick == tick) ++first;
  return first;
}

void EpochMerger::show_tie(uint64_t tick) {
  // Whether two runs touch one address. Ties are short: a handful of events each.
  auto disputed = [&] {
    for (size_t i = 0; i < tied_.size(); ++i)
      for (const Event* a = tied_[i].next; a != tied_[i].end && a->tick == tick; ++a) {
        if (a->address == 0) continue;
        for (size_t j = i + 1; j < tied_.size(); ++j)
          for (const Event* b = tied_[j].next; b != tied_[j].end && b->tick == tick; ++b)
            if (a->address == b->address && a->image == b->image) return true;
      }
    return false;
  };
  if (disputed()) return show_disputed(tick);
  for (Run& run : tied_) {
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

void EpochMerger::show_disputed(uint64_t tick) {
  flush();
  std::vector<std::span<const Event>> threads;
  for (Run& run : tied_) {
    const Event* stop = end_of_tick(run.next, run.end, tick);
    threads.emplace_back(run.next, stop);
    run.next = stop;
  }
  for (const Event* event : TickOrder(listener_, threads).find()) show(event, event + 1);
}

}  // namespace malloscope::trace
