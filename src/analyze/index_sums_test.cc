// SPDX-License-Identifier: Apache-2.0
// What the cells and the lives of an index add up to, row by row, is what a look at all events
// gives: amounts, lifetimes, overhead, what is left, the blocks of a site; of any sizes.

#include "analyze/index_sums.h"

#include <map>
#include <set>
#include <tuple>

#include "analyze/cell_rows.h"
#include "analyze/index_life_sums.h"
#include "analyze/index_overhead.h"
#include "analyze/index_recording_for_test.h"
#include "analyze/site_blocks.h"
#include "analyze/usable_size.h"

namespace malloscope::analyze {
namespace {

// Each image's stacks as rows, or some of their cells, whatever moments are kept and however far
// that has come.
TEST(IndexSums, AnswersAsTheIndexDoes) {
  int answered = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    Indexed made(seed);
    auto& [recording, file, index] = made;
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
    Indexed made(seed);
    auto& [recording, file, index] = made;
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

// Rows of any kind, in order, whatever moments are kept and however far that has come.
TEST(Index, TellsLifetimesAndWhatIsLeftAsALookAtAllEventsDoes) {
  int asked = 0, answered = 0;
  size_t lived = 0, left_rows = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    Indexed made(seed, seed % 4 != 0);
    auto& [recording, file, index] = made;
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
    Indexed made(seed, seed % 4 != 0);
    auto& [recording, file, index] = made;
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
      // Whichever ranges were asked about before, and if all of the time was, after it.
      SiteBlocks::Folded folded;
      for (unsigned i = recording.pick(4); i > 0; --i) {
        auto other = index->parting_steps_of(any_question(&recording, index->facts()).window);
        if (other) {
          ASSERT_TRUE(folded.cover(*index, cells, *other));
        }
      }
      ASSERT_TRUE(folded.cover(*index, cells, *steps));
      if (recording.pick(2)) {
        ASSERT_TRUE(folded.cover(*index, cells, {}));
      }
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

}  // namespace
}  // namespace malloscope::analyze
