// SPDX-License-Identifier: Apache-2.0
// Made-up recordings of processes that fork, allocate from several threads, end and are cut,
// each by a clock of its own, merged in every way: nothing that is counted may change.

#include <fcntl.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <random>
#include <tuple>

#include "analyze/accounts.h"
#include "analyze/cpu_samples.h"
#include "trace/append.h"
#include "trace/merge_traces.h"
#include "wire/encode.h"
#include "wire/records.h"
#include "wire/stacks.h"

namespace malloscope::analyze {
namespace {

using wire::ChunkType;

// Writes a recording. Ticks are `phase` modulo kPhases: no two recordings with equal clocks that
// begin together have events at the same moment, which would leave the peak to chance.
class MadeUp {
 public:
  static constexpr uint64_t kPhases = 8, kStart = 800;

  MadeUp(const std::string& path, unsigned seed, uint64_t phase, uint64_t cycles_per_second,
         int steps)
      : random_(seed),
        file_(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), path),
        tick_(kStart + phase),
        next_(uint64_t{seed} << 32) {
    wire::HeaderRecord header;
    header.tick_shift = pick(2) ? 8 : 9;
    if (cycles_per_second == 0) header.tick_shift = 8;
    header.cycles_per_second = cycles_per_second ? cycles_per_second : 2'500'000'000;
    header.start_tick = kStart;
    header.start_unix_ns = 1'000'000'000ull * seed;
    header.recorder_version = "test";
    header.settings = {"follow=true", "seed=" + std::to_string(seed)};
    put(ChunkType::kHeader, header);
    file_.end_epoch(kStart);
    start_image(0);
    for (int i = 0; i < steps; ++i) {
      step();
      if (pick(40) == 0) end_epoch();
    }
    while (std::any_of(images_.begin(), images_.end(), [](auto& i) { return i.running; }))
      end_one();
    put(ChunkType::kNote, wire::NoteRecord{"a note of " + std::to_string(seed)});
    end_epoch();
    wire::EndRecord end = {tick_, header.cycles_per_second, 0, ""};
    wire::Packer payload;
    wire::pack(end, &payload);
    file_.finish(payload.result(), tick_);
    EXPECT_EQ(file_.error(), "");
  }

 private:
  struct Image {
    bool running = true;
    std::vector<uint64_t> live, inherited;
    wire::StackEncoder stacks;
    uint32_t defined = 0;
    uint64_t threads = 0;
    uint64_t marks = 0;
  };
  static constexpr unsigned kThreads = 3;

  uint64_t pick(uint64_t below) { return random_() % below; }

  template <typename Record>
  void put(ChunkType type, const Record& record) {
    wire::Packer payload;
    wire::pack(record, &payload);
    file_.append(type, payload.result(), tick_, tick_);
  }

  void start_image(uint64_t parent) {
    tick_ += kPhases;
    wire::ImageStartRecord start;
    start.image = images_.size() + 1;
    start.parent = parent;
    start.pid = 100 + images_.size();
    start.origin = parent ? 1 : 0;
    start.start_tick = tick_ + 3;
    start.forked_tick = parent ? tick_ : 0;
    start.executable = "/bin/toy";
    put(ChunkType::kImageStart, start);
    Image image;
    if (parent) {
      image.inherited = images_[parent - 1].live;
      for (uint64_t block : images_[parent - 1].inherited) image.inherited.push_back(block);
    }
    images_.push_back(std::move(image));
    tick_ += kPhases;
  }

  void end_one() {
    uint64_t number = pick(images_.size());
    if (!images_[number].running) return;
    tick_ += kPhases;
    images_[number].running = false;
    wire::ImageEndRecord end;
    end.image = number + 1;
    end.end_tick = tick_;
    end.exit_kind = wire::kExitCode;
    end.exit_value = number;
    end.lost = pick(3);
    end.truncated_stacks = pick(3);
    ends_.push_back(end);
    if (pick(2)) end_epoch();
  }

