// SPDX-License-Identifier: Apache-2.0
#include "analyze/index_life_sums.h"

#include <algorithm>
#include <numeric>

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

LifetimeSums::LifetimeSums(const Index& index, const trace::Tables& tables, size_t most_bytes)
    : index_(index), tables_(tables) {
  size_t bytes = index.cells().size() * sizeof(uint64_t) + 1;
  size_t moments = std::min<size_t>(most_bytes / bytes, 25);
  moment_cuts_ = static_cast<uint32_t>(IndexTimes::kCuts / (moments + 1));
  if (moments == 0) next_ = IndexTimes::kCuts;  // There is no room.
}

Window LifetimeSums::window(std::optional<uint32_t> from, uint32_t to) const {
  const IndexTimes& times = index_.facts().times;
  Window window;
  if (from) window.from_tick = times.cuts[*from] + 1;
  if (to < IndexTimes::kCuts) window.to_tick = times.cuts[to];
  return window;
}

bool LifetimeSums::sum_between(std::optional<uint32_t> from, uint32_t to,
                               const IndexSums::Rows& rows, std::vector<uint64_t>* ticks) const {
  Window between = window(from, to);
  std::optional<Index::Steps> steps = index_.parting_steps_of(between);
  return steps && sum_lifetimes(index_, tables_, between, *steps, rows, ticks);
}

bool LifetimeSums::prepare() {
  constexpr uint32_t kAtOnce = 20;
  if (next_ >= IndexTimes::kCuts) return false;
  if (itself_.empty()) {
    so_far_.resize(index_.cells().size());
    itself_.resize(index_.cells().size());
    std::iota(itself_.begin(), itself_.end(), 0u);
  }
  std::optional<uint32_t> from = next_ == 0 ? std::nullopt : std::optional(next_);
  uint32_t to = next_ + kAtOnce;
  if (to + 1 >= IndexTimes::kCuts) to = IndexTimes::kCuts;  // Behind the last one there is nothing.
  std::vector<uint64_t> ticks;
  // Where nothing happened, or the order is not known, more is taken together.
  for (; !sum_between(from, to, {itself_, itself_.size()}, &ticks); ++to)
    if (to + 1 >= IndexTimes::kCuts || to > next_ + 2 * kAtOnce) {
      next_ = IndexTimes::kCuts;  // Whoever asks finds out.
      so_far_ = {}, itself_ = {};
      return false;
    }
  for (size_t cell = 0; cell < ticks.size(); ++cell) so_far_[cell] += ticks[cell];
  if (to / moment_cuts_ != next_ / moment_cuts_ || to == IndexTimes::kCuts)
    moments_.push_back({to, so_far_});
  next_ = to;
  if (next_ < IndexTimes::kCuts) return true;
  so_far_ = {}, itself_ = {};
  return false;
}

bool LifetimeSums::add_up_to(uint32_t cut, uint64_t sign, const IndexSums::Rows& rows,
                             std::vector<uint64_t>* ticks) const {
  const Moment* nearest = nullptr;  // None: the beginning.
  auto distance = [&](uint32_t from) { return from < cut ? cut - from : from - cut; };
  for (const Moment& moment : moments_)
    if (distance(moment.cut) < distance(nearest ? nearest->cut : 0)) nearest = &moment;
  if (nearest)
    for (size_t cell = 0; cell < nearest->ticks.size(); ++cell)
      if (uint32_t row = rows.of_cell[cell]; row != IndexSums::kNobody)
        (*ticks)[row] += sign * nearest->ticks[cell];
  if (nearest && nearest->cut == cut) return true;
  bool is_behind = nearest && nearest->cut > cut;
  std::optional<uint32_t> from;
  if (nearest) from = std::min(cut, nearest->cut);
  std::vector<uint64_t> rest;
  if (!sum_between(from, is_behind ? nearest->cut : cut, rows, &rest)) return false;
  if (is_behind) sign = 0 - sign;
  for (size_t row = 0; row < rest.size(); ++row) (*ticks)[row] += sign * rest[row];
  return true;
}

bool LifetimeSums::sum(Window asked, Index::Steps steps, const IndexSums::Rows& rows,
                       std::vector<uint64_t>* ticks) const {
  const IndexTimes& times = index_.facts().times;
  bool has_from = asked.from_tick != 0, has_to = asked.to_tick != UINT64_MAX;
  // A window that begins with the very tick of a cut meets none that ends with one.
  bool meets = !has_from || (steps.first >= 2 && steps.first % 2 == 0);
  if (!rows.cut && meets) {
    ticks->assign(rows.count, 0);
    uint32_t to = has_to ? times.step_of(asked.to_tick) / 2 : IndexTimes::kCuts;
    if (add_up_to(to, 1, rows, ticks) &&
        (!has_from || add_up_to(steps.first / 2 - 1, ~uint64_t{0}, rows, ticks)))
      return true;
  }
  return sum_lifetimes(index_, tables_, asked, steps, rows, ticks);
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
