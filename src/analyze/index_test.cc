// SPDX-License-Identifier: Apache-2.0
// Whatever an index answers is what a look at all events gives, number by number. And a file that
// is damaged anywhere gives no other answer.

#include "analyze/index.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "analyze/cell_rows.h"
#include "analyze/index_life_sums.h"
#include "analyze/index_overhead.h"
#include "analyze/index_recording_for_test.h"
#include "analyze/index_sums.h"
#include "analyze/log_histogram.h"
#include "analyze/origins.h"
#include "analyze/site_blocks.h"

namespace malloscope::analyze {
namespace {

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
    Indexed made(seed, seed % 4 != 0);
    auto& [recording, file, index] = made;
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
    Indexed made(seed, seed % 4 != 0);
    auto& [recording, file, index] = made;
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
    Indexed made(seed, seed % 4 != 0);
    auto& [recording, file, index] = made;
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