  wire::StackEncoder* stack_of(Image* image, wire::Event* event) {
    uint32_t id = static_cast<uint32_t>(1 + pick(image->defined + 1));
    if (id > 12) id = 12;
    while (image->defined < id) {
      uint32_t fresh = ++image->defined;
      uint64_t frames[2] = {0x10000 + pick(9) * 16 + 1, 0x10000 + pick(9) * 16 + 1};
      if (pick(3) == 0) frames[0] |= wire::kInterrupted;  // The other one is a trampoline.
      image->stacks.add(fresh, fresh - 1, fresh > 1 ? 1 : 0, 0, 0, frames);
    }
    event->stack = StackId{id};
    return &image->stacks;
  }

  void step() {
    uint64_t number = pick(images_.size());
    Image& image = images_[number];
    if (!image.running) return;
    if (pick(150) == 0 && images_.size() < 6) return start_image(number + 1);
    if (pick(400) == 0) return end_one();
    tick_ += kPhases * (1 + pick(pick(10) ? 20 : 3000));
    wire::Event event;
    event.tick = tick_;
    event.image = ImageId{static_cast<uint32_t>(number + 1)};
    event.thread = ThreadId{static_cast<uint32_t>(1 + pick(kThreads))};
    uint64_t what = pick(20);
    if (pick(10) == 0) {
      wire::CpuRecord sample = {number + 1, raw(event.thread), tick_, pick(image.defined + 1),
                                pick(5000)};
      put(ChunkType::kCpu, sample);
      return;
    }
    if (pick(15) == 0) {
      wire::MarkRecord mark = {number + 1, raw(event.thread), tick_, 1 + pick(wire::kMarkKinds - 1),
                               std::string(1, static_cast<char>('a' + pick(3)))};
      put(ChunkType::kMarks, mark);
      event.kind = wire::Kind::kMark;
      event.size = ++image.marks;
      events_.push_back(event);
      return;
    }
    auto take = [&](std::vector<uint64_t>* list) {
      uint64_t place = pick(list->size()), address = (*list)[place];
      list->erase(list->begin() + static_cast<ptrdiff_t>(place));
      return address;
    };
    if (what < 9 || (what < 15 && image.live.empty())) {
      event.address = next_ += 16;
      event.size = 1 + pick(5000);
      stack_of(&image, &event);
      image.live.push_back(event.address);
    } else if (what < 15) {
      event.kind = wire::Kind::kFree;
      event.op = wire::Op::kFree;
      event.address = take(&image.live);
    } else if (what < 17 && !image.live.empty()) {
      event.kind = wire::Kind::kReallocBegin;
      event.op = wire::Op::kRealloc;
      event.address = take(&image.live);
      events_.push_back(event);
      event.tick = tick_ += kPhases;
      event.kind = wire::Kind::kReallocEnd;
      event.address = next_ += 16;
      event.size = 1 + pick(5000);
      stack_of(&image, &event);
      image.live.push_back(event.address);
    } else if (what == 17) {
      wire::MappingRecord mapping = {raw(event.image), raw(event.thread), tick_, 24, 0,
                                     0x7000'0000,      4096 * pick(9),    0,     0};
      wire::pack(mapping, &mappings_);
      return;
    } else if (what == 18) {
      put(ChunkType::kRss, wire::RssRecord{number + 1, tick_, pick(1 << 20)});
      if (pick(2) == 0) put(ChunkType::kVm, wire::VmRecord{number + 1, tick_, pick(1 << 30)});
      return;
    } else {
      event.kind = wire::Kind::kFree;
      event.op = wire::Op::kFree;
      event.address =
          image.inherited.empty() ? 0x6000'0000 + 16 * pick(100) : take(&image.inherited);
    }
    events_.push_back(event);
  }

  void end_epoch() {
    std::map<std::pair<ImageId, ThreadId>, std::vector<wire::Event>> runs;
    for (const wire::Event& event : events_) runs[{event.image, event.thread}].push_back(event);
    for (size_t i = 0; i < images_.size(); ++i) {
      ImageId id{static_cast<uint32_t>(i + 1)};
      for (; images_[i].threads < kThreads; ++images_[i].threads)
        put(ChunkType::kThread, wire::ThreadRecord{i + 1, images_[i].threads + 1, 7, 0, "t"});
      if (!images_[i].stacks.empty())
        file_.append(ChunkType::kStacks, images_[i].stacks.finish(id), tick_, tick_);
    }
    uint64_t first = tick_;
    for (const auto& [whose, events] : runs) {
      encoder_.start_run(whose.first, whose.second, events[0].tick);
      first = std::min(first, events[0].tick);
      for (const wire::Event& event : events) encoder_.put(event);
    }
    if (encoder_.events()) file_.append(ChunkType::kEvents, encoder_.finish(), first, tick_);
    if (!mappings_.result().empty())
      file_.append(ChunkType::kMappings, mappings_.result(), tick_, tick_);
    for (const wire::ImageEndRecord& end : ends_) put(ChunkType::kImageEnd, end);
    events_.clear();
    mappings_.result().clear();
    ends_.clear();
    file_.end_epoch(tick_ + 1);
  }

  std::mt19937_64 random_;
  trace::FileWriter file_;
  wire::EventEncoder encoder_;
  std::vector<Image> images_;
  std::vector<wire::Event> events_;
  std::vector<wire::ImageEndRecord> ends_;
  wire::Packer mappings_;
  uint64_t tick_;
  uint64_t next_;  // The last address given out.
};

using Figures = std::vector<uint64_t>;

// Everything that is counted, as numbers that add up.
Figures figures(const Totals& t) {
  Figures list = {t.allocations,     t.reallocations,        t.frees,
                  t.inherited_frees, t.allocated_bytes,      t.freed_bytes,
                  t.live_bytes,      t.live_blocks,          t.temporary,
                  t.failed,          t.unmatched_frees,      t.order_violations,
                  t.mappings.calls,  t.mappings.mapped_bytes};
  list.insert(list.end(), t.calls.begin(), t.calls.end());
  return list;
}

void add(Figures* to, const Figures& other) {
  to->resize(std::max(to->size(), other.size()));
  for (size_t i = 0; i < other.size(); ++i) (*to)[i] += other[i];
}

// A recording as the reports see it.
struct Seen {
  trace::Tables tables;
  std::unique_ptr<Accounts> accounts =
      std::make_unique<Accounts>(Selection{}, Window{}, TallyOptions{.by_phase = true});
  std::vector<Figures> images;  // Of each image.
  Figures totals;
  // By image, stack and the names of phases.
  std::map<std::tuple<uint32_t, uint32_t, std::string>, Figures> stacks;
  // CPU time and samples, by image and by frames, thread and the names of phases.
  std::map<std::pair<uint32_t, std::string>, Figures> cpu;
  uint64_t peak = 0;
  // After each event and each end: when, and what the running images hold together.
  std::vector<std::pair<uint64_t, uint64_t>> curve;
};

// Passes all on, and draws the curve.
class Watch : public trace::Listener {
 public:
  Watch(Accounts* accounts, Seen* seen) : accounts_(*accounts), seen_(*seen) {}
  void image_started(const trace::Image& image) override {
    accounts_.image_started(image);
    running_.insert(image.id);
  }
  void events(std::span<const wire::Event> events) override {
    for (const wire::Event& event : events) {
      accounts_.events({&event, 1});
      note(event.tick);
    }
  }
  void image_ended(const trace::Image& image) override {
    accounts_.image_ended(image);
    running_.erase(image.id);
    note(*image.end_tick);
  }
  bool is_live(ImageId image, uint64_t address) override {
    return accounts_.is_live(image, address);
  }

