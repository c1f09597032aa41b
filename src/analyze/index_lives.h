// SPDX-License-Identifier: Apache-2.0
// The blocks of an index (index.h) whose lives ended in some step: what tells of leaks, lifetimes
// and who frees whose blocks, at every cut, without a look at the events.
//
//     step          7        8        9       10
//     inner         |        | made+freed      |      nothing but step 9 need know of it
//     straddler     | made   |        |  freed |      live at the cuts between 7 and 10
//
// Those that lived through about as many cuts are kept together: nearly all of what was live at a
// cut ended soon after it, so that the other blocks' many entries behind it need not be read.
//
// Blocks that are alike in all that can be asked about them are one entry. A block that realloc
// changed is several: one for each size and stack that it had, and one for its life as a whole.

#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "analyze/index_block.h"
#include "analyze/index_times.h"
#include "analyze/number_column.h"
#include "base/ids.h"

namespace malloscope::analyze {

// How far a life reaches: 0 if it is an inner one, k if it ended 4^(k-1) to 4^k - 1 steps after the
// one it began in.
constexpr uint32_t reach_of(uint32_t steps) {
  return static_cast<uint32_t>(std::bit_width(steps) + 1) / 2;
}
inline constexpr uint32_t kReaches = reach_of(IndexTimes::kSteps) + 1;

// Blocks of one cell.
struct IndexLife {
  enum Role : uint8_t {
    kHeld = 1,   // They were live under this cell from `born` on.
    kLived = 2,  // They were first allocated under this cell, at `born`.
    kFreed = 4,  // They were freed while they were of this cell.
    kAll = 7,
  };
  static constexpr uint32_t kUntold = UINT32_MAX;
  uint32_t cell = 0;
  uint32_t born = 0;   // The step.
  uint32_t began = 0;  // The step in which they were first allocated: `born`, unless reallocated.
  uint8_t roles = kAll;
  bool is_varied = false;            // They have different sizes.
  bool by_maker = true;              // Freed by the thread that is the cell's ...
  ThreadId freer = ThreadId::kNone;  // ... or by this one.
  uint64_t blocks = 1, bytes = 0;
  // Ticks since step `born` began, of their births: the first, the last, and all added up; and of
  // the last death. Not of those whose births are not asked for.
  uint64_t first_birth = 0, last_birth = 0, births = 0, last_death = 0;
  uint64_t longest_ticks = 0;  // All of them belong into one step of a LogHistogram.
  uint64_t ticks = 0;          // Lived by all of them together.

  uint64_t size() const {
    return blocks == 1 ? bytes : bytes / blocks;
  }  // On average, if it is_varied.
};

// Blocks of a step, or those that never ended, which is step kSteps.
class IndexLivesWriter {
 public:
  struct Life {
    uint32_t cell = 0;
    uint8_t roles = IndexLife::kAll;
    bool by_maker = true;
    ThreadId freer = ThreadId::kNone;
    uint64_t blocks = 1, bytes = 0;  // One block, or what one of a sample stands for.
    uint64_t born_tick = 0, began_tick = 0;
    uint64_t ticks = 0;  // Lived.
  };

  // `times` must outlive it.
  explicit IndexLivesWriter(const IndexTimes& times) : times_(&times) {}

  void add(const Life& life) { lives_.push_back(life); }
  size_t size() const { return lives_.size(); }
  // By reach; of what never ended, one for all. Empty where there is none; and empty again
  // afterwards.
  std::vector<PackedBlock> finish(uint32_t step);

 private:
  friend class IndexLivesReader;
  // Single blocks, freed by whoever made them and never reallocated, are most: they have columns of
  // their own. Of inner ones the ages are left out.
  enum Single {
    kGaps,
    kSizes,
    kTicks,
    kAges,    // In steps.
    kBirths,  // Ticks since the step began.
    kSingles
  };

  // Those with the same key are told together; where a cell has few, only those of the same size.
  struct Keyed {
    IndexLife life;
    uint16_t length = 0;  // The histogram's step.
    auto key() const {
      return std::tie(life.born, life.began, life.roles, life.by_maker, life.freer, length);
    }
  };
  Keyed keyed(const Life& life, uint32_t step) const;
  class Folded;
  bool are_alike(uint32_t step) const;
  // Calls visit(const IndexLife&) for all, by cell and key.
  template <typename Visit>
  void for_each_put_together(uint32_t step, Visit&& visit) const;
  // Of inner ones, or of straddlers.
  struct Columns {
    std::vector<uint8_t> singles[kSingles];
    std::vector<uint8_t> others;
    uint32_t last_single = 0, last_other = 0;

