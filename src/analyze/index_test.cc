// SPDX-License-Identifier: Apache-2.0
// Whatever an index answers is what a look at all events gives, number by number: on made-up
// recordings of several processes that begin, fork and end, with events in the very ticks of the
// cuts and some that come late. And a file that is damaged anywhere gives no other answer.

#include "analyze/index.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <variant>

#include "analyze/cell_rows.h"
#include "analyze/index_builder.h"
#include "analyze/index_file.h"
#include "analyze/index_life_sums.h"
#include "analyze/index_overhead.h"
#include "analyze/index_sums.h"
#include "analyze/log_histogram.h"
#include "analyze/origins.h"
#include "analyze/site_blocks.h"

namespace malloscope::analyze {
namespace {

constexpr uint64_t kStart = 1000;

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

std::string told(const Accounts& accounts, const trace::Tables& tables) {
  std::string text;
  auto add = [&](const Totals& totals, Peak peak) {
    for (uint64_t number : numbers_of(totals)) text += fmt::format("{} ", number);
    text += fmt::format("peak {} at {}\n", peak.bytes, peak.tick);
  };
  add(accounts.totals(), accounts.peak());
  for (const trace::Image& image : tables.images)
    add(accounts.totals(image.id), accounts.peak(image.id));
  text += fmt::format("last {}\n", accounts.last_tick());
  accounts.tally().for_each_row([&](const Row& row) {
    const Amounts& a = row.amounts;
    for (uint32_t name : accounts.phases().paths[raw(phases_of(row.strand))])
      text += tables.mark_names[name] + " ";
    text += fmt::format("{} {} {} {}: {} {} {} {} {} {} {}\n", raw(row.image), raw(row.stack),
                        raw(row.strand), row.size_class, a.allocations, a.reallocations,
                        a.allocated_bytes, a.live_bytes, a.live_blocks, a.temporary, a.peak_bytes);
  });
  return text;
}

struct File {
  std::string path;
  explicit File(unsigned number)
      : path(fmt::format("{}/malloscope-index-{}-{}",
                         std::filesystem::temp_directory_path().c_str(), getpid(), number)) {}
  ~File() { std::filesystem::remove(path); }
};

constexpr TraceStamp kStamp = {1, 2, 3};

IndexTimes times_of(const Recording& recording) {
  return IndexTimes(recording.tables.header, recording.end());
}

void build(const Recording& recording, const std::string& path) {
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

std::unique_ptr<Accounts> direct(const Recording& recording, Selection selection, Window window,
                                 TallyOptions options) {
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

Question any_question(Recording* r, const IndexFacts& facts) {
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
Question any_sized_question(Recording* r, const IndexFacts& facts) {
  Question q = any_question(r, facts);
  if (r->pick(2)) q.options.min_size = r->pick(r->pick(2) ? 300 : 3000);
  if (r->pick(2)) q.options.max_size = q.options.min_size + r->pick(r->pick(2) ? 100 : 3000);
  if (r->pick(10) == 0) q.options.max_size = uint64_t{5} << 30 | r->pick(1000);
  return q;
}

TEST(Index, AnswersAsALookAtAllEventsDoes) {
  int asked = 0, answered = 0;
  size_t straddlers = 0, phases = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    Recording recording(seed);
    File file(seed);
    build(recording, file.path);
    IndexTimes times = times_of(recording);
    auto index = open_index(file.path, kStamp, times);
    ASSERT_TRUE(index);
    straddlers += index->facts().straddlers.size();
    EXPECT_EQ(index->facts().events, recording.tables.events);
    for (int round = 0; round < 40; ++round) {
      Question q = any_question(&recording, index->facts());
      ++asked;
      auto answer = index->answer(recording.tables, q.selection, q.window, q.options);
      if (!answer) continue;
      ++answered;
      phases += answer->phases().paths.size() > 1;
      auto expected = direct(recording, q.selection, q.window, q.options);
      ASSERT_EQ(told(*answer, recording.tables), told(*expected, recording.tables))
          << "seed " << seed << ", round " << round << ", pid " << q.selection.pid.value_or(0)
          << ", from " << q.window.from_tick << " to " << q.window.to_tick;
    }
  }
  EXPECT_GT(answered, asked / 3);  // Or nothing was compared.
  EXPECT_GT(straddlers, 1000u);
  EXPECT_GT(phases, 100u);
}

std::string told_of_leaks(const Accounts& accounts) {
  std::string text;
  for (uint64_t number : numbers_of(accounts.totals())) text += fmt::format("{} ", number);
  std::set<std::string> rows;  // Their order is none that anybody sees.
  accounts.tally().for_each_row([&](const Row& row) {
    if (row.amounts.live_blocks == 0) return;
    rows.insert(fmt::format("{} {} {} {}: {} {}, {} to {}, {:b}\n", raw(row.image), raw(row.stack),
                            raw(row.strand), row.size_class, row.amounts.live_blocks,
                            row.amounts.live_bytes, row.details.live_first_tick,
                            row.details.live_last_tick, row.details.live_periods));
  });
  for (const std::string& row : rows) text += row;
  return text;
}

TEST(Index, TellsLeaksAsALookAtAllEventsDoes) {
  int asked = 0, answered = 0, long_rows = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    Recording recording(seed, 120, seed % 4 != 0);
    File file(seed);
    build(recording, file.path);
    auto index = open_index(file.path, kStamp, times_of(recording));
    ASSERT_TRUE(index);
    for (int round = 0; round < 40; ++round) {
      Question q = any_sized_question(&recording, index->facts());
      q.options.only_made_in_window = q.options.details = true;
      ++asked;
      auto answer = index->leaks(recording.tables, q.selection, q.window, q.options);
      if (!answer) continue;
      ++answered;
      auto expected = direct(recording, q.selection, q.window, q.options);
      ASSERT_EQ(told_of_leaks(*answer), told_of_leaks(*expected))
          << "seed " << seed << ", round " << round << ", pid " << q.selection.pid.value_or(0)
          << ", from " << q.window.from_tick << " to " << q.window.to_tick;
      long_rows += told_of_leaks(*answer).size() > 1000;
    }
  }
  EXPECT_GT(answered, asked / 3);  // Or nothing was compared.
  EXPECT_GT(long_rows, 100);
}

// What lived, was left and was freed, by whom, in a window; cell by cell.
struct LivesTold : HeapObserver {
  uint64_t from_tick = 0;
  Origins origins;
  std::map<std::string, uint64_t> sums;
  using Pair = std::tuple<ImageId, ThreadId, ThreadId>;  // Who freed whose.
  std::map<Pair, std::pair<uint64_t, uint64_t>> freed;

  void add_freed(const Pair& pair, uint64_t blocks, uint64_t bytes) {
    freed[pair].first += blocks;
    freed[pair].second += bytes;
  }
  static std::string cell(ImageId image, const Block& block) {
    return fmt::format("{} {} {} {}", raw(image), raw(block.stack), raw(block.strand),
                       size_class(block.size));
  }
  void add(const std::string& what, uint64_t blocks, uint64_t bytes) {
    sums[what + " blocks"] += blocks;
    sums[what + " bytes"] += bytes;
  }
  void found(ImageId image, const BlockTable& live) override {
    origins.found(image, live, from_tick);
  }
  void changed(ImageId image, const Block& before, const Block& now, const wire::Event&,
               bool) override {
    origins.changed(image, before, now);
  }
  void gone(ImageId image, const Block& block, End how, const wire::Event& event,
            bool counts) override {
    Block origin = origins.take(image, block);
    if (origin.born_tick >= from_tick) {
      uint64_t ticks = event.tick > origin.born_tick ? event.tick - origin.born_tick : 0;
      add(fmt::format("lived {} for {}", cell(image, origin), LogHistogram::step_of(ticks)),
          origin.stands_for(), origin.bytes());
      uint64_t& longest = sums["longest " + cell(image, origin)];
      longest = std::max(longest, ticks);
    }
    if (!counts || how == End::kLost) return;
    add(fmt::format("freed {} by {}", cell(image, block), raw(event.thread)), block.stands_for(),
        block.bytes());
    add_freed({image, thread_of(block.strand), event.thread}, block.stands_for(), block.bytes());
  }
  void left(ImageId image, const BlockTable& live) override {
    live.for_each([&](const Block& block) {
      Block origin = origins.take(image, block);
      if (origin.born_tick >= from_tick)
        add("left " + cell(image, origin), origin.stands_for(), origin.bytes());
    });
  }
};

TEST(Index, TellsLivesAsALookAtAllEventsDoes) {
  int asked = 0, answered = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    Recording recording(seed, 120, seed % 4 != 0);
    File file(seed);
    build(recording, file.path);
    auto index = open_index(file.path, kStamp, times_of(recording));
    ASSERT_TRUE(index);
    for (int round = 0; round < 20; ++round) {
      Window window = any_question(&recording, index->facts()).window;
      ++asked;
      std::optional<Index::Steps> steps = index->parting_steps_of(window);
      if (!steps) continue;
      ++answered;
      LivesTold expected;
      expected.from_tick = window.from_tick;
      Heap heap({}, window);
      heap.add_observer(&expected);
      recording.play(&heap);
      heap.finish();
      LivesTold told;
      auto cell_of = [&](const IndexLife& life) {
        const IndexCell& cell = index->cells()[life.cell];
        return fmt::format("{} {} {} {}", raw(cell.image), raw(cell.stack), raw(cell.strand),
                           cell.size_class);
      };
      auto ended = [&](const IndexLife& life) {
        std::string cell = cell_of(life);
        if ((life.roles & IndexLife::kLived) && life.born >= steps->first) {
          told.add(fmt::format("lived {} for {}", cell, LogHistogram::step_of(life.longest_ticks)),
                   life.blocks, life.bytes);
          uint64_t& longest = told.sums["longest " + cell];
          longest = std::max(longest, life.longest_ticks);
        }
        if (life.roles & IndexLife::kFreed)
          told.add(fmt::format("freed {} by {}", cell,
                               raw(life.by_maker ? thread_of(index->cells()[life.cell].strand)
                                                 : life.freer)),
                   life.blocks, life.bytes);
      };
      ASSERT_TRUE(index->for_each_ended(&index->blocks(), steps->first, steps->first,
                                        steps->last + 1, ended));
      ASSERT_TRUE(index->for_each_live(steps->last, [&](const IndexLife& life) {
        if ((life.roles & IndexLife::kLived) && life.born >= steps->first)
          told.add("left " + cell_of(life), life.blocks, life.bytes);
      }));
      ASSERT_TRUE(index->facts().knows_freed);
      for (const IndexFacts::Freed& here : index->facts().freed)
        if (here.step >= steps->first && here.step <= steps->last)
          told.add_freed({here.image, here.maker, here.freer}, here.blocks, here.bytes);
      ASSERT_EQ(told.freed, expected.freed) << "seed " << seed;
      for (const auto& [what, sum] : expected.sums)
        ASSERT_EQ(told.sums[what], sum) << what << ", seed " << seed << ", from "
                                        << window.from_tick << " to " << window.to_tick;
      ASSERT_EQ(told.sums, expected.sums)
          << "seed " << seed << ", from " << window.from_tick << " to " << window.to_tick;
    }
  }
  EXPECT_GT(answered, asked / 3);  // Or nothing was compared.
}

// Rows of any kind, in order, whatever moments are kept and however far that has come.
TEST(Index, TellsLifetimesAndWhatIsLeftAsALookAtAllEventsDoes) {
  int asked = 0, answered = 0;
  size_t lived = 0, left_rows = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    Recording recording(seed, 120, seed % 4 != 0);
    File file(seed);
    build(recording, file.path);
    auto index = open_index(file.path, kStamp, times_of(recording));
    ASSERT_TRUE(index);
    LifetimeSums kept(*index, recording.tables, index->cells().size() * 8 * recording.pick(30));
    for (unsigned i = recording.pick(60); i > 0 && kept.prepare(); --i) continue;
    for (int round = 0; round < 40; ++round) {
      Question q = any_sized_question(&recording, index->facts());
      q.options.by_stack = true;
      ++asked;
      std::optional<Index::Steps> steps = index->parting_steps_of(q.window);
      if (!steps) continue;
      CellRows rows(*index, recording.tables, q.selection, q.options);
      IndexSums::Rows together = rows.together();
      auto tell = [&](auto&& amount_of) {
        std::vector<std::string> told;
        for (size_t i = 0; i < rows.rows.size(); ++i) {
          const CellRows::Id& id = rows.rows[i];
          if (std::string amount = amount_of(i); !amount.empty())
            told.push_back(fmt::format("{} {} {} {}: {}", raw(id.image), raw(id.stack),
                                       raw(id.strand), id.size_class, amount));
        }
        return told;
      };
      auto tell_direct = [&](auto&& amount_of) {
        TallyOptions options = q.options;
        options.details = true;
        std::vector<std::string> told;
        direct(recording, q.selection, q.window, options)->tally().for_each_row([&](const Row& r) {
          if (std::string amount = amount_of(r); !amount.empty())
            told.push_back(fmt::format("{} {} {} {}: {}", raw(r.image), raw(r.stack), raw(r.strand),
                                       r.size_class, amount));
        });
        return told;
      };
      std::vector<uint64_t> ticks, again;
      if (sum_lifetimes(*index, recording.tables, q.window, *steps, together, &ticks)) {
        ++answered;
        ASSERT_TRUE(kept.sum(q.window, *steps, together, &again));
        ASSERT_EQ(again, ticks) << "seed " << seed << ", round " << round << ", from "
                                << q.window.from_tick << " to " << q.window.to_tick;
        for (int more = 0; more < 3; ++more) kept.prepare();
        auto told = tell([&](size_t i) { return ticks[i] ? std::to_string(ticks[i]) : ""; });
        lived += told.size();
        auto right = tell_direct([](const Row& row) {
          uint64_t t = row.details.lifetime_ticks;
          return t ? std::to_string(t) : "";
        });
        if (rows.cut && (q.options.by_thread || q.options.by_phase || q.options.by_size)) {
          std::ranges::sort(told);  // Where a row is depends on its first block that counts.
          std::ranges::sort(right);
        }
        ASSERT_EQ(told, right) << "seed " << seed << ", round " << round << ", from "
                               << q.window.from_tick << " to " << q.window.to_tick;
      }
      q.options.only_made_in_window = true;
      LeftBlocks left;
      ASSERT_TRUE(sum_left(*index, *steps, together, &left));
      auto text = [](uint64_t blocks, uint64_t bytes) {
        return blocks ? fmt::format("{} {}", blocks, bytes) : "";
      };
      auto told = tell([&](size_t i) { return text(left.blocks[i], left.bytes[i]); });
      auto right = tell_direct(
          [&](const Row& row) { return text(row.amounts.live_blocks, row.amounts.live_bytes); });
      left_rows += told.size();
      // Their order is none that anybody sees.
      ASSERT_EQ(std::set(told.begin(), told.end()), std::set(right.begin(), right.end()))
          << "seed " << seed << ", round " << round << ", from " << q.window.from_tick << " to "
          << q.window.to_tick;
    }
  }
  EXPECT_GT(answered, asked / 3);  // Or nothing was compared.
  EXPECT_GT(lived, 10'000u);
  EXPECT_GT(left_rows, 10'000u);
}

TEST(Index, TellsOverheadAsALookAtAllEventsDoes) {
  int asked = 0, answered = 0;
  size_t rows_told = 0, mapped = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    Recording recording(seed);
    if (seed % 3 == 0)
      for (trace::Image& image : recording.tables.images)
        image.modules.emplace_back().path = "/usr/lib/libjemalloc.so.2";
    File file(seed);
    build(recording, file.path);
    auto index = open_index(file.path, kStamp, times_of(recording));
    ASSERT_TRUE(index);
    ASSERT_TRUE(index->cover_odd(&index->blocks(), 0, IndexTimes::kSteps,
                                 [&](const OddEntry& entry) { mapped += entry.is_mapped; }));
    IndexSums sums(index.get(), 1 << 20);
    for (int round = 0; round < 40; ++round) {
      Question q = any_sized_question(&recording, index->facts());
      q.options.by_stack = true;
      ++asked;
      std::optional<Index::Steps> steps = index->steps_of(q.window);
      if (!steps || index->selected(recording.tables, q.selection).empty()) continue;
      ++answered;
      CellRows rows(*index, recording.tables, q.selection, q.options);
      std::vector<uint64_t> bytes;
      ASSERT_TRUE(sum_overhead(*index, &sums, recording.tables, q.selection, q.window, *steps,
                               rows.together(), &bytes));
      auto name = [](const auto& row) {
        return fmt::format("{} {} {} {}", raw(row.image), raw(row.stack), raw(row.strand),
                           row.size_class);
      };
      std::map<std::string, uint64_t> told, right;
      for (size_t i = 0; i < rows.rows.size(); ++i)
        if (bytes[i] != 0) told[name(rows.rows[i])] = bytes[i];
      TallyOptions options = q.options;
      options.details = options.overhead = true;
      direct(recording, q.selection, q.window, options)->tally().for_each_row([&](const Row& r) {
        Allocator allocator = allocator_of(recording.tables.image(r.image));
        uint64_t overhead = r.details.overhead_bytes[static_cast<size_t>(allocator)];
        if (overhead != 0) right[name(r)] = overhead;
      });
      rows_told += told.size();
      ASSERT_EQ(told, right) << "seed " << seed << ", round " << round << ", sizes "
                             << q.options.min_size << " to " << q.options.max_size << ", from "
                             << q.window.from_tick << " to " << q.window.to_tick;
    }
  }
  EXPECT_GT(answered, asked / 3);  // Or nothing was compared.
  EXPECT_GT(rows_told, 10'000u);
  EXPECT_GT(mapped, 100u);
}

// Each block as one that looks at all events has it, or together with others of its cell.
TEST(Index, TellsBlocksAsALookAtAllEventsDoes) {
  struct Told {
    uint64_t blocks = 0, bytes = 0, first = UINT64_MAX, last = 0;
    bool operator==(const Told&) const = default;
    void add(const BlockBar& bar) {
      blocks += bar.blocks, bytes += bar.bytes;
      first = std::min(first, bar.born), last = std::max(last, bar.died);
    }
  };
  using Key = std::tuple<ThreadId, uint8_t, uint64_t>;
  // Whatever their threads: bars of several have none.
  auto sums_of = [](const std::map<Key, Told>& bars) {
    std::map<std::pair<uint8_t, uint64_t>, std::array<uint64_t, 4>> sums;
    for (const auto& [of, sum] : bars) {
      auto& to = sums.try_emplace({std::get<1>(of), std::get<2>(of)}).first->second;
      to[0] += sum.blocks, to[1] += sum.bytes;
      to[2] = std::max(to[2], UINT64_MAX - sum.first), to[3] = std::max(to[3], sum.last);
    }
    return sums;
  };
  using Single = std::tuple<ThreadId, uint8_t, uint64_t, uint64_t, uint64_t>;
  int asked = 0, answered = 0;
  size_t singles = 0, merged = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    Recording recording(seed, 120, seed % 4 != 0);
    File file(seed);
    build(recording, file.path);
    auto index = open_index(file.path, kStamp, times_of(recording));
    ASSERT_TRUE(index);
    for (int round = 0; round < 20; ++round) {
      Question q = any_sized_question(&recording, index->facts());
      uint32_t stack = recording.pick(4) ? 1 + recording.pick(20) : 0;
      bool whole_classes = Index::suits(q.options);
      ++asked;
      std::optional<Index::Steps> steps = index->parting_steps_of(q.window);
      if (!steps) continue;
      SiteBlocks::Cells cells = {{}, q.options.min_size, q.options.max_size};
      for (const IndexCell& cell : index->cells()) {
        bool counts = q.selection.contains(recording.tables.image(cell.image)) &&
                      (stack == 0 || raw(cell.stack) == stack);
        auto [least, most] = sizes_of_class(cell.size_class);
        bool all = least >= cells.min_size && most <= cells.max_size;
        bool some = least <= cells.max_size && most >= cells.min_size;
        cells.wants.push_back(counts && all    ? SiteBlocks::Cells::kAll
                              : counts && some ? SiteBlocks::Cells::kSome
                                               : SiteBlocks::Cells::kNone);
      }
      SiteBlocks told({}, 1'000'000);
      if (!told.restore(*index, *steps, cells)) {
        EXPECT_FALSE(whole_classes);
        continue;
      }
      ++answered;
      SiteBlocks expected(
          [&](ImageId, const Block& block) {
            return (stack == 0 || raw(block.stack) == stack) && block.size >= q.options.min_size &&
                   block.size <= q.options.max_size;
          },
          1'000'000);
      Heap heap(q.selection, q.window);
      heap.add_observer(&expected);
      recording.play(&heap);
      heap.finish();
      // What is kept for many questions tells the same, with more of them together.
      SiteBlocks::Folded folded(*index, cells);
      ASSERT_EQ(folded.ok(), true);
      SiteBlocks again({}, 1'000'000);
      again.restore(folded, *index, *steps);
      ASSERT_EQ(again.blocks(), expected.blocks());
      ASSERT_EQ(told.blocks(), expected.blocks());
      std::multiset<Single> all;
      std::map<Key, Told> right, here, kept;
      auto key = [](const BlockBar& bar) {
        return Key{bar.thread, bar.size_class, bar.died == BlockBar::kAlive};
      };
      auto single = [](const BlockBar& bar) {
        return Single{bar.thread, bar.size_class, bar.born, bar.died, bar.bytes};
      };
      for (const BlockBar& bar : expected.take()) {
        right[key(bar)].add(bar);
        all.insert(single(bar));
      }
      for (const BlockBar& bar : again.take()) kept[key(bar)].add(bar);
      for (const BlockBar& bar : told.take()) {
        here[key(bar)].add(bar);
        if (bar.blocks > 1) {
          ++merged;
          continue;
        }
        ++singles;
        auto found = all.find(single(bar));
        ASSERT_NE(found, all.end()) << "seed " << seed << ", round " << round;
        all.erase(found);
      }
      ASSERT_EQ(here.size(), right.size());
      ASSERT_EQ(sums_of(kept), sums_of(right)) << "seed " << seed << ", round " << round;
      for (const auto& [of, sums] : right)
        ASSERT_TRUE(here[of] == sums) << "seed " << seed << ", round " << round << ", from "
                                      << q.window.from_tick << " to " << q.window.to_tick;
    }
  }
  EXPECT_GT(answered, asked / 3);  // Or nothing was compared.
  EXPECT_GT(singles, 10'000u);
  EXPECT_GT(merged, 100u);
}

// Of exact sizes, and slice by slice.
struct SizesTold : HeapObserver {
  using Key = std::tuple<uint32_t, ImageId, uint64_t>;  // The step, the image, the size.
  IndexTimes times;
  std::map<Key, int64_t> live;
  std::map<Key, uint64_t> calls;

  explicit SizesTold(const IndexTimes& cut) : times(cut) {}
  Key key(uint64_t tick, ImageId image, const Block& block) const {
    return {times.step_of(tick), image, block.size};
  }
  void made(ImageId image, const Block& block, const wire::Event&, bool) override {
    live[key(block.born_tick, image, block)] += static_cast<int64_t>(block.bytes());
    calls[key(block.born_tick, image, block)] += block.stands_for();
  }
  void changed(ImageId image, const Block& before, const Block& now, const wire::Event&,
               bool) override {
    live[key(now.born_tick, image, before)] -= static_cast<int64_t>(before.bytes());
    live[key(now.born_tick, image, now)] += static_cast<int64_t>(now.bytes());
    ++calls[key(now.born_tick, image, now)];
  }
  void gone(ImageId image, const Block& block, End, const wire::Event& event, bool) override {
    live[key(event.tick, image, block)] -= static_cast<int64_t>(block.bytes());
  }
};

TEST(Index, TellsSizesAsALookAtAllEventsDoes) {
  int asked = 0, answered = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    Recording recording(seed, 120, seed % 4 != 0);
    File file(seed);
    build(recording, file.path);
    auto index = open_index(file.path, kStamp, times_of(recording));
    ASSERT_TRUE(index);
    const std::vector<IndexFacts::Size>& sizes = index->facts().sizes;
    ASSERT_FALSE(sizes.empty());
    if (seed % 4 != 0) {  // What comes late is counted when it comes.
      SizesTold expected(times_of(recording)), told(times_of(recording));
      Heap heap;
      heap.add_observer(&expected);
      recording.play(&heap);
      for (uint32_t step = 0; step < IndexTimes::kSteps; ++step)
        ASSERT_TRUE(index->cover_sizes(step, step + 1, [&](const IndexEntry& entry) {
          SizesTold::Key key = {step, sizes[entry.cell].image, sizes[entry.cell].size};
          told.live[key] += entry.live_bytes;
          told.calls[key] += entry.allocations + entry.reallocations;
        }));
      std::erase_if(told.calls, [](const auto& step) { return step.second == 0; });
      ASSERT_EQ(told.calls, expected.calls) << "seed " << seed;
      ASSERT_EQ(told.live, expected.live) << "seed " << seed;
    }
    for (int round = 0; round < 40; ++round) {
      Question q = any_question(&recording, index->facts());
      ++asked;
      std::optional<Index::Steps> steps = index->steps_of(q.window);
      std::vector<bool> selected = index->selected(recording.tables, q.selection);
      if (!steps || selected.empty()) continue;
      ++answered;
      TallyOptions by_size;
      by_size.by_size = by_size.exact_size = true;
      by_size.by_stack = false;
      using Amounts = std::array<uint64_t, 6>;
      std::map<std::pair<ImageId, uint64_t>, Amounts> expected, told;
      auto accounts = direct(recording, q.selection, q.window, by_size);
      accounts->tally().for_each_row([&](const Row& row) {
        const Counts& a = row.amounts;
        expected[{row.image, row.size}] = {a.allocations, a.reallocations, a.allocated_bytes,
                                           a.live_bytes,  a.live_blocks,   a.peak_bytes};
      });
      std::vector<IndexEntry> sums;
      ASSERT_TRUE(index->sum_sizes(q.selection, q.window, *steps, &sums));
      for (size_t i = 0; i < sums.size(); ++i) {
        const IndexEntry& a = sums[i];
        Amounts amounts = {a.allocations,
                           a.reallocations,
                           a.allocated_bytes,
                           static_cast<uint64_t>(a.live_bytes),
                           static_cast<uint64_t>(a.live_blocks),
                           static_cast<uint64_t>(a.peak_bytes)};
        if (selected[raw(sizes[i].image) - 1] && amounts != Amounts{})
          told[{sizes[i].image, sizes[i].size}] = amounts;
      }
      std::erase_if(expected, [](const auto& row) { return row.second == Amounts{}; });
      ASSERT_EQ(told, expected) << "seed " << seed << ", round " << round << ", from "
                                << q.window.from_tick << " to " << q.window.to_tick;
    }
  }
  EXPECT_GT(answered, asked / 3);  // Or nothing was compared.
}

// Each image's stacks as rows, or some of their cells, whatever moments are kept and however far
// that has come.
TEST(IndexSums, AnswersAsTheIndexDoes) {
  int answered = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    Recording recording(seed);
    File file(seed);
    build(recording, file.path);
    auto index = open_index(file.path, kStamp, times_of(recording));
    ASSERT_TRUE(index);
    constexpr uint32_t kStacks = 32;
    std::vector<uint32_t> row_of_cell;
    for (const IndexCell& cell : index->cells())
      row_of_cell.push_back((raw(cell.image) - 1) * kStacks + raw(cell.stack));
    size_t rows = recording.tables.images.size() * kStacks;
    IndexSums sums(index.get(), index->cells().size() * 24 * recording.pick(40));
    for (unsigned i = recording.pick(40); i > 0 && sums.prepare(); --i) continue;
    for (int round = 0; round < 40; ++round) {
      Question q = any_question(&recording, index->facts());
      auto expected = index->answer(recording.tables, q.selection, q.window, {});
      if (!expected) continue;
      ++answered;
      IndexSums::Amounts found;
      IndexSums::Wanted wanted = IndexSums::all();
      if (recording.pick(2)) {
        wanted = {};
        for (bool& amount : wanted) amount = recording.pick(3) == 0;
      }
      ASSERT_TRUE(sums.sum(q.selection, q.window, *index->steps_of(q.window), wanted,
                           {row_of_cell, rows}, &found));
      std::vector<Counts> right(rows);
      expected->for_each_stack([&](ImageId image, StackId stack, const Amounts& amounts) {
        right[(raw(image) - 1) * kStacks + raw(stack)] = amounts;
      });
      for (size_t row = 0; row < rows; ++row) {
        if (!q.selection.contains(recording.tables.images[row / kStacks])) continue;
        const Counts& r = right[row];
        const uint64_t amounts[] = {r.allocations, r.reallocations, r.temporary, r.allocated_bytes,
                                    r.live_bytes,  r.live_blocks,   r.peak_bytes};
        for (size_t amount = 0; amount < IndexSums::kAmounts; ++amount) {
          if (!wanted[amount]) continue;
          ASSERT_EQ(found[amount][row], amounts[amount])
              << "amount " << amount << ", seed " << seed << ", round " << round;
        }
      }
      for (int more = 0; more < 3; ++more) sums.prepare();
    }
  }
  EXPECT_GT(answered, 500);  // Or nothing was compared.
}

// Rows of any kind, of any sizes.
TEST(IndexSums, TellsAnySizesAsALookAtAllEventsDoes) {
  int asked = 0, answered = 0;
  size_t cut = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    Recording recording(seed);
    File file(seed);
    build(recording, file.path);
    auto index = open_index(file.path, kStamp, times_of(recording));
    ASSERT_TRUE(index);
    IndexSums sums(index.get(), index->cells().size() * 24 * recording.pick(40));
    for (unsigned i = recording.pick(40); i > 0 && sums.prepare(); --i) continue;
    for (int round = 0; round < 40; ++round) {
      Question q = any_sized_question(&recording, index->facts());
      q.options.by_stack = true;
      ++asked;
      std::optional<Index::Steps> steps = index->steps_of(q.window);
      if (!steps || index->selected(recording.tables, q.selection).empty()) continue;
      ++answered;
      CellRows rows(*index, recording.tables, q.selection, q.options);
      cut += rows.cut.has_value();
      IndexSums::Wanted wanted = IndexSums::all();
      if (recording.pick(2))
        for (bool& amount : wanted) amount = recording.pick(3) == 0;
      IndexSums::Amounts found;
      ASSERT_TRUE(sums.sum(q.selection, q.window, *steps, wanted, rows.together(), &found));
      using Numbers = std::array<uint64_t, IndexSums::kAmounts>;
      std::map<std::string, Numbers> told, right;
      auto keep = [&](std::map<std::string, Numbers>* to, ImageId image, StackId stack,
                      StrandId strand, unsigned size_class, Numbers numbers) {
        for (size_t i = 0; i < numbers.size(); ++i)
          if (!wanted[i]) numbers[i] = 0;
        if (numbers != Numbers{})
          (*to)[fmt::format("{} {} {} {}", raw(image), raw(stack), raw(strand), size_class)] =
              numbers;
      };
      for (size_t i = 0; i < rows.rows.size(); ++i) {
        Numbers numbers = {};
        for (size_t k = 0; k < numbers.size(); ++k)
          if (wanted[k]) numbers[k] = found[k][i];
        const CellRows::Id& id = rows.rows[i];
        keep(&told, id.image, id.stack, id.strand, id.size_class, numbers);
      }
      direct(recording, q.selection, q.window, q.options)->tally().for_each_row([&](const Row& r) {
        const Counts& a = r.amounts;
        keep(&right, r.image, r.stack, r.strand, r.size_class,
             {a.allocations, a.reallocations, a.temporary, a.allocated_bytes, a.live_bytes,
              a.live_blocks, a.peak_bytes});
      });
      ASSERT_EQ(told, right) << "seed " << seed << ", round " << round << ", sizes "
                             << q.options.min_size << " to " << q.options.max_size << ", from "
                             << q.window.from_tick << " to " << q.window.to_tick;
    }
  }
  EXPECT_GT(answered, asked / 3);  // Or nothing was compared.
  EXPECT_GT(cut, 300u);
}

