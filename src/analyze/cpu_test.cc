// SPDX-License-Identifier: Apache-2.0
// Made-up recordings of threads that compute, in phases and out of them, by stacks that allocate
// and by others: whatever is asked of their CPU time is what a look at each sample gives.

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <numeric>
#include <set>

#include "analyze/call_graph.h"
#include "analyze/cpu_samples.h"
#include "analyze/cpu_summary.h"
#include "analyze/explorer.h"
#include "analyze/made_up_for_test.h"
#include "analyze/profile_views.h"
#include "trace/cpu_stacks.h"
#include "trace/file_writer.h"
#include "wire/encode.h"
#include "wire/records.h"
#include "wire/stacks.h"

namespace malloscope::analyze {
namespace {

// Of a sample, as it was made up.
struct Told {
  uint64_t tick, nanoseconds;
  ThreadId thread;
  std::vector<int> functions;    // Innermost first; empty: nobody knows.
  std::set<std::string> phases;  // Open then.
  std::string innermost = kNoPhase;
};

struct Computing : ToyRecording {
  std::vector<Told> told;

  explicit Computing(unsigned seed) : ToyRecording(seed, 400) {
    tables.header.settings = {"cpu=true"};
    tables.mark_names = {"load", "event"};
    trace::Image& image = tables.images[0];
    // Stacks that never allocate, as a signal handler walks them: the trampoline is f1 here.
    for (uint32_t s = kStacks + 1; s <= kStacks + 30; ++s) {
      std::vector<int> functions;
      for (unsigned depth = 1 + pick(5); depth-- > 0;)
        functions.push_back(static_cast<int>(1 + pick(kFunctions)));
      std::vector<uint64_t> outer_first;
      for (size_t i = functions.size(); i-- > 0;)
        outer_first.push_back(kModule + static_cast<uint64_t>(functions[i]) * 16 +
                              (i == 0 ? wire::kInterrupted : 1));
      outer_first.push_back(kModule + 17);
      image.stacks.define(StackId{s}, StackId::kNone, 0, 0, 0, outer_first.data(),
                          outer_first.size());
      stacks.push_back(functions);
    }
    uint64_t end = *tables.end_tick, tick = 5;
    // A phase of the process, and one of each thread inside of it, again and again.
    std::vector<bool> open_of(kThreads + 1);
    bool open = false;
    while (tick < end) {
      tick += 1 + pick(4);
      ThreadId thread{1 + pick(kThreads)};
      std::vector<bool>::reference own = open_of[raw(thread)];
      switch (pick(12)) {
        case 0:
          image.marks.push_back(
              {tick, thread, open ? wire::MarkKind::kPhaseEnd : wire::MarkKind::kPhaseBegin, 0});
          open = !open;
          break;
        case 1:
          image.marks.push_back(
              {tick, thread,
               own ? wire::MarkKind::kThreadPhaseEnd : wire::MarkKind::kThreadPhaseBegin, 1});
          own = !own;
          break;
        default: {
          StackId stack{pick(10) == 0 ? 0 : 1 + pick(kStacks + 30)};
          image.cpu.push_back({tick, 1 + pick(5000), thread, stack});
          Told& sample = told.emplace_back();
          sample = {tick, image.cpu.back().nanoseconds, thread, stacks[raw(stack)], {}};
          if (open) sample.phases.insert(sample.innermost = "load");
          if (own) sample.phases.insert(sample.innermost = "event");
        }
      }
    }
    trace::name_cpu_stacks(&image);
  }

  std::unique_ptr<Reading> read_cpu(const Query& query, Window window = {}) const {
    auto accounts =
        cpu_accounts(CpuSamples(tables), tables, query.selection, window, query.tally_of_strands());
    return std::make_unique<Reading>("toy", tables, std::move(accounts),
                                     std::make_unique<ToyNaming>());
  }
};

std::string name_of(int function) { return "f" + std::to_string(function); }

using Sums = std::map<std::string, uint64_t>;

Sums grouped_by(Reading* reading, const Query& query, By by) {
  RowGroups groups(reading, query, by);
  std::vector<uint64_t> sums;
  reading->for_each_row([&](const Row& row) {
    std::optional<size_t> group = groups.of(row);
    if (!group) return;
    sums.resize(std::max(sums.size(), *group + 1));
    sums[*group] += value(row.amounts, Metric::kCpu);
  });
  Sums found;
  std::vector<RowGroups::Group> named = groups.take();
  for (size_t i = 0; i < sums.size(); ++i)
    found[by == By::kSite ? named[i].site.full : named[i].name] += sums[i];
  return found;
}

Query query_for_cpu() {
  Query query;
  ask_for(Metric::kCpu, &query);
  return query;
}

TEST(Cpu, SumsAreThoseOfTheSamples) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Computing recording(seed);
    Window window;
    if (seed % 2) {
      window.from_tick = 1 + recording.pick(static_cast<unsigned>(*recording.tables.end_tick));
      window.to_tick =
          window.from_tick + recording.pick(static_cast<unsigned>(*recording.tables.end_tick));
    }
    auto counts = [&](const Told& sample) {
      return sample.tick >= window.from_tick && sample.tick <= window.to_tick;
    };
    Query query = query_for_cpu();
    auto reading = recording.read_cpu(query, window);

