// SPDX-License-Identifier: Apache-2.0
// Made-up recordings of several processes that begin, fork and end, with events in the very ticks
// of the cuts and some that come late; their indexes; and questions about them. Tests compare what
// an index answers with what a look at all events gives.

#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "analyze/accounts.h"
#include "analyze/index.h"
#include "analyze/index_builder.h"
#include "analyze/index_file.h"

namespace malloscope::analyze {

inline constexpr uint64_t kStart = 1000;

// What a trace would show, in order.
struct Recording {
  struct Started {
    size_t image;
  };
  struct Ended {
    size_t image;
  };
  using Action = std::variant<Started, Ended, std::vector<wire::Event>>;

  std::mt19937 random;
  trace::Tables tables;
  std::vector<Action> actions;
  uint64_t slice;  // Ticks between cuts: few events in each, or many.
  uint64_t end() const { return kStart + 1000 * slice; }

  // `tidy`: nothing comes late, or from a process that has ended.
  explicit Recording(unsigned seed, int batches = 120, bool tidy = false)
      : random(seed), slice(seed % 2 ? 20 : 200), tidy_(tidy), sampled_(seed % 5 == 0) {
    tables.header.start_tick = kStart;
    tables.header.ns_per_tick = 1;
    size_t images = 1 + pick(8);
    for (uint32_t i = 0; i < images; ++i) {
      trace::Image image;
      image.id = ImageId{i + 1};
      image.sample_log2 = sampled_ ? 8 : 0;
      image.pid = 7 + static_cast<int>(pick(3));
      if (i > 0 && pick(2)) {
        image.origin = trace::Origin::kForked;
        image.parent = ImageId{1 + pick(i)};
      }
      for (uint32_t t = 1; t <= 3; ++t) image.threads.push_back({ThreadId{t}, 100, "t", 1});
      for (uint32_t s = 1; s <= 20; ++s) {
        uint64_t frame = s;
        image.stacks.define(StackId{s}, StackId::kNone, 0, 0, 0, &frame, 1);
      }
      tables.images.push_back(std::move(image));
    }
    marks_ = pick(2);
    tables.mark_names = {"read", "event", "write", "end"};
    std::vector<std::vector<uint64_t>> live(images);
    std::vector<size_t> running;
    size_t started = 0;
    uint64_t tick = pick(2) ? kStart - 5 : kStart + pick(3000), next = 0x1000;
    for (int b = 0; b < batches; ++b) {
      if (started < images && (started == 0 || pick(8) == 0)) {
        tables.images[started].start_tick = tables.images[started].forked_tick = tick;
        running.push_back(started);
        actions.push_back(Started{started++});
      }
      std::vector<wire::Event> batch;
      if (!tidy && pick(10) == 0 && tick > kStart + 100)
        tick -= pick(60);                     // An event that comes late.
      if (pick(20) == 0) tick += pick(1500);  // Nothing for a while.
      bool ends = !running.empty() && pick(8) == 0, on_cut = pick(2);
      growing_ = pick(2);
      for (unsigned i = 1 + pick(60); i-- > 0;) {
        tick += pick(6);
        if (i == 0 && ends && on_cut && tick > kStart)  // The last before an image ends.
          tick += slice - 1 - (tick - kStart - 1) % slice;
        if (!running.empty())
          add(running[pick(static_cast<unsigned>(running.size()))], tick, &next, &live, &batch);
      }
      if (!batch.empty()) actions.push_back(std::move(batch));
      if (ends) {
        size_t at = pick(static_cast<unsigned>(running.size()));
        tables.images[running[at]].end_tick = tick + pick(80);
        actions.push_back(Ended{running[at]});
        if (tidy || pick(3))  // Or goes on.
          running.erase(running.begin() + static_cast<ptrdiff_t>(at));
      }
    }
    for (const Action& action : actions)
      if (const auto* batch = std::get_if<std::vector<wire::Event>>(&action))
        tables.events += batch->size();
  }

  unsigned pick(unsigned below) { return static_cast<unsigned>(random() % below); }