TEST(Index, WhoHasEndedHasNoShareOfAPeakInTheSameSlice) {
  Recording recording(4, 0);
  ASSERT_GE(recording.tables.images.size(), 2u);
  auto made = [&](uint32_t image, uint64_t tick, uint64_t size) {
    wire::Event e;
    e.kind = wire::Kind::kAlloc;
    e.op = wire::Op::kMalloc;
    e.image = ImageId{image};
    e.tick = tick;
    e.address = tick * 16;
    e.size = size;
    e.stack = StackId{1};
    recording.actions.push_back(std::vector<wire::Event>{e});
  };
  uint64_t tick = kStart + recording.slice * 100;
  recording.tables.images[0].end_tick = tick + 3;
  recording.actions.push_back(Recording::Started{0});
  recording.actions.push_back(Recording::Started{1});
  made(1, tick + 1, 100);
  made(2, tick + 2, 1000);
  recording.actions.push_back(Recording::Ended{0});
  made(2, tick + 4, 5000);
  File file(0);
  build(recording, file.path);
  auto index = open_index(file.path, kStamp, times_of(recording));
  ASSERT_TRUE(index);
  for (Window window : {Window{}, Window{tick, UINT64_MAX}, Window{0, tick + recording.slice}}) {
    auto answer = index->answer(recording.tables, {}, window, {});
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->peak().bytes, 6000u);
    EXPECT_EQ(told(*answer, recording.tables),
              told(*direct(recording, {}, window, {}), recording.tables));
  }
}