    bool empty() const { return singles[kGaps].empty() && others.empty(); }
  };
  struct Reach {
    Columns inner, straddlers;
  };
  static bool is_single(const IndexLife& life);
  static void write(const IndexLife& life, uint32_t step, Reach* reach);
  static std::vector<PackedBlock> packed(std::vector<Reach> reaches);

  const IndexTimes* times_;
  std::vector<Life> lives_;
};

class IndexLivesReader {
 public:
  bool open(std::vector<uint8_t>* packed, uint64_t raw_bytes, uint32_t step);

  // Calls visit(const IndexLife&) for all that were live at some cut. False: the block makes no
  // sense, which may be found when some have been shown.
  template <typename Visit>
  bool for_each_straddler(uint64_t cells, Visit&& visit) const;
  // For the others; without their births, or with them, which takes longer.
  template <typename Visit>
  bool for_each_inner(uint64_t cells, Visit&& visit) const;
  template <typename Visit>
  bool for_each_born_inner(uint64_t cells, Visit&& visit) const;
  // For all; but straddlers' births may not be told: `born` and `began` are kUntold then. That is
  // faster.
  template <typename Visit>
  bool for_each(uint64_t cells, Visit&& visit) const;

 private:
  using Writer = IndexLivesWriter;
  struct Columns {
    std::span<const uint8_t> singles[Writer::kSingles];
    std::span<const uint8_t> others;
  };
  // What has been read of a column.
  struct Cursor {
    const uint8_t *at, *end;
    explicit Cursor(std::span<const uint8_t> column)
        : at(column.data()), end(column.data() + column.size()) {}
    MSCOPE_FAST uint64_t next() { return next_number(at, end); }
    MSCOPE_FAST uint64_t next_gap() { return analyze::next_gap(at, end); }
    MSCOPE_FAST uint64_t next_long() { return next_long_number(at, end); }
    bool more() const { return at < end; }
    bool over() const { return at > end; }
    bool done() const { return at == end; }
  };

  // The next `count` numbers of a column, read by `next`; false: there are not as many.
  template <typename Next>
  static bool next_of(size_t count, Next&& next, Cursor* column, uint64_t* numbers) {
    Cursor from = *column;
    for (size_t i = 0; i < count; ++i) {
      numbers[i] = next(from);
      if (from.over()) return false;
    }
    *column = from;
    return true;
  }
  // Of two columns at once: a CPU that waits to know where the next number of the one begins reads
  // the other.
  template <typename Next>
  static bool next_of_both(size_t count, Next&& next, Cursor* one, uint64_t* of_one, Cursor* other,
                           uint64_t* of_other) {
    Cursor a = *one, b = *other;
    for (size_t i = 0; i < count; ++i) {
      of_one[i] = next(a);
      of_other[i] = next(b);
      if (a.over() || b.over()) return false;
    }
    *one = a, *other = b;
    return true;
  }

  // `born`: what is said of their births, which are not read.
  template <typename Visit>
  bool scan_singles(const Columns& columns, uint64_t cells, uint32_t born, Visit& visit) const;
  // Those without ages were born in this step.
  template <bool kWithAges, typename Visit>
  bool scan_born_singles(const Columns& columns, uint64_t cells, Visit& visit) const;
  template <bool kStraddlers, typename Visit>
  bool scan_others(const Columns& columns, uint64_t cells, Visit& visit) const;