 private:
  void note(uint64_t tick) {
    uint64_t bytes = 0;
    for (ImageId image : running_) bytes += accounts_.totals(image).live_bytes;
    seen_.curve.emplace_back(tick, bytes);
  }
  Accounts& accounts_;
  Seen& seen_;
  std::set<ImageId> running_;
};

Seen look(const std::string& path) {
  Seen seen;
  Watch watch(seen.accounts.get(), &seen);
  auto tables = trace::stream(path, &watch);
  EXPECT_TRUE(tables) << tables.error().sentence;
  if (!tables) return seen;
  seen.accounts->finish();
  seen.tables = std::move(*tables);
  for (const trace::Image& image : seen.tables.images) {
    Figures of_image = figures(seen.accounts->totals(image.id));
    for (uint64_t n :
         {image.lost, image.truncated_stacks, image.stacks.count(), uint64_t{image.threads.size()},
          uint64_t{image.rss.size()}, uint64_t{image.vm.size()}, uint64_t{image.marks.size()}})
      of_image.push_back(n);
    seen.images.push_back(of_image);
  }
  seen.totals = figures(seen.accounts->totals());
  seen.totals.push_back(seen.tables.events);
  seen.totals.push_back(seen.tables.images.size());
  seen.totals.push_back(seen.tables.notes.size());
  seen.accounts->tally().for_each_row([&](const Row& row) {
    std::string phases;  // The innermost last.
    for (uint32_t name : seen.accounts->phases().paths[raw(phases_of(row.strand))])
      phases += seen.tables.mark_names[name];
    if (!phases.empty()) std::sort(phases.begin(), phases.end() - 1);
    const Amounts& a = row.amounts;
    seen.stacks[{raw(row.image), raw(row.stack), phases}] = {a.allocations,     a.reallocations,
                                                             a.allocated_bytes, a.live_bytes,
                                                             a.live_blocks,     a.temporary};
  });
  auto cpu = cpu_accounts(CpuSamples(seen.tables), seen.tables, {}, {},
                          TallyOptions{.by_thread = true, .by_phase = true});
  cpu->tally().for_each_row([&](const Row& row) {
    std::vector<uint64_t> frames;
    seen.tables.image(row.image).stacks.frames(row.stack, &frames);
    std::string key = fmt::format("{} {}", fmt::join(frames, " "), raw(thread_of(row.strand)));
    std::set<std::string> phases;
    for (uint32_t name : cpu->phases().paths[raw(phases_of(row.strand))])
      phases.insert(seen.tables.mark_names[name]);
    key += fmt::format(" {}", fmt::join(phases, ""));
    add(&seen.cpu[{raw(row.image), key}], {row.amounts.cpu_ns, row.amounts.cpu_samples});
  });
  seen.peak = seen.accounts->peak().bytes;
  return seen;
}

class Merge : public testing::Test {
 protected:
  Merge() { std::filesystem::create_directory(folder_); }
  ~Merge() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  std::string make(const std::string& name, unsigned seed, uint64_t phase, uint64_t cycles = 0) {
    MadeUp(path(name), seed, phase, cycles, 1500);
    return path(name);
  }