TEST(Index, DoesNotAnswerWhatItCannotKnow) {
  Recording recording(1);
  File file(0);
  build(recording, file.path);
  auto index = open_index(file.path, kStamp, times_of(recording));
  ASSERT_TRUE(index);
  auto answers = [&](Window window, TallyOptions options) {
    return index->answer(recording.tables, {}, window, options) != nullptr;
  };
  EXPECT_TRUE(answers({}, {}));
  EXPECT_FALSE(answers({kStart + 7, UINT64_MAX}, {}));
  EXPECT_FALSE(answers({0, recording.end() - 3}, {}));
  TallyOptions details, size, exact;
  details.details = true;
  size.min_size = 100;
  exact.by_size = exact.exact_size = true;
  EXPECT_FALSE(answers({}, details));
  EXPECT_FALSE(answers({}, size));
  EXPECT_FALSE(answers({}, exact));
  Selection nobody;
  nobody.pid = 12345;
  EXPECT_FALSE(index->answer(recording.tables, nobody, {}, {}));
  // Peaks of images are kept, but not who had which share in them.
  ASSERT_GE(recording.tables.images.size(), 2u);
  Selection one_image;
  one_image.image = ImageId{1};
  EXPECT_FALSE(index->answer(recording.tables, one_image, {}, {}));
}

