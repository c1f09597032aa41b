// SPDX-License-Identifier: Apache-2.0
// Sampled recordings: what each block stands for reaches every sum, a model that adds it up the
// slow way agrees, and over many samples of one program the sums are on average the program's.

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <random>

#include "analyze/accounts.h"
#include "trace/event_stream.h"
#include "wire/sampling.h"

namespace malloscope::analyze {
namespace {

using wire::Event;
using wire::Kind;
using wire::Op;

constexpr unsigned kPeriodLog2 = 8;

Event event(Kind kind, uint64_t tick, uint64_t address, uint64_t size, uint32_t stack) {
  Event e;
  e.kind = kind;
  e.op = kind == Kind::kFree ? Op::kFree : Op::kMalloc;
  e.tick = tick;
  e.address = address;
  e.size = size;
  e.stack = StackId{kind == Kind::kAlloc ? stack : 0};
  e.thread = ThreadId{1};
  e.image = ImageId{1};
  return e;
}

trace::Image image(unsigned sample_log2) {
  trace::Image image;
  image.id = ImageId{1};
  image.pid = 7;
  image.sample_log2 = sample_log2;
  return image;
}

// What a program does: blocks of three stacks that come and go, half of them at once.
std::vector<Event> program(unsigned seed, int count) {
  std::mt19937 random(seed);
  std::vector<Event> events;
  std::vector<uint64_t> live;
  uint64_t tick = 10, next = 0x1000;
  for (int i = 0; i < count; ++i) {
    next += 16;
    uint32_t stack = 1 + static_cast<uint32_t>(random() % 3);
    uint64_t size = stack == 1 ? 1 + random() % 40 : stack == 2 ? 100 + random() % 900 : 24;
    events.push_back(event(Kind::kAlloc, ++tick, next, size, stack));
    if (random() % 2) {
      events.push_back(event(Kind::kFree, ++tick, next, 0, 0));
    } else {
      live.push_back(next);
    }
    if (live.size() > 200) {
      size_t victim = random() % live.size();
      events.push_back(event(Kind::kFree, ++tick, live[victim], 0, 0));
      live.erase(live.begin() + static_cast<ptrdiff_t>(victim));
    }
  }
  return events;
}

// As the recorder draws: blocks by their sizes, frees of what is in the sample.
std::vector<Event> sample_of(const std::vector<Event>& events, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<Event> sample;
  std::map<uint64_t, bool> in;
  bool passed = false;
  for (const Event& e : events) {
    if (e.kind == Kind::kFree) {
      if (in.erase(e.address) > 0) sample.push_back(e);
      continue;
    }
    uint64_t weight = uint64_t{1} << wire::sample_weight_log2(e.size, kPeriodLog2);
    if (random() % weight == 0) {
      sample.push_back(e);
      in[e.address] = true;
      passed = false;
    } else if (!passed) {
      sample.push_back(event(Kind::kPassed, sample.empty() ? 1 : sample.back().tick, 0, 0, 0));
      passed = true;
    }
  }
  return sample;
}

std::unique_ptr<Accounts> accounts_of(const std::vector<Event>& events, unsigned sample_log2) {
  auto accounts = std::make_unique<Accounts>();
  accounts->image_started(image(sample_log2));
  accounts->events(events);
  accounts->finish();
  return accounts;
}

TEST(Sample, EveryBlockCountsAsManyAsItStandsFor) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::vector<Event> events = sample_of(program(seed, 2000), seed);
    std::unique_ptr<Accounts> accounts = accounts_of(events, kPeriodLog2);
    struct Known {
      uint64_t size, weight;
      uint32_t stack;
    };
    std::map<uint64_t, Known> live;
    std::map<uint32_t, Amounts> stacks;
    uint64_t newest = 0, bytes = 0, peak = 0, frees = 0;
    for (const Event& e : events) {
      if (e.kind == Kind::kPassed) newest = 0;
      if (e.kind == Kind::kAlloc) {
        uint64_t weight = uint64_t{1} << wire::sample_weight_log2(e.size, kPeriodLog2);
        live[e.address] = {e.size, weight, raw(e.stack)};
        stacks[raw(e.stack)].allocations += weight;
        stacks[raw(e.stack)].allocated_bytes += weight * e.size;
        newest = e.address;
        peak = std::max(peak, bytes += weight * e.size);
      }
      if (e.kind == Kind::kFree) {
        Known block = live[e.address];
        live.erase(e.address);
        bytes -= block.weight * block.size;
        frees += block.weight;
        if (newest == e.address) stacks[block.stack].temporary += block.weight;
      }
    }
    for (auto& [address, block] : live) {
      stacks[block.stack].live_blocks += block.weight;
      stacks[block.stack].live_bytes += block.weight * block.size;
    }
    Amounts all;
    for (auto& [stack, amounts] : stacks) all += amounts;
    Totals totals = accounts->totals();
    EXPECT_EQ(totals.allocations, all.allocations);
    EXPECT_EQ(totals.allocated_bytes, all.allocated_bytes);
    EXPECT_EQ(totals.live_blocks, all.live_blocks);
    EXPECT_EQ(totals.live_bytes, all.live_bytes);
    EXPECT_EQ(totals.temporary, all.temporary);
    EXPECT_EQ(totals.frees, frees);
    EXPECT_EQ(totals.calls[static_cast<size_t>(Op::kMalloc)], all.allocations);
    EXPECT_EQ(totals.calls[static_cast<size_t>(Op::kFree)], frees);
    EXPECT_EQ(totals.unmatched_frees, 0u);
    EXPECT_EQ(accounts->peak().bytes, peak);
    uint64_t at_peak = 0;
    accounts->for_each_stack([&](ImageId, StackId stack, const Amounts& amounts) {
      const Amounts& wanted = stacks[raw(stack)];
      EXPECT_EQ(amounts.allocations, wanted.allocations);
      EXPECT_EQ(amounts.allocated_bytes, wanted.allocated_bytes);
      EXPECT_EQ(amounts.live_blocks, wanted.live_blocks);
      EXPECT_EQ(amounts.live_bytes, wanted.live_bytes);
      EXPECT_EQ(amounts.temporary, wanted.temporary);
      at_peak += amounts.peak_bytes;
    });
    EXPECT_EQ(at_peak, peak);
  }
}