  std::string merge(const std::vector<std::string>& inputs, bool together = false) {
    std::string output = path("merged" + std::to_string(++merges_));
    trace::FileWriter file(open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), output);
    auto merged = trace::merge_traces(inputs, {together, {}}, &file);
    EXPECT_TRUE(merged) << merged.error().sentence;
    EXPECT_TRUE(file.close());
    return output;
  }

  // All that adds up, of the whole, of each image and of each stack of each image.
  void expect_sum(const Seen& merged, const std::vector<const Seen*>& parts) {
    Figures sum;
    std::vector<Figures> images;
    std::map<std::tuple<uint32_t, uint32_t, std::string>, Figures> stacks;
    std::map<std::pair<uint32_t, std::string>, Figures> cpu;
    for (const Seen* part : parts) {
      uint32_t before = static_cast<uint32_t>(images.size());
      add(&sum, part->totals);
      images.insert(images.end(), part->images.begin(), part->images.end());
      for (const auto& [key, amounts] : part->stacks)
        stacks[{std::get<0>(key) + before, std::get<1>(key), std::get<2>(key)}] = amounts;
      for (const auto& [key, amounts] : part->cpu) cpu[{key.first + before, key.second}] = amounts;
    }
    EXPECT_EQ(merged.totals, sum);
    EXPECT_EQ(merged.images, images);
    EXPECT_EQ(merged.stacks, stacks);
    EXPECT_FALSE(cpu.empty());
    EXPECT_EQ(merged.cpu, cpu);
  }