    // By function: itself, and with what it called; a recursive one once.
    Sums self, all, sites;
    uint64_t sum = 0, samples = 0;
    for (const Told& sample : recording.told) {
      if (!counts(sample)) continue;
      sum += sample.nanoseconds, ++samples;
      std::set<std::string> met;
      for (int function : sample.functions) met.insert(name_of(function));
      if (met.empty()) met.insert("[unknown]");
      for (const std::string& name : met) all[name] += sample.nanoseconds;
      self[sample.functions.empty() ? "[unknown]" : name_of(sample.functions[0])] +=
          sample.nanoseconds;
    }
    CallTree tree(reading.get(), query);
    EXPECT_EQ(tree.total().cpu_ns, sum);
    EXPECT_EQ(tree.total().cpu_samples, samples);
    Sums tree_self, tree_all;
    for (const GraphFunction& function : CallGraph(tree).functions) {
      const std::string& name = tree.symbol(function.symbol).full;
      if (function.self.cpu_ns > 0) tree_self[name] += function.self.cpu_ns;
      if (function.cumulative.cpu_ns > 0) tree_all[name] += function.cumulative.cpu_ns;
    }
    EXPECT_EQ(tree_self, self) << seed;
    EXPECT_EQ(tree_all, all) << seed;
    EXPECT_EQ(grouped_by(reading.get(), query, By::kSite), self) << seed;

    CpuSum in_short = cpu_sum(*reading);
    EXPECT_EQ(in_short.nanoseconds, sum);
    EXPECT_EQ(in_short.samples, samples);
    self.erase("[unknown]");
    uint64_t most = 0;
    for (const auto& [name, nanoseconds] : self) most = std::max(most, nanoseconds);
    EXPECT_EQ(heaviest_function(reading.get()).nanoseconds, most);
  }
}

TEST(Cpu, IsToldByThreadAndPhase) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    Computing recording(seed);
    Sums threads, phases, in_load, of_second;
    uint64_t both = 0;
    for (const Told& sample : recording.told) {
      std::string thread = fmt::format("t{0} (10{0})", raw(sample.thread));
      threads[thread] += sample.nanoseconds;
      phases[sample.innermost] += sample.nanoseconds;
      std::string site = sample.functions.empty() ? "[unknown]" : name_of(sample.functions[0]);
      if (sample.phases.contains("load")) in_load[site] += sample.nanoseconds;
      if (sample.thread == ThreadId{2}) of_second[site] += sample.nanoseconds;
      if (sample.thread == ThreadId{2} && sample.phases.contains("event"))
        both += sample.nanoseconds;
    }
    Query query = query_for_cpu();
    query.tally.by_thread = query.tally.by_phase = true;
    auto reading = recording.read_cpu(query);
    EXPECT_EQ(grouped_by(reading.get(), query, By::kThread), threads);
    EXPECT_EQ(grouped_by(reading.get(), query, By::kPhase), phases);

    QueryWords words;
    words.phases = {"load"};
    query = *query_of(words);
    ask_for(Metric::kCpu, &query);
    EXPECT_EQ(grouped_by(recording.read_cpu(query).get(), query, By::kSite), in_load);
    words.phases.clear();
    words.threads = {"102"};
    query = *query_of(words);
    ask_for(Metric::kCpu, &query);
    EXPECT_EQ(grouped_by(recording.read_cpu(query).get(), query, By::kSite), of_second);
    words.phases = {"event"};
    query = *query_of(words);
    ask_for(Metric::kCpu, &query);
    EXPECT_EQ(CallTree(recording.read_cpu(query).get(), query).total().cpu_ns, both);
  }
}

