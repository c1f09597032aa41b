// SPDX-License-Identifier: Apache-2.0
#include "analyze/index_lives.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <random>
#include <tuple>

#include "analyze/log_histogram.h"

namespace malloscope::analyze {
namespace {

using Key = std::tuple<uint32_t, uint32_t, uint32_t, uint8_t, bool, uint32_t, uint16_t>;
struct Sum {
  uint64_t blocks = 0, bytes = 0, first_birth = UINT64_MAX, last_birth = 0, births = 0, longest = 0,
           ticks = 0, last_death = 0;
  bool operator==(const Sum&) const = default;
};
using Sums = std::map<Key, Sum>;

class IndexLives : public testing::Test {
 protected:
  IndexLives() {
    times_.ns_per_tick = 100;
    for (size_t i = 0; i < times_.cuts.size(); ++i) times_.cuts[i] = 1000 * (i + 1);
  }

  Key key(const IndexLife& life) const {
    auto longest =
        static_cast<uint64_t>(static_cast<double>(life.longest_ticks) * times_.ns_per_tick);
    return {life.cell,
            life.born,
            life.began,
            life.roles,
            life.by_maker,
            life.by_maker ? 0 : raw(life.freer),
            LogHistogram::step_of(longest)};
  }

  // Adds lives of so many cells, what is said of them to `said` and what is read back to `read`,
  // and counts the entries that are.
  void write_and_read(uint32_t cells, size_t lives) {
    constexpr uint32_t kStep = 60;
    const uint64_t end = times_.begin_of(kStep);
    std::mt19937_64 random(cells);
    IndexLivesWriter writer(times_);
    for (size_t i = 0; i < lives; ++i) {
      IndexLivesWriter::Life life;
      life.cell = static_cast<uint32_t>(random() % cells);
      life.by_maker = random() % 8 != 0;
      if (!life.by_maker) life.freer = ThreadId{static_cast<uint32_t>(1 + random() % 3)};
      life.bytes = 1 + random() % 100;
      life.born_tick = end - random() % (random() % 16 == 0 ? 20'000 : 400);
      bool moved = random() % 16 == 0;
      life.began_tick = moved ? life.born_tick - random() % 5000 : life.born_tick;
      if (moved) life.roles = IndexLife::kHeld | IndexLife::kFreed;
      life.ticks = end + random() % 100 - life.born_tick;
      writer.add(life);

      uint32_t born = std::min(kStep, times_.step_of(life.born_tick));
      uint32_t began =
          born < kStep && moved ? std::min(born, times_.step_of(life.began_tick)) : born;
      uint64_t birth = life.born_tick - times_.begin_of(born);
      auto length = static_cast<uint64_t>(static_cast<double>(life.ticks) * times_.ns_per_tick);
      Sum& sum = said_[{life.cell, born, began, life.roles, life.by_maker, raw(life.freer),
                        LogHistogram::step_of(length)}];
      sum.blocks += 1;
      sum.bytes += life.bytes;
      sum.first_birth = std::min(sum.first_birth, birth);
      sum.last_birth = std::max(sum.last_birth, birth);
      sum.births += birth;
      sum.longest = std::max(sum.longest, life.ticks);
      sum.ticks += life.ticks;
      sum.last_death = std::max(sum.last_death, birth + life.ticks);
    }
    for (PackedBlock& block : writer.finish(kStep)) {
      if (block.bytes.empty()) continue;
      IndexLivesReader reader;
      ASSERT_TRUE(reader.open(&block.bytes, block.raw_bytes, kStep));
      auto add_to = [&](Sums* sums) {
        return [this, sums](const IndexLife& life) { add(life, &(*sums)[key(life)]); };
      };
      auto count = [&](const IndexLife& life) {
        ++entries_;
        varied_ += life.is_varied;
        add(life, &read_[key(life)]);
      };
      ASSERT_TRUE(reader.for_each_born(cells, [](uint64_t) { return true; }, count));
      ASSERT_TRUE(reader.for_each_born(
          cells, [](uint64_t cell) { return cell % 3 == 0; }, add_to(&read_of_some_)));
      auto add_amounts = [&](const IndexLife& life) { add_amounts_of(life, &read_amounts_); };
      ASSERT_TRUE(reader.for_each(cells, add_amounts));
    }
  }

  static void add(const IndexLife& life, Sum* sum) {
    sum->blocks += life.blocks;
    sum->bytes += life.bytes;
    sum->first_birth = std::min(sum->first_birth, life.first_birth);
    sum->last_birth = std::max(sum->last_birth, life.last_birth);
    sum->births += life.births;
    sum->longest = std::max(sum->longest, life.longest_ticks);
    sum->ticks += life.ticks;
    sum->last_death = std::max(sum->last_death, life.last_death);
  }
  // By cell, what is told without births.
  using Amounts = std::map<uint32_t, std::array<uint64_t, 3>>;
  template <typename Life>
  static void add_amounts_of(const Life& life, Amounts* amounts) {
    std::array<uint64_t, 3>& sum = (*amounts)[life.cell];
    sum[0] += life.blocks;
    sum[1] += life.bytes;
    sum[2] += life.ticks;
  }

  void expect_the_same() const {
    EXPECT_EQ(read_, said_);
    Sums of_some;
    Amounts amounts;
    for (const auto& [key, sum] : said_) {
      uint32_t cell = std::get<0>(key);
      if (cell % 3 == 0) of_some[key] = sum;
      struct {
        uint32_t cell;
        uint64_t blocks, bytes, ticks;
      } life = {cell, sum.blocks, sum.bytes, sum.ticks};
      add_amounts_of(life, &amounts);
    }
    EXPECT_EQ(read_of_some_, of_some);
    EXPECT_EQ(read_amounts_, amounts);
  }

  IndexTimes times_;
  Sums said_, read_, read_of_some_;
  Amounts read_amounts_;
  size_t entries_ = 0, varied_ = 0;
};

TEST_F(IndexLives, TellsThoseThatAreAlikeTogether) {
  write_and_read(5, 40'000);
  expect_the_same();
  EXPECT_EQ(entries_, said_.size());
  EXPECT_LT(entries_, 10'000u);
  EXPECT_GT(varied_, 1'000u);
}

TEST_F(IndexLives, TellsThoseThatAreNot) {
  write_and_read(100'000, 40'000);
  expect_the_same();
  EXPECT_GE(entries_, said_.size());  // Those of different sizes are told apart.
  EXPECT_GT(entries_, 30'000u);
  EXPECT_EQ(varied_, 0u);
}

TEST_F(IndexLives, TellsFew) {
  write_and_read(3, 100);
  expect_the_same();
}

}  // namespace
}  // namespace malloscope::analyze