  std::string folder_ = testing::TempDir() + "malloscope-merge-" + std::to_string(getpid());
  int merges_ = 0;
};

TEST_F(Merge, OneAfterAnotherHasTheSumsAndTheHighestPeak) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    std::vector<std::string> paths;
    std::vector<Seen> parts;
    std::vector<const Seen*> all;
    unsigned count = 1 + seed % 5;
    for (unsigned i = 0; i < count; ++i)
      paths.push_back(
          make("in" + std::to_string(i), seed * 10 + i, i, 2'000'000'000 + i * 333'331));
    uint64_t highest = 0;
    for (const std::string& path : paths) {
      parts.push_back(look(path));
      highest = std::max(highest, parts.back().peak);
    }
    for (const Seen& part : parts) all.push_back(&part);
    Seen merged = look(merge(paths));
    expect_sum(merged, all);
    EXPECT_EQ(merged.peak, highest) << seed;
    EXPECT_TRUE(merged.tables.complete);
    EXPECT_EQ(merged.tables.runs.size(), count);
    // Time goes on, and each recording takes as long as it took.
    uint64_t end = 0;
    for (unsigned i = 0; i < count; ++i) {
      const trace::Run& run = merged.tables.runs[i];
      EXPECT_EQ(run.file, paths[i]);
      EXPECT_EQ(run.images, parts[i].tables.images.size());
      EXPECT_GE(run.start_tick, end);
      end = run.end_tick;
      double took =
          static_cast<double>(merged.tables.time_ns(end) - merged.tables.time_ns(run.start_tick));
      double took_then = static_cast<double>(parts[i].tables.time_ns(*parts[i].tables.end_tick));
      EXPECT_NEAR(took, took_then, 1000) << i;
    }
  }
}