// 300 times malloc(24) and free, of which 7 were drawn, 64 for each; malloc(5000), which realloc
// made 9000 of; malloc(4096) and free. `--sample 1K`.
TEST(Sample, OfAnOldRecordingIsRead) {
  Accounts accounts;
  auto tables = trace::stream(MSCOPE_SOURCE "/test/traces/v1-sample.mscope", &accounts);
  ASSERT_TRUE(tables) << tables.error().sentence;
  accounts.finish();
  EXPECT_EQ(tables->header.sample_log2(), 10u);
  Totals totals = accounts.totals();
  EXPECT_EQ(totals.allocations, 7u * 64 + 3);
  EXPECT_EQ(totals.allocated_bytes, 7u * 64 * 24 + 5000 + 9000 + 4096);
  EXPECT_EQ(totals.frees, 7u * 64 + 2);
  EXPECT_EQ(totals.live_bytes, 9000u);
  EXPECT_EQ(totals.temporary, 7u * 64 + 1);
  EXPECT_EQ(totals.reallocations, 0u);
}

// Of many samples the mean is as near to the truth as chance allows: four standard errors.
TEST(Sample, IsRightOnAverage) {
  constexpr int kSamples = 400;
  std::vector<Event> whole = program(1, 3000);
  auto figures = [](const Accounts& accounts) {
    Totals t = accounts.totals();
    std::vector<double> found = {
        static_cast<double>(t.allocations), static_cast<double>(t.allocated_bytes),
        static_cast<double>(t.live_bytes),  static_cast<double>(t.live_blocks),
        static_cast<double>(t.temporary),   static_cast<double>(t.frees)};
    std::map<uint32_t, uint64_t> bytes;
    accounts.for_each_stack([&](ImageId, StackId stack, const Amounts& amounts) {
      bytes[raw(stack)] = amounts.allocated_bytes;
    });
    for (uint32_t stack = 1; stack <= 3; ++stack)
      found.push_back(static_cast<double>(bytes[stack]));
    return found;
  };
  std::vector<double> wanted = figures(*accounts_of(whole, 0)), sum(wanted.size()),
                      squares(wanted.size());
  for (int seed = 1; seed <= kSamples; ++seed) {
    std::vector<double> found =
        figures(*accounts_of(sample_of(whole, static_cast<unsigned>(seed)), kPeriodLog2));
    for (size_t i = 0; i < found.size(); ++i) {
      sum[i] += found[i];
      squares[i] += found[i] * found[i];
    }
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    double mean = sum[i] / kSamples, variance = squares[i] / kSamples - mean * mean;
    EXPECT_NEAR(mean, wanted[i], 4 * std::sqrt(variance / kSamples)) << "figure " << i;
    EXPECT_LT(std::sqrt(variance), wanted[i] / 2) << "figure " << i;
  }
}

}  // namespace
}  // namespace malloscope::analyze