  uint32_t step_ = 0;
  std::vector<uint8_t> raw_;
  Columns inner_, straddlers_;
};

template <typename Visit>
bool IndexLivesReader::scan_singles(const Columns& columns, uint64_t cells, uint32_t born,
                                    Visit& visit) const {
  Cursor gaps(columns.singles[Writer::kGaps]), sizes(columns.singles[Writer::kSizes]),
      ticks(columns.singles[Writer::kTicks]);
  IndexLife life;
  life.born = life.began = born;
  for (uint64_t cell = 0; gaps.more();) {
    uint64_t gap = gaps.next_gap();
    if (gap >= cells - cell) return false;
    cell += gap;  // The next may be of the same.
    life.cell = static_cast<uint32_t>(cell);
    life.bytes = sizes.next();
    life.longest_ticks = life.ticks = ticks.next_long();
    if (sizes.over() || ticks.over()) return false;
    visit(static_cast<const IndexLife&>(life));
  }
  return gaps.done() && sizes.done() && ticks.done();
}

// Some lives at a time, two columns after the other: all five at once have more in hand than a CPU
// has registers, and take half as long again.
template <bool kWithAges, typename Visit>
bool IndexLivesReader::scan_born_singles(const Columns& columns, uint64_t cells,
                                         Visit& visit) const {
  constexpr size_t kBatch = 256;
  uint32_t cell_of[kBatch];
  uint64_t size_of[kBatch], ticks_of[kBatch], age_of[kBatch], birth_of[kBatch];
  Cursor gaps(columns.singles[Writer::kGaps]), sizes(columns.singles[Writer::kSizes]),
      ticks(columns.singles[Writer::kTicks]), ages(columns.singles[Writer::kAges]),
      births(columns.singles[Writer::kBirths]);
  IndexLife life;
  life.born = life.began = step_;
  for (uint64_t cell = 0; gaps.more();) {
    size_t lives = 0;
    for (; lives < kBatch && gaps.more(); ++lives) {
      uint64_t gap = gaps.next_gap();
      if (gap >= cells - cell) return false;
      cell += gap;  // The next may be of the same.
      cell_of[lives] = static_cast<uint32_t>(cell);
    }
    auto any = [](Cursor& cursor) __attribute__((always_inline)) { return cursor.next(); };
    auto any_long = [](Cursor& cursor)
                        __attribute__((always_inline)) { return cursor.next_long(); };
    if (!next_of_both(lives, any_long, &ticks, ticks_of, &births, birth_of)) return false;
    if (!(kWithAges ? next_of_both(lives, any, &sizes, size_of, &ages, age_of)
                    : next_of(lives, any, &sizes, size_of)))
      return false;
    for (size_t i = 0; i < lives; ++i) {
      life.cell = cell_of[i];
      life.bytes = size_of[i];
      life.longest_ticks = life.ticks = ticks_of[i];
      life.first_birth = life.last_birth = life.births = birth_of[i];
      life.last_death = life.births + life.ticks;
      if constexpr (kWithAges) {
        if (age_of[i] == 0 || age_of[i] > step_) return false;
        life.born = life.began = step_ - static_cast<uint32_t>(age_of[i]);
      }
      visit(static_cast<const IndexLife&>(life));
    }
  }
  return gaps.done() && sizes.done() && ticks.done() && births.done() &&
         (!kWithAges || ages.done());
}

template <bool kStraddlers, typename Visit>
bool IndexLivesReader::scan_others(const Columns& columns, uint64_t cells, Visit& visit) const {
  Cursor other(columns.others);
  IndexLife life;
  life.born = life.began = step_;
  for (uint64_t cell = 0; other.more();) {
    uint64_t gap = other.next();
    if (gap >= cells - cell) return false;
    cell += gap;
    life.cell = static_cast<uint32_t>(cell);
    if constexpr (kStraddlers) {
      uint64_t age = other.next();
      if (age == 0 || age > step_) return false;
      life.born = step_ - static_cast<uint32_t>(age);
      uint64_t older = other.next();
      if (older > life.born) return false;
      life.began = life.born - static_cast<uint32_t>(older);
    }
    life.first_birth = other.next();
    life.last_birth = life.first_birth + other.next();
    life.births = other.next();
    life.last_death = life.first_birth + other.next();
    uint64_t roles = other.next();
    life.roles = static_cast<uint8_t>(roles & IndexLife::kAll);
    life.is_varied = roles > IndexLife::kAll;
    uint64_t freer = other.next();
    life.by_maker = freer == 0;
    life.freer = ThreadId{static_cast<uint32_t>(freer == 0 ? 0 : freer - 1)};
    life.blocks = other.next();
    life.bytes = other.next();
    life.longest_ticks = other.next();
    life.ticks = other.next();
    if (other.over() || life.blocks == 0) return false;
    visit(static_cast<const IndexLife&>(life));
  }
  return other.done();
}

template <typename Visit>
bool IndexLivesReader::for_each_straddler(uint64_t cells, Visit&& visit) const {
  return scan_born_singles<true>(straddlers_, cells, visit) &&
         scan_others<true>(straddlers_, cells, visit);
}

template <typename Visit>
bool IndexLivesReader::for_each_inner(uint64_t cells, Visit&& visit) const {
  return scan_singles(inner_, cells, step_, visit) && scan_others<false>(inner_, cells, visit);
}

template <typename Visit>
bool IndexLivesReader::for_each_born_inner(uint64_t cells, Visit&& visit) const {
  return scan_born_singles<false>(inner_, cells, visit) && scan_others<false>(inner_, cells, visit);
}

template <typename Visit>
bool IndexLivesReader::for_each(uint64_t cells, Visit&& visit) const {
  return for_each_inner(cells, visit) &&
         scan_singles(straddlers_, cells, IndexLife::kUntold, visit) &&
         scan_others<true>(straddlers_, cells, visit);
}

}  // namespace malloscope::analyze