TEST_F(Merge, AnyGroupingHasTheSameSums) {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    std::string a = make("a", seed, 0, 2'100'000'000), b = make("b", seed + 50, 0),
                c = make("c", seed + 90, 0, 1'999'999'999);
    Seen flat = look(merge({a, b, c}));
    for (const std::string& path : {merge({merge({a, b}), c}), merge({a, merge({b, c})})}) {
      Seen grouped = look(path);
      expect_sum(grouped, {&flat});
      EXPECT_EQ(grouped.peak, flat.peak);
      ASSERT_EQ(grouped.tables.runs.size(), 3u);
      EXPECT_EQ(grouped.tables.runs[2].file, c);
      EXPECT_EQ(grouped.tables.runs[2].first_image, flat.tables.runs[2].first_image);
    }
    Seen mixed = look(merge({merge({b, c}, true), a}));
    EXPECT_EQ(mixed.totals, flat.totals);
  }
}

TEST_F(Merge, TogetherWhatIsHeldAtATimeAddsUp) {
  for (unsigned seed = 1; seed <= 12; ++seed) {
    std::vector<std::string> paths;
    std::vector<Seen> parts;
    std::vector<const Seen*> all;
    std::vector<std::tuple<uint64_t, size_t, uint64_t>> steps;  // When, who, what it holds then.
    for (unsigned i = 0; i < 2 + seed % 4; ++i) {
      paths.push_back(make("in" + std::to_string(i), seed * 10 + i, i));
      parts.push_back(look(paths.back()));
      for (auto [tick, bytes] : parts.back().curve) steps.emplace_back(tick, i, bytes);
    }
    for (const Seen& part : parts) all.push_back(&part);
    std::stable_sort(steps.begin(), steps.end(),
                     [](const auto& a, const auto& b) { return std::get<0>(a) < std::get<0>(b); });
    std::vector<uint64_t> holds(parts.size());
    uint64_t peak = 0, sum = 0;
    for (auto [tick, who, bytes] : steps) {
      sum += bytes - std::exchange(holds[who], bytes);
      peak = std::max(peak, sum);
    }
    Seen merged = look(merge(paths, true));
    expect_sum(merged, all);
    EXPECT_EQ(merged.peak, peak) << seed;
    for (const trace::Run& run : merged.tables.runs)
      EXPECT_EQ(run.start_tick, merged.tables.header.start_tick);
  }
}

TEST_F(Merge, ACutInputCountsUpToTheCut) {
  std::mt19937 random(7);
  for (unsigned seed = 1; seed <= 12; ++seed) {
    std::string a = make("a", seed, 0), b = make("b", seed + 50, 1);
    auto size = std::filesystem::file_size(a);
    std::filesystem::resize_file(a, 2000 + random() % (size - 3000));
    Seen cut = look(a), whole = look(b);
    ASSERT_FALSE(cut.tables.complete);
    for (bool together : {false, true}) {
      Seen merged = look(merge({a, b}, together));
      expect_sum(merged, {&cut, &whole});
      EXPECT_FALSE(merged.tables.complete);
      EXPECT_TRUE(merged.tables.incomplete_because.starts_with(a + ": "));
      // What the cut one held is not held by those that follow.
      if (!together) {
        EXPECT_EQ(merged.peak, std::max(cut.peak, whole.peak));
      }
    }
  }
}

TEST_F(Merge, NotesSettingsAndNamesAreKept) {
  std::string a = make("a", 1, 0), b = make("b", 2, 0);
  for (const std::string& path : {a, b}) {
    auto tail = trace::tail_of(path);
    ASSERT_TRUE(tail);
    ASSERT_TRUE(trace::append_chunks(path, *tail, ChunkType::kNames, {{1, 2, 3}, {4}}));
  }
  Seen merged = look(merge({a, b, a}));
  ASSERT_EQ(merged.tables.notes.size(), 3u);
  EXPECT_EQ(merged.tables.notes[1].text, "a note of 2");
  EXPECT_EQ(merged.tables.header.settings,
            (std::vector<std::string>{"follow=true", "seed=1", "seed=2"}));
  EXPECT_EQ(merged.tables.header.start_unix_ns, 1'000'000'000);
  // Once each, though every input has them.
  EXPECT_EQ(merged.tables.names, (std::vector<std::vector<uint8_t>>{{1, 2, 3}, {4}}));
}

TEST_F(Merge, RefusesWhatItCannotRead) {
  std::string good = make("a", 1, 0), bad = make("b", 2, 0);
  auto attempt = [&](const std::vector<std::string>& inputs) {
    std::string output = path("out");
    trace::FileWriter file(open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), output);
    auto merged = trace::merge_traces(inputs, {}, &file);
    return merged ? std::string() : merged.error().sentence;
  };
  EXPECT_NE(attempt({good, path("missing")}), "");
  auto size = std::filesystem::file_size(bad);
  for (uint64_t at = 20; at + 100 < size; at += size / 40) {
    make("b", 2, 0);
    int fd = open(bad.c_str(), O_RDWR);
    char byte;
    ASSERT_EQ(pread(fd, &byte, 1, static_cast<off_t>(at)), 1);
    byte = static_cast<char>(byte ^ 0x10);
    ASSERT_EQ(pwrite(fd, &byte, 1, static_cast<off_t>(at)), 1);
    close(fd);
    std::string said = attempt({good, bad});
    // A length that grew looks like a cut; that is told too, by the merged trace.
    if (said.empty()) {
      EXPECT_FALSE(look(path("out")).tables.complete) << at;
    } else {
      EXPECT_NE(said.find("damaged"), std::string::npos) << said;
    }
  }
}

}  // namespace
}  // namespace malloscope::analyze