TEST(Index, OfAnotherTraceIsNone) {
  Recording recording(2);
  File file(0);
  build(recording, file.path);
  IndexTimes times = times_of(recording);
  EXPECT_TRUE(open_index(file.path, kStamp, times));
  EXPECT_FALSE(open_index(file.path, {9, 2, 3}, times));
  EXPECT_FALSE(open_index(file.path, {1, 9, 3}, times));
  EXPECT_FALSE(open_index(file.path, {1, 2, 9}, times));
  EXPECT_FALSE(open_index("/nonexistent", kStamp, times));
  EXPECT_FALSE(open_index("/dev/zero", kStamp, times));
  EXPECT_EQ(std::filesystem::status(file.path).permissions(), std::filesystem::perms(0600));
}

TEST(Index, DamagedAnywhereGivesTheSameAnswerOrNone) {
  Recording recording(3, 30, true);
  File file(0);
  build(recording, file.path);
  std::ifstream in(file.path, std::ios::binary);
  std::string whole((std::istreambuf_iterator<char>(in)), {});
  IndexTimes times = times_of(recording);
  Window window = {times.cuts[13], UINT64_MAX};
  std::string expected = told(*direct(recording, {}, window, {}), recording.tables);
  TallyOptions leaking;
  leaking.only_made_in_window = leaking.details = true;
  std::string leaks = told_of_leaks(*direct(recording, {}, window, leaking));
  // What takes other parts of the file: lifetimes, overhead, odd sizes, single blocks.
  TallyOptions odd;
  odd.min_size = 30, odd.max_size = 700;
  auto tell_others = [&](Index* index) -> std::optional<std::string> {
    std::optional<Index::Steps> steps = index->parting_steps_of(window);
    if (!steps || index->selected(recording.tables, {}).empty()) return std::nullopt;
    CellRows rows(*index, recording.tables, {}, odd);
    IndexSums sums(index, 0);
    std::vector<uint64_t> ticks, overhead;
    IndexSums::Amounts amounts;
    SiteBlocks blocks({}, 1000);
    SiteBlocks::Cells cells = {std::vector(index->cells().size(), SiteBlocks::Cells::kAll), 0,
                               UINT64_MAX};
    if (!sum_lifetimes(*index, recording.tables, window, *steps, rows.together(), &ticks) ||
        !sum_overhead(*index, &sums, recording.tables, {}, window, *steps, rows.together(),
                      &overhead) ||
        !sums.sum({}, window, *steps, IndexSums::all(), rows.together(), &amounts) ||
        !blocks.restore(*index, *steps, cells))
      return std::nullopt;
    std::string text = fmt::format("{}", blocks.blocks());
    for (size_t i = 0; i < rows.rows.size(); ++i)
      text += fmt::format(" {} {} {}", ticks[i], overhead[i], amounts[IndexSums::kPeakBytes][i]);
    return text;
  };
  std::string others = *tell_others(open_index(file.path, kStamp, times).get());
  int removed = 0;
  auto ask = [&](const std::string& bytes) {
    std::ofstream(file.path, std::ios::binary | std::ios::trunc) << bytes;
    auto index = open_index(file.path, kStamp, times);
    if (!index) return false;
    auto answer = index->answer(recording.tables, {}, window, {});
    auto left = index->leaks(recording.tables, {}, window, leaking);
    std::optional<std::string> told_others = tell_others(index.get());
    removed += !std::filesystem::exists(file.path);
    EXPECT_EQ(told_others.value_or(others), others);
    EXPECT_EQ(left ? told_of_leaks(*left) : leaks, leaks);
    EXPECT_EQ(answer ? told(*answer, recording.tables) : expected, expected);
    return answer && left && told_others;
  };
  ASSERT_TRUE(ask(whole));
  int refused = 0;
  for (int i = 0; i < 400; ++i) {
    std::string bytes = whole;
    size_t at = recording.random() % bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ 1 << recording.pick(8));
    refused += !ask(bytes);
  }
  EXPECT_GT(refused, 200);
  EXPECT_GT(removed, 50);  // It is of no use to anybody.
  for (int i = 0; i < 50; ++i)
    EXPECT_FALSE(ask(whole.substr(0, recording.random() % whole.size())));
}