TEST(Cpu, IsFilteredByFunctions) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    Computing recording(seed);
    uint64_t focused = 0, with_both = 0, in_fifth = 0;
    for (const Told& sample : recording.told) {
      auto has = [&](int function) { return std::ranges::count(sample.functions, function) > 0; };
      if (has(2) && !has(4)) focused += sample.nanoseconds;
      if (has(3) && has(5)) with_both += sample.nanoseconds;
      if (has(5)) in_fifth += sample.nanoseconds;
    }
    auto total = [&](const QueryWords& words) {
      Query query = *query_of(words);
      ask_for(Metric::kCpu, &query);
      return CallTree(recording.read_cpu(query).get(), query).total().cpu_ns;
    };
    QueryWords words;
    words.focus = {"^f2$"};
    words.ignore = {"^f4$"};
    EXPECT_EQ(total(words), focused);
    words = {};
    words.where = "/^f3$/ and /^f5$/";
    EXPECT_EQ(total(words), with_both);
    words = {};
    words.only_under = {"^f5$"};
    EXPECT_EQ(total(words), in_fifth);
    words = {};
    words.hide = {"f[0-9]"};
    EXPECT_EQ(total(words),
              std::accumulate(recording.told.begin(), recording.told.end(), uint64_t{0},
                              [](uint64_t sum, const Told& s) { return sum + s.nanoseconds; }));
  }
}

// What is asked of blocks is as without samples.
TEST(Cpu, LeavesOtherMetricsAlone) {
  Computing recording(3);
  auto with = recording.read();
  recording.tables.images[0].cpu.clear();
  auto without = recording.read();
  auto rows = [](const Reading& reading) {
    std::vector<std::tuple<uint32_t, uint64_t, uint64_t>> found;
    reading.for_each_row([&](const Row& row) {
      found.emplace_back(raw(row.stack), row.amounts.allocations, row.amounts.peak_bytes);
    });
    return found;
  };
  EXPECT_EQ(rows(*with), rows(*without));
  EXPECT_EQ(with->sites().size(), without->sites().size());
}

TEST(Cpu, RefusesWhatItDoesNotHave) {
  Query query = query_for_cpu();
  EXPECT_TRUE(suits(Metric::kCpu, By::kThread, query));
  EXPECT_FALSE(suits(Metric::kCpu, By::kSize, query));
  EXPECT_FALSE(suits(Metric::kCpu, By::kType, query));
  EXPECT_TRUE(suits(Metric::kPeak, By::kType, query));
  query.tally.min_size = 8;
  EXPECT_FALSE(suits(Metric::kCpu, By::kSite, query));
  QueryWords words;
  words.types = {"int"};
  EXPECT_FALSE(suits(Metric::kCpu, By::kSite, *query_of(words)));
  ToyRecording none(1, 50);
  EXPECT_FALSE(recorded(Metric::kCpu, *none.read()));
  EXPECT_TRUE(recorded(Metric::kPeak, *none.read()));
  none.tables.header.settings = {"cpu=true"};  // Nobody computed for long enough.
  EXPECT_TRUE(recorded(Metric::kCpu, *none.read()));
}

TEST(Cpu, IsDrawnOverTheTimeBeforeASample) {
  const std::vector<uint64_t> cuts = {100, 110, 120, 130, 140};
  auto drawn = [&](uint64_t tick, uint64_t nanoseconds) {
    std::vector<double> slices(cuts.size() - 1);
    CpuSamples::spread({tick, nanoseconds, ImageId{1}, {}, {}}, cuts, 2,
                       [&](size_t slice, double ns) { slices[slice] += ns; });
    return slices;
  };
  using Slices = std::vector<double>;
  EXPECT_EQ(drawn(125, 10), (Slices{0, 0, 10, 0}));      // From 120 on.
  EXPECT_EQ(drawn(125, 30), (Slices{0, 20, 10, 0}));     // From 110.
  EXPECT_EQ(drawn(130, 30), (Slices{0, 10, 20, 0}));     // A slice is with its end.
  EXPECT_EQ(drawn(120, 900), (Slices{450, 450, 0, 0}));  // More than there was time for.
  for (uint64_t tick : {50, 100, 101, 110, 139, 140, 200})
    for (uint64_t nanoseconds : {0, 1, 7, 60, 1000}) {
      Slices slices = drawn(tick, nanoseconds);
      EXPECT_NEAR(std::accumulate(slices.begin(), slices.end(), 0.0),
                  static_cast<double>(nanoseconds), 1e-6)
          << tick << " " << nanoseconds;
    }
}

// A file with two processes, of which the second only computes.
class CpuFile : public testing::Test {
 protected:
  static constexpr uint64_t kStart = 1000, kEnd = 101'000;