  void play(trace::Listener* listener) const {
    for (const Action& action : actions) {
      if (const auto* batch = std::get_if<std::vector<wire::Event>>(&action))
        listener->events(*batch);
      else if (const auto* begun = std::get_if<Started>(&action))
        listener->image_started(tables.images[begun->image]);
      else
        listener->image_ended(tables.images[std::get<Ended>(action).image]);
    }
  }

 private:
  bool tidy_, growing_ = false, marks_ = false, sampled_;
  std::vector<uint64_t> freed_;  // Addresses, some of which are used again.

  uint64_t new_address(uint64_t* next) {
    if (freed_.empty() || pick(2)) return *next += 16;
    uint64_t address = freed_.back();
    freed_.pop_back();
    return address;
  }
  ThreadId newest_thread_ = ThreadId::kNone;

  void add(size_t image, uint64_t tick, uint64_t* next, std::vector<std::vector<uint64_t>>* live,
           std::vector<wire::Event>* batch) {
    std::vector<uint64_t>& blocks = (*live)[image];
    wire::Event e;
    e.tick = tick;
    if (marks_ && pick(12) == 0) {
      e.kind = wire::Kind::kMark;
      e.flags = static_cast<uint8_t>(1 + pick(wire::kMarkKinds - 1));
      e.size = pick(static_cast<unsigned>(tables.mark_names.size()));
      e.thread = ThreadId{pick(4)};
      e.image = ImageId{static_cast<uint32_t>(image + 1)};
      batch->push_back(e);
      return;
    }
    e.stack = StackId{pick(21)};
    e.thread = ThreadId{pick(4)};
    e.image = ImageId{static_cast<uint32_t>(image + 1)};
    if (sampled_ && pick(8) == 0) {
      e.kind = wire::Kind::kPassed;
      batch->push_back(e);
      return;
    }
    unsigned what = growing_ ? 3 * pick(20) / 4 : 5 + 3 * pick(20) / 4;
    if (what < 9 || blocks.empty()) {
      e.kind = wire::Kind::kAlloc;
      e.op = wire::Op::kMalloc;
      // Now and then one that fails, or that is where another still is.
      e.address = pick(50) == 0                      ? 0
                  : pick(50) == 0 && !blocks.empty() ? blocks[0]
                                                     : new_address(next);
      e.size = pick(8) == 0 ? 0 : 1ULL << pick(12) | pick(100);
      if (pick(40) == 0) e.size <<= 30;  // More than 32 bits can tell.
      if (pick(20) == 0) {               // One that may be mapped.
        e.size = (128 << 10) + pick(3) * 5000;
        if (e.address != 0 && pick(2)) e.address = (*next += 8192) / 4096 * 4096 + 16;
      }
      if (e.address != 0) blocks.push_back(e.address);
      newest_thread_ = e.thread;
    } else if (what < 16) {
      // Half of the time the newest, by the thread that made it: a temporary one.
      size_t at = pick(2) ? blocks.size() - 1 : pick(static_cast<unsigned>(blocks.size()));
      if (at == blocks.size() - 1) e.thread = newest_thread_;
      e.kind = wire::Kind::kFree;
      e.op = wire::Op::kFree;
      e.address = pick(40) == 0 ? 0x999 : blocks[at];
      if (e.address != 0x999) {
        freed_.push_back(e.address);
        blocks.erase(blocks.begin() + static_cast<ptrdiff_t>(at));
      }
    } else if (what < 19) {
      size_t at = pick(static_cast<unsigned>(blocks.size()));
      e.kind = wire::Kind::kReallocBegin;
      e.op = wire::Op::kRealloc;
      e.address = blocks[at];
      if (tidy_ || pick(10) != 0) {  // Else it never ends.
        batch->push_back(e);
        e.kind = wire::Kind::kReallocEnd;
        e.stack = StackId{pick(21)};
        if (pick(2)) {
          e.address = new_address(next);
          freed_.push_back(std::exchange(blocks[at], e.address));
        }
        e.size = 1 + pick(3000);
      }
    } else {
      e.kind = wire::Kind::kMapping;
      e.op = pick(2) ? wire::Op::kMmap : wire::Op::kMunmap;
      e.address = *next += 4096;
      e.size = 4096;
    }
    batch->push_back(e);
  }
};

struct File {
  std::string path;
  explicit File(unsigned number)
      : path(fmt::format("{}/malloscope-index-{}-{}",
                         std::filesystem::temp_directory_path().c_str(), getpid(), number)) {}
  ~File() { std::filesystem::remove(path); }
};

inline constexpr TraceStamp kStamp = {1, 2, 3};

inline IndexTimes times_of(const Recording& recording) {
  return IndexTimes(recording.tables.header, recording.end());
}

inline void build(const Recording& recording, const std::string& path) {
  IndexFileWriter writer(path);
  ASSERT_TRUE(writer.ok());
  IndexBuilder builder(times_of(recording), recording.tables.images.size() > 1,
                       [&](IndexBuilder::Level level, uint32_t i, PackedBlock block) {
                         writer.put(level, i, block);
                       });
  recording.play(&builder);
  ASSERT_TRUE(builder.finish(recording.tables));
  ASSERT_TRUE(writer.finish(kStamp, builder.facts(), builder.cells()));
}

inline std::unique_ptr<Accounts> direct(const Recording& recording, Selection selection,
                                        Window window, TallyOptions options) {
  auto accounts = std::make_unique<Accounts>(selection, window, options);
  recording.play(accounts.get());
  accounts->finish();
  return accounts;
}

struct Question {
  Selection selection;
  Window window;
  TallyOptions options;
};

inline Question any_question(Recording* r, const IndexFacts& facts) {
  const IndexTimes& times = facts.times;
  Question q;
  if (r->pick(2)) q.selection.pid = 7 + static_cast<int>(r->pick(3));
  uint32_t busy = std::min<uint32_t>(12'000 / static_cast<uint32_t>(r->slice), IndexTimes::kCuts);
  uint32_t a = r->pick(busy), b = r->pick(busy);
  const IndexFacts::Image& image =
      facts.images[r->pick(static_cast<unsigned>(facts.images.size()))];
  if (image.ended != IndexFacts::kNever && r->pick(3) == 0)  // Where something special happens.
    a = std::min(image.ended / 2, IndexTimes::kCuts - 1);
  if (r->pick(3) == 0) b = std::min(a + r->pick(5), IndexTimes::kCuts - 1);
  if (r->pick(3)) q.window.from_tick = times.cuts[std::min(a, b)];
  if (r->pick(3)) q.window.to_tick = times.cuts[std::max(a, b)];
  if (r->pick(10) == 0) q.window.to_tick = kStart + r->slice * r->pick(1000) + 1 + r->pick(18);
  q.options.by_thread = r->pick(2);
  q.options.by_phase = r->pick(2);
  q.options.by_size = r->pick(2);
  q.options.by_stack = r->pick(4) != 0;
  if (r->pick(4) == 0) q.options.min_size = 1ULL << r->pick(12);
  if (r->pick(4) == 0) q.options.max_size = (2ULL << r->pick(12)) - 1;
  if (r->pick(20) == 0) q.options.max_size = 100;
  return q;
}

// About any sizes.
inline Question any_sized_question(Recording* r, const IndexFacts& facts) {
  Question q = any_question(r, facts);
  if (r->pick(2)) q.options.min_size = r->pick(r->pick(2) ? 300 : 3000);
  if (r->pick(2)) q.options.max_size = q.options.min_size + r->pick(r->pick(2) ? 100 : 3000);
  if (r->pick(10) == 0) q.options.max_size = uint64_t{5} << 30 | r->pick(1000);
  return q;
}

// A recording with its index.
struct Indexed {
  Recording recording;
  File file;
  std::unique_ptr<Index> index;

  explicit Indexed(unsigned seed, bool tidy = false) : recording(seed, 120, tidy), file(seed) {
    build(recording, file.path);
    index = open_index(file.path, kStamp, times_of(recording));
  }
};

}  // namespace malloscope::analyze
