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
#include <type_traits>
#include <utility>
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
  // their own, read by the batch. Of inner ones the ages are left out.
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
    std::vector<uint64_t> singles[kSingles];
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
  // For the others, without their births.
  template <typename Visit>
  bool for_each_inner(uint64_t cells, Visit&& visit) const;
  // For all with their births that are of cells which wants(cell) says.
  template <typename Wants, typename Visit>
  bool for_each_born(uint64_t cells, Wants&& wants, Visit&& visit) const;
  // For all; but straddlers' births may not be told: `born` and `began` are kUntold then. That is
  // faster.
  template <typename Visit>
  bool for_each(uint64_t cells, Visit&& visit) const;

 private:
  using Writer = IndexLivesWriter;
  struct Columns {
    uint64_t count = 0;  // Of singles.
    std::span<const uint8_t> singles[Writer::kSingles];
    std::span<const uint8_t> others;
  };
  // What has been read of a column.
  struct Cursor {
    const uint8_t *at, *end;
    explicit Cursor(std::span<const uint8_t> column)
        : at(column.data()), end(column.data() + column.size()) {}
    uint64_t next() { return next_number(at, end); }
    bool more() const { return at < end; }
    bool over() const { return at > end; }
    bool done() const { return at == end; }
  };

  // Which columns of singles are wanted besides gaps, sizes and ticks. Without ages all are said to
  // be of step `born`; without births nothing is said of when in it.
  enum Births { kNoBirths, kBirths, kBirthsAndAges };
  template <Births kTold, typename Wants, typename Visit>
  bool scan_singles(const Columns& columns, uint64_t cells, uint32_t born, const Wants& wants,
                    Visit& visit) const;
  template <bool kStraddlers, typename Wants, typename Visit>
  bool scan_others(const Columns& columns, uint64_t cells, const Wants& wants, Visit& visit) const;
  struct AnyCell {
    bool operator()(uint64_t) const { return true; }
  };

  uint32_t step_ = 0;
  std::vector<uint8_t> raw_;
  Columns inner_, straddlers_;
};

// Which of a batch are wanted cannot be guessed: they are picked without a branch first.
template <IndexLivesReader::Births kTold, typename Wants, typename Visit>
bool IndexLivesReader::scan_singles(const Columns& columns, uint64_t cells, uint32_t born,
                                    const Wants& wants, Visit& visit) const {
  uint64_t gaps[kBatch], sizes[kBatch], ticks[kBatch], ages[kBatch], births[kBatch];
  std::pair<Cursor, uint64_t*> all[] = {
      {Cursor(columns.singles[Writer::kGaps]), gaps},
      {Cursor(columns.singles[Writer::kSizes]), sizes},
      {Cursor(columns.singles[Writer::kTicks]), ticks},
      {Cursor(columns.singles[Writer::kBirths]), births},
      {Cursor(columns.singles[Writer::kAges]), ages},
  };
  const std::span told(all, kTold == kNoBirths ? 3 : kTold == kBirths ? 4 : 5);
  constexpr bool kPicks = !std::is_same_v<Wants, AnyCell>;
  uint32_t cell_of[kBatch];
  uint8_t picked[kBatch];
  IndexLife life;
  life.born = life.began = born;
  uint64_t cell = 0;
  for (uint64_t left = columns.count; left > 0;) {
    size_t count = std::min<uint64_t>(left, kBatch);
    left -= count;
    for (auto& [column, numbers] : told)
      if (!next_batch(column.at, column.end, count, numbers)) return false;
    size_t wanted = 0;
    for (size_t i = 0; i < count; ++i) {
      if (gaps[i] >= cells - cell) return false;
      cell += gaps[i];  // The next may be of the same.
      cell_of[i] = static_cast<uint32_t>(cell);
      if constexpr (kPicks) {
        picked[wanted] = static_cast<uint8_t>(i);
        wanted += wants(cell);
      }
    }
    if (!kPicks) wanted = count;
    for (size_t k = 0; k < wanted; ++k) {
      size_t i = kPicks ? picked[k] : k;
      life.cell = cell_of[i];
      life.bytes = sizes[i];
      life.longest_ticks = life.ticks = ticks[i];
      if constexpr (kTold != kNoBirths) {
        life.first_birth = life.last_birth = life.births = births[i];
        life.last_death = births[i] + ticks[i];
      }
      if constexpr (kTold == kBirthsAndAges) {
        if (ages[i] == 0 || ages[i] > step_) return false;
        life.born = life.began = step_ - static_cast<uint32_t>(ages[i]);
      }
      visit(static_cast<const IndexLife&>(life));
    }
  }
  return std::ranges::all_of(told, [](const auto& column) { return column.first.done(); });
}

template <bool kStraddlers, typename Wants, typename Visit>
bool IndexLivesReader::scan_others(const Columns& columns, uint64_t cells, const Wants& wants,
                                   Visit& visit) const {
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
    if (wants(cell)) visit(static_cast<const IndexLife&>(life));
  }
  return other.done();
}

template <typename Visit>
bool IndexLivesReader::for_each_straddler(uint64_t cells, Visit&& visit) const {
  return scan_singles<kBirthsAndAges>(straddlers_, cells, 0, AnyCell{}, visit) &&
         scan_others<true>(straddlers_, cells, AnyCell{}, visit);
}

template <typename Visit>
bool IndexLivesReader::for_each_inner(uint64_t cells, Visit&& visit) const {
  return scan_singles<kNoBirths>(inner_, cells, step_, AnyCell{}, visit) &&
         scan_others<false>(inner_, cells, AnyCell{}, visit);
}

template <typename Wants, typename Visit>
bool IndexLivesReader::for_each_born(uint64_t cells, Wants&& wants, Visit&& visit) const {
  return scan_singles<kBirths>(inner_, cells, step_, wants, visit) &&
         scan_others<false>(inner_, cells, wants, visit) &&
         scan_singles<kBirthsAndAges>(straddlers_, cells, 0, wants, visit) &&
         scan_others<true>(straddlers_, cells, wants, visit);
}

template <typename Visit>
bool IndexLivesReader::for_each(uint64_t cells, Visit&& visit) const {
  return for_each_inner(cells, visit) &&
         scan_singles<kNoBirths>(straddlers_, cells, IndexLife::kUntold, AnyCell{}, visit) &&
         scan_others<true>(straddlers_, cells, AnyCell{}, visit);
}

}  // namespace malloscope::analyze