TEST(IndexBlock, GivesBackWhatWasWritten) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    bool own = round % 2;
    std::vector<IndexEntry> entries;
    bool in_order = round % 4 < 2;
    IndexBlockWriter writer(own, in_order);
    uint32_t cell = 0;
    std::vector<uint32_t> usual;
    auto number = [&] { return random() >> (random() % 64); };
    for (int i = 0; i < 50; ++i) {
      IndexEntry e;
      e.cell = cell += 1 + static_cast<uint32_t>(random() % 300);
      e.allocations = random() % 6;
      e.reallocations = random() % 3;
      e.temporary = random() % 3;
      if (e.allocations || e.reallocations) e.allocated_bytes = number();
      e.live_bytes =
          random() % 3 ? static_cast<int64_t>(number()) : static_cast<int64_t>(e.allocated_bytes);
      e.live_blocks = random() % 3 ? static_cast<int64_t>(random() % 9) - 4
                                   : static_cast<int64_t>(e.allocations);
      e.peak_bytes = random() % 3 ? static_cast<int64_t>(number()) : e.live_bytes;
      e.own_peak_bytes = own ? static_cast<int64_t>(number()) : e.peak_bytes;
      if (random() % 2) {  // Of one block.
        bool made = random() % 2, gone = !made || random() % 2;
        auto size = static_cast<int64_t>(number() >> random() % 40);
        int64_t change = made ? size : -size;
        e = {e.cell, made, 0, made && gone && random() % 2, made ? static_cast<uint64_t>(size) : 0};
        e.live_blocks = int{made} - int{gone};
        e.live_bytes = made && gone ? 0 : change;
        e.peak_bytes = random() % 2 ? change : 0;
        e.own_peak_bytes = own ? random() % 2 ? change : 0 : e.peak_bytes;
      }
      usual.resize(e.cell + size_t{1});
      if (random() % 2)
        usual[e.cell] = static_cast<uint32_t>(
            e.allocated_bytes > 0 ? e.allocated_bytes : 0 - static_cast<uint64_t>(e.live_bytes));
      writer.add(e, usual[e.cell]);
      entries.push_back(e);
    }
    PackedBlock packed = writer.finish();
    IndexBlockReader reader;
    ASSERT_TRUE(reader.open(&packed.bytes, packed.raw_bytes, own));
    std::vector<IndexEntry> read;
    EXPECT_TRUE(reader.for_each(usual, [&](const IndexEntry& e) { read.push_back(e); }));
    if (!in_order) std::ranges::sort(read, {}, &IndexEntry::cell);
    ASSERT_EQ(read.size(), entries.size());
    for (size_t i = 0; i < read.size(); ++i) {
      const IndexEntry &e = read[i], &x = entries[i];
      EXPECT_EQ(std::tie(e.cell, e.allocations, e.reallocations, e.temporary, e.allocated_bytes,
                         e.live_bytes, e.live_blocks, e.peak_bytes, e.own_peak_bytes),
                std::tie(x.cell, x.allocations, x.reallocations, x.temporary, x.allocated_bytes,
                         x.live_bytes, x.live_blocks, x.peak_bytes, x.own_peak_bytes));
    }
    IndexBlockReader::UsualSizes too_few = std::span(usual).first(cell);
    EXPECT_FALSE(reader.for_each(too_few, [](const IndexEntry&) {}));
    std::vector<uint32_t> group_of_cell(cell + size_t{1});
    for (uint32_t& group : group_of_cell) group = random() % 2 ? UINT32_MAX : 0;
    IndexBlockReader::Counting counting(usual, group_of_cell);
    IndexBlockReader::Sum sum, right;
    ASSERT_TRUE(reader.sum(counting, &sum));
    for (const IndexEntry& e : entries) {
      if (group_of_cell[e.cell] != 0) continue;
      right.allocations += e.allocations;
      right.allocated_bytes += e.allocated_bytes;
      right.live_bytes += static_cast<uint64_t>(e.live_bytes);
      right.live_blocks += static_cast<uint64_t>(e.live_blocks);
    }
    EXPECT_EQ(
        std::tie(sum.allocations, sum.allocated_bytes, sum.live_bytes, sum.live_blocks),
        std::tie(right.allocations, right.allocated_bytes, right.live_bytes, right.live_blocks));
    group_of_cell.pop_back();
    EXPECT_FALSE(reader.sum(IndexBlockReader::Counting(too_few, group_of_cell), &sum));
  }
}

}  // namespace
}  // namespace malloscope::analyze