  CpuFile() {
    trace::FileWriter file(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), path_);
    auto put = [&](wire::ChunkType type, const auto& record) {
      wire::Packer payload;
      wire::pack(record, &payload);
      file.append(type, payload.result(), kStart, kEnd);
    };
    wire::HeaderRecord header;
    header.tick_shift = 8;
    header.cycles_per_second = 2'560'000'000;  // A tick is 100 ns.
    header.start_tick = kStart;
    header.recorder_version = "test";
    header.settings = {"cpu=true"};
    put(wire::ChunkType::kHeader, header);
    for (uint64_t i = 1; i <= 2; ++i) {
      wire::ImageStartRecord start;
      start.image = i;
      start.pid = 100 + i;
      start.start_tick = kStart;
      start.executable = "/nowhere/app";
      put(wire::ChunkType::kImageStart, start);
      for (uint64_t t = 1; t <= 2; ++t)
        put(wire::ChunkType::kThread,
            wire::ThreadRecord{i, t, 10 * i + t, 0, "t" + std::to_string(t)});
      wire::StackEncoder encoder;
      for (uint32_t s = 1; s <= 8; ++s) {
        std::vector<uint64_t> frames = {0x1000, 0x1000 + s % 3 * 16, 0x1000 + s * 16};
        if (s > 4) {
          frames.back() |= wire::kInterrupted;
          frames.push_back(0x1001);
        }
        encoder.add(s, 0, 0, 0, 0, frames);
      }
      file.append(wire::ChunkType::kStacks, encoder.finish(ImageId{static_cast<uint32_t>(i)}),
                  kStart, kEnd);
    }
    for (int i = 0; i < 500; ++i) {
      wire::CpuRecord sample = {1 + pick(2), 1 + pick(2), kStart + 1 + pick(kEnd - kStart), pick(9),
                                pick(90'000)};
      if (pick(20) == 0) sample.tick = kStart + (sample.tick - kStart) / 100 * 100;  // At a cut.
      samples_.push_back(sample);
      put(wire::ChunkType::kCpu, sample);
    }
    for (uint64_t tick : {21'000, 61'000}) {
      put(wire::ChunkType::kMarks,
          wire::MarkRecord{1, 1, tick, tick < 50'000 ? 2ull : 3ull, "middle"});
    }
    wire::EventEncoder events;
    events.start_run(ImageId{1}, ThreadId{1}, kStart + 10);
    for (uint64_t i = 1; i <= 100; ++i) {
      wire::Event event;
      event.tick = kStart + 10 * i;
      event.address = 16 * i;
      event.size = 10;
      event.stack = StackId{static_cast<uint32_t>(i % 5)};
      event.image = ImageId{1};
      event.thread = ThreadId{1};
      events.put(event);
    }
    file.append(wire::ChunkType::kEvents, events.finish(), kStart, kEnd);
    file.end_epoch(kEnd);
    wire::Packer payload;
    wire::pack(wire::EndRecord{kEnd, header.cycles_per_second, 100, ""}, &payload);
    file.finish(payload.result(), kEnd);
    EXPECT_TRUE(file.close());
  }
  ~CpuFile() override { std::filesystem::remove(path_); }

  uint64_t pick(uint64_t below) { return random_() % below; }

  template <typename Counts>
  uint64_t sum(Counts&& counts) const {
    uint64_t total = 0;
    for (const wire::CpuRecord& sample : samples_)
      if (counts(sample)) total += sample.nanoseconds;
    return total;
  }

  static Explorer::Question ask(const QueryWords& words, Metric metric = Metric::kCpu) {
    return *Explorer::Question::make(words, metric);
  }
  static void nothing(std::string_view, double) {}

  std::mt19937_64 random_{7};
  std::vector<wire::CpuRecord> samples_;
  std::string path_ = testing::TempDir() + "malloscope-cpu-" + std::to_string(getpid());
};

TEST_F(CpuFile, IsAnsweredWithoutEvents) {
  auto explorer = *Explorer::open(path_, {}, nothing);
  auto total = [&](const QueryWords& words) {
    auto amounts = explorer->amounts(ask(words), Explorer::Wanted::kMetric, nothing);
    EXPECT_TRUE(amounts);
    Explorer::Question question = ask(words);
    auto reading = Reading::open(path_, question.query);
    EXPECT_TRUE(reading);
    // As the command line has it.
    EXPECT_EQ((*amounts)->total.cpu_ns, CallTree(reading->get(), question.query).total().cpu_ns);
    return (*amounts)->total.cpu_ns;
  };
  using Sample = const wire::CpuRecord&;
  EXPECT_EQ(total({}), sum([](Sample) { return true; }));
  for (unsigned i = 0; i < 20; ++i) {
    uint64_t from = pick(900), to = from + pick(1000 - from);
    QueryWords words;
    words.from = fmt::format("{}.{}%", from / 10, from % 10);
    words.to = fmt::format("{}.{}%", to / 10, to % 10);
    uint64_t first = kStart + from * 100, last = kStart + to * 100;
    EXPECT_EQ(total(words),
              sum([&](Sample s) { return (s.tick > first || from == 0) && s.tick <= last; }))
        << words.from << " " << words.to;
  }
  QueryWords words;
  words.threads = {"t2"};
  words.selection.pid = 101;
  EXPECT_EQ(total(words), sum([](Sample s) { return s.thread == 2 && s.image == 1; }));
  words = {};
  words.phases = {"middle"};
  EXPECT_EQ(total(words),
            sum([](Sample s) { return s.image == 1 && s.tick >= 21'000 && s.tick < 61'000; }));
  words = {};
  words.min_size = "8";
  EXPECT_FALSE(explorer->amounts(ask(words), Explorer::Wanted::kMetric, nothing));
}

TEST_F(CpuFile, HasRowsAndNodesOfItsOwn) {
  auto explorer = *Explorer::open(path_, {}, nothing);
  Explorer::Question question = ask({});
  auto amounts = *explorer->amounts(question, Explorer::Wanted::kMetric, nothing);
  Explorer::Treeing tree = explorer->tree(question);
  Explorer::Grouping groups = explorer->groups(question, By::kSite);
  uint64_t all = sum([](const wire::CpuRecord&) { return true; }), in_groups = 0;
  for (size_t row = 0; row < explorer->rows().size(); ++row) {
    EXPECT_NE(tree->node_of_row[row], Explorer::kNobody);
    if (groups->group_of_row[row] != Explorer::kNobody)
      in_groups += amounts->at(row, Metric::kCpu).cpu_ns;
  }
  EXPECT_EQ(in_groups, all);
  EXPECT_EQ(explorer->values(*tree, *amounts, Metric::kCpu).total(FunctionTree::kRoot), all);
  // What was allocated is as the events say.
  auto blocks = *explorer->amounts(ask({}, Metric::kAllocations), Explorer::Wanted::kAll, nothing);
  EXPECT_EQ(blocks->total.allocations, 100u);
  EXPECT_EQ(blocks->total.cpu_ns, 0u);
  for (size_t row = 0; row < explorer->rows().size(); ++row) {
    bool computes = amounts->at(row, Metric::kCpu).cpu_ns > 0;
    bool allocates = blocks->at(row, Metric::kAllocations).allocations > 0;
    bool unknown = explorer->rows()[row].stack == StackId::kNone;  // That may be of both.
    EXPECT_TRUE(computes || allocates) << row;
    EXPECT_TRUE(unknown || computes == explorer->is_of_cpu(row)) << row;
    EXPECT_TRUE(unknown || allocates != explorer->is_of_cpu(row)) << row;
  }
}

TEST_F(CpuFile, GoesThroughTheTimeInSlices) {
  auto explorer = *Explorer::open(path_, {}, nothing);
  ASSERT_TRUE(explorer->index());
  QueryWords words;
  words.threads = {"t1"};
  for (const QueryWords& some : {QueryWords{}, words}) {
    std::vector<double> course = explorer->cpu_course(ask(some), 1, [](size_t) { return 0; });
    ASSERT_EQ(course.size(), kSlices);
    double all = static_cast<double>(
        sum([&](const wire::CpuRecord& s) { return some.threads.empty() || s.thread == 1; }));
    EXPECT_NEAR(std::accumulate(course.begin(), course.end(), 0.0), all, 1);
  }
  // Sums of slices are the sums of ranges.
  std::vector<uint64_t> slices(kSlices);
  explorer->for_each_sample(
      [&](uint32_t, uint32_t slice, uint64_t nanoseconds) { slices[slice] += nanoseconds; });
  for (auto [from, to] : {std::pair(0, 1000), std::pair(0, 137), std::pair(500, 999)}) {
    QueryWords range;
    range.from = fmt::format("{}.{}%", from / 10, from % 10);
    range.to = fmt::format("{}.{}%", to / 10, to % 10);
    auto amounts = *explorer->amounts(ask(range), Explorer::Wanted::kMetric, nothing);
    EXPECT_EQ(amounts->total.cpu_ns,
              std::accumulate(slices.begin() + from, slices.begin() + to, uint64_t{0}));
  }
}

}  // namespace
}  // namespace malloscope::analyze
