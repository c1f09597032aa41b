// SPDX-License-Identifier: Apache-2.0
#include "analyze/index_life_sums.h"

#include <algorithm>

#include "base/attributes.h"

namespace malloscope::analyze {
namespace {

// Up to when the blocks of each image have lived, by id - 1: as Heap::end_tick says it.
std::vector<uint64_t> ends_of(const IndexFacts& facts, const trace::Tables& tables, Window window) {
  std::vector<uint64_t> ends;
  for (size_t i = 0; i < tables.images.size(); ++i) {
    std::optional<uint64_t> end = tables.images[i].end_tick;
    bool ended = facts.images[i].ended != IndexFacts::kNever && !(end && *end > window.to_tick);
    uint64_t last = !ended ? facts.last_tick : end ? *end : facts.images[i].last_tick;
    ends.push_back(std::min(last, window.to_tick));
  }
  return ends;
}

// The row of a life. What has different sizes cannot be told where these matter.
class RowOfLife {
 public:
  explicit RowOfLife(const IndexSums::Rows& rows) : rows_(rows) {}

  MSCOPE_FAST uint32_t operator()(const IndexLife& life) {
    if (!(life.roles & IndexLife::kHeld)) return IndexSums::kNobody;
    if (!rows_.cut) [[likely]]
      return rows_.of_cell[life.cell];
    knows_ &= !life.is_varied || rows_.cut->row_of_cell[life.cell] == IndexSums::kNobody;
    return rows_.row_of(life.cell, life.size());
  }
  bool knows() const { return knows_; }

 private:
  const IndexSums::Rows& rows_;
  bool knows_ = true;
};

}  // namespace

bool sum_lifetimes(const Index& index, const trace::Tables& tables, Window window,
                   Index::Steps steps, const IndexSums::Rows& rows, std::vector<uint64_t>* ticks) {
  const IndexTimes& times = index.facts().times;
  const uint64_t begin = window.begin_tick();
  std::vector<uint64_t> halves[2];
  for (std::vector<uint64_t>& half : halves) half.resize(rows.count);
  RowOfLife row_of[2] = {RowOfLife(rows), RowOfLife(rows)};
  bool good = index.for_each_ended_in_two(steps, [&](size_t half, const IndexLife& life) {
    uint32_t row = row_of[half](life);
    if (row == IndexSums::kNobody) return;
    uint64_t lived = life.ticks;
    if (life.born < steps.first) [[unlikely]]  // From the beginning of the window on.
      lived += life.births - life.blocks * (begin - times.begin_of(life.born));
    halves[half][row] += lived;
  });
  *ticks = std::move(halves[0]);
  for (size_t row = 0; row < rows.count; ++row) (*ticks)[row] += halves[1][row];
  if (!good) return false;

  const std::vector<uint64_t> ends = ends_of(index.facts(), tables, window);
  bool exact = true;
  good = index.for_each_live(steps.last, [&](const IndexLife& life) {
    uint32_t row = row_of[0](life);
    if (row == IndexSums::kNobody) return;
    uint64_t end = ends[raw(index.cells()[life.cell].image) - 1];
    uint64_t born = times.begin_of(life.born);
    if (life.born < steps.first) {
      if (end > begin) (*ticks)[row] += life.blocks * (end - begin);
    } else if (end >= born + life.last_birth) {
      (*ticks)[row] += life.blocks * (end - born) - life.births;
    } else {
      exact &= end <= born + life.first_birth;  // Else only some have lived at all.
    }
  });
  return good && exact && row_of[0].knows() && row_of[1].knows();
}

bool sum_left(const Index& index, Index::Steps steps, const IndexSums::Rows& rows,
              LeftBlocks* left) {
  left->bytes.assign(rows.count, 0);
  left->blocks.assign(rows.count, 0);
  RowOfLife row_of(rows);
  bool good = index.for_each_live(steps.last, [&](const IndexLife& life) {
    if (life.began < steps.first) return;
    uint32_t row = row_of(life);
    if (row == IndexSums::kNobody) return;
    left->bytes[row] += life.bytes;
    left->blocks[row] += life.blocks;
  });
  return good && row_of.knows();
}

}  // namespace malloscope::analyze
