// SPDX-License-Identifier: Apache-2.0
#include "analyze/index_sums.h"

#include <algorithm>
#include <future>
#include <numeric>
#include <utility>

namespace malloscope::analyze {

static uint64_t amount_of(const IndexEntry& entry, size_t amount) {
  switch (amount) {
    case IndexSums::kAllocations:
      return entry.allocations;
    case IndexSums::kReallocations:
      return entry.reallocations;
    case IndexSums::kTemporary:
      return entry.temporary;
    case IndexSums::kAllocatedBytes:
      return entry.allocated_bytes;
    case IndexSums::kLiveBytes:
      return static_cast<uint64_t>(entry.live_bytes);
    case IndexSums::kLiveBlocks:
      return static_cast<uint64_t>(entry.live_blocks);
    default:
      return static_cast<uint64_t>(entry.peak_bytes);
  }
}

uint64_t Counts::* IndexSums::part_of(size_t amount) {
  switch (amount) {
    case kAllocations:
      return &Counts::allocations;
    case kReallocations:
      return &Counts::reallocations;
    case kTemporary:
      return &Counts::temporary;
    case kAllocatedBytes:
      return &Counts::allocated_bytes;
    case kLiveBytes:
      return &Counts::live_bytes;
    case kLiveBlocks:
      return &Counts::live_blocks;
    default:
      return &Counts::peak_bytes;
  }
}

IndexSums::Kept::Kept(const std::vector<uint64_t>& numbers) {
  if (std::ranges::any_of(numbers, [](uint64_t number) { return number > UINT32_MAX; }))
    wide = numbers;
  else
    narrow.assign(numbers.begin(), numbers.end());
}

void IndexSums::Kept::add_to(const Rows& rows, std::vector<uint64_t>* sums) const {
  auto add = [&](const auto& numbers) {
    for (size_t cell = 0; cell < numbers.size(); ++cell)
      if (uint32_t row = rows.of_cell[cell]; row != kNobody) (*sums)[row] += numbers[cell];
  };
  add(narrow), add(wide);
}

IndexSums::IndexSums(Index* index, size_t most_bytes) : index_(*index) {
  constexpr uint32_t kGroup = IndexTimes::kGroupSteps;
  size_t cells = index_.cells().size();
  size_t moments = std::clamp<size_t>(most_bytes / (cells * kFlows * sizeof(uint32_t) + 1), 1, 31);
  size_t groups = IndexTimes::kSteps / kGroup;
  moment_steps_ = static_cast<uint32_t>((groups + moments) / (moments + 1)) * kGroup;
  for (auto& blocks : besides_) blocks = index_.blocks().another();
}

bool IndexSums::prepare() {
  constexpr uint32_t kGroup = IndexTimes::kGroupSteps;
  if (next_.step + kGroup >= IndexTimes::kSteps) return false;
  if (next_.step == 0) {
    for (std::vector<uint64_t>& flow : next_.flows) flow.resize(index_.cells().size());
    itself_.resize(index_.cells().size());
    std::iota(itself_.begin(), itself_.end(), 0u);
  }
  bool ok = add(next_.step, next_.step + kGroup, 1, all(), {itself_, itself_.size()},
                &index_.blocks(), &next_.flows);
  next_.step += kGroup;
  if (!ok) next_.step = IndexTimes::kSteps;  // Whoever asks will meet it as well.
  if (ok && next_.step % moment_steps_ == 0)
    moments_.push_back({next_.step, {next_.flows.begin(), next_.flows.end()}});
  if (next_.step + kGroup < IndexTimes::kSteps) return true;
  next_.flows = Flows();
  itself_ = {};
  return false;
}

bool IndexSums::add(uint32_t first, uint32_t end, uint64_t sign, const Wanted& wanted,
                    const Rows& rows, IndexBlocks* blocks, Flows* flows) const {
  const uint32_t* row_of_cell = rows.of_cell.data();
  auto each = [&](auto&& count) {
    return index_.cover(blocks, first, end, [&](const IndexEntry& entry) {
      if (uint32_t row = row_of_cell[entry.cell]; row != kNobody) count(entry, row);
    });
  };
  std::vector<size_t> some;
  for (size_t i = 0; i < kFlows; ++i)
    if (wanted[i]) some.push_back(i);
  if (some.size() == kFlows)  // Of most entries several are known to be 0 when this is compiled.
    return each([&](const IndexEntry& entry, uint32_t row) __attribute__((always_inline)) {
      [&]<size_t... kI>(std::index_sequence<kI...>) __attribute__((always_inline)) {
        auto count = [row](std::vector<uint64_t>& flow, uint64_t amount) {
          if (amount != 0) flow[row] += amount;
        };
        (count((*flows)[kI], sign * amount_of(entry, kI)), ...);
      }(std::make_index_sequence<kFlows>());
    });
  if (some.size() != 1)
    return each([&](const IndexEntry& entry, uint32_t row) {
      for (size_t i : some) (*flows)[i][row] += sign * amount_of(entry, i);
    });
  uint64_t* flow = (*flows)[some[0]].data();
  auto one = [&](auto amount) {
    return each([&](const IndexEntry& entry, uint32_t row) {
      flow[row] += sign * amount_of(entry, decltype(amount)::value);
    });
  };
  switch (some[0]) {
    case kAllocatedBytes:
      return one(std::integral_constant<size_t, kAllocatedBytes>());
    case kLiveBytes:
      return one(std::integral_constant<size_t, kLiveBytes>());
    default:
      return each([&](const IndexEntry& entry, uint32_t row) {
        flow[row] += sign * amount_of(entry, some[0]);
      });
  }
}

bool IndexSums::flows_before(uint32_t step, const Wanted& wanted, const Rows& rows,
                             IndexBlocks* blocks, IndexBlocks* idle, Flows* flows) const {
  const Moment* nearest = nullptr;  // None: the beginning.
  auto distance = [&](uint32_t from) { return from < step ? step - from : from - step; };
  for (const Moment& moment : moments_)
    if (distance(moment.step) < distance(nearest ? nearest->step : 0)) nearest = &moment;
  for (size_t i = 0; i < kFlows; ++i) {
    if (!wanted[i]) continue;
    (*flows)[i].assign(rows.count, 0);
    if (nearest) nearest->flows[i].add_to(rows, &(*flows)[i]);
  }
  uint32_t from = nearest ? nearest->step : 0, to = step;
  uint64_t sign = 1;
  if (from > to) std::swap(from, to), sign = ~uint64_t{0};
  constexpr uint32_t kGroup = IndexTimes::kGroupSteps;
  uint32_t middle = from + (to - from) / 2 / kGroup * kGroup;
  if (!idle || middle == from) return add(from, to, sign, wanted, rows, blocks, flows);
  Flows beside;
  for (size_t i = 0; i < kFlows; ++i)
    if (wanted[i]) beside[i].assign(rows.count, 0);
  auto second = std::async(std::launch::async,
                           [&] { return add(middle, to, sign, wanted, rows, idle, &beside); });
  bool first = add(from, middle, sign, wanted, rows, blocks, flows);
  if (!second.get() || !first) return false;
  for (size_t i = 0; i < kFlows; ++i)
    for (size_t row = 0; row < beside[i].size(); ++row) (*flows)[i][row] += beside[i][row];
  return true;
}

bool IndexSums::whole(const Wanted& wanted, const Rows& rows, Amounts* sums) {
  for (size_t i = 0; i < kAmounts; ++i)
    if (wanted[i]) (*sums)[i].assign(rows.count, 0);
  auto add = [&](const IndexEntry& entry) {
    uint32_t row = rows.of_cell[entry.cell];
    if (row == kNobody) return;
    for (size_t i = 0; i < kAmounts; ++i)
      if (wanted[i]) (*sums)[i][row] += amount_of(entry, i);
  };
  IndexBlockReader* block = index_.blocks().whole();
  return block ? block->for_each(index_.usual_sizes(), add) : !index_.blocks().damaged();
}

bool IndexSums::peak(const Index::Course& course, Index::Steps steps, const Rows& rows,
                     IndexBlocks* blocks, IndexBlocks* idle, std::vector<uint64_t>* shares) const {
  bool begins_with_peak = course.peak_step == IndexFacts::kNever;
  uint32_t step = begins_with_peak ? steps.first : course.peak_step;
  Wanted live = {};
  live[kLiveBytes] = true;
  Flows flows;
  if (!flows_before(step, live, rows, blocks, idle, &flows)) return false;
  *shares = std::move(flows[kLiveBytes]);
  auto add = [&](const IndexEntry& entry) {
    uint32_t row = rows.of_cell[entry.cell];
    if (row != kNobody)
      (*shares)[row] += static_cast<uint64_t>(course.own ? entry.own_peak_bytes : entry.peak_bytes);
  };
  if (!begins_with_peak && !index_.cover(blocks, step, step + 1, add)) return false;
  std::vector<bool> gone;
  for (uint32_t image = 1; image <= index_.facts().images.size(); ++image)
    gone.push_back(index_.is_gone(ImageId{image}, course, steps));
  if (std::ranges::find(gone, true) == gone.end()) return true;
  for (size_t cell = 0; cell < rows.of_cell.size(); ++cell)
    if (uint32_t row = rows.of_cell[cell]; row != kNobody)
      if (gone[raw(index_.cells()[cell].image) - 1]) (*shares)[row] = 0;
  return true;
}

// The three looks that a question may take are at different steps, so each has its own thread; one
// alone has two.
bool IndexSums::sum_cells(const Index::Course& course, Index::Steps steps, const Wanted& wanted,
                          const Rows& rows, Amounts* sums) {
  *sums = {};
  if (steps.are_all() && !course.own) return whole(wanted, rows, sums);

  Wanted counts = wanted;
  counts[kLiveBytes] = counts[kLiveBlocks] = counts[kPeakBytes] = false;
  bool has_before = steps.first > 0 && std::ranges::find(counts, true) != counts.end();
  Wanted some = wanted;
  some[kPeakBytes] = false;
  bool has_flows = std::ranges::find(some, true) != some.end();
  bool is_alone = !has_before && has_flows != wanted[kPeakBytes];
  IndexBlocks* idle = is_alone ? besides_[0].get() : nullptr;
  Flows before;
  auto found_before = std::async(std::launch::async, [&] {
    return !has_before ||
           flows_before(steps.first, counts, rows, besides_[0].get(), nullptr, &before);
  });
  auto found_peak = std::async(std::launch::async, [&] {
    return !wanted[kPeakBytes] ||
           peak(course, steps, rows, besides_[1].get(), idle, &(*sums)[kPeakBytes]);
  });
  Flows flows;
  bool ok = !has_flows || flows_before(steps.last + 1, some, rows, &index_.blocks(), idle, &flows);
  if (!found_before.get() || !found_peak.get() || !ok) return false;
  for (size_t i = 0; i < kFlows; ++i) {
    if (!wanted[i]) continue;
    (*sums)[i] = std::move(flows[i]);
    if (has_before && counts[i])
      for (size_t row = 0; row < rows.count; ++row) (*sums)[i][row] -= before[i][row];
  }
  if (wanted[kTemporary])
    index_.for_each_straddler(steps, [&](uint32_t cell, uint32_t blocks) {
      if (rows.of_cell[cell] != kNobody) (*sums)[kTemporary][rows.of_cell[cell]] -= blocks;
    });
  return true;
}

bool IndexSums::cut_sizes(const Index::Course& course, Index::Steps steps, const Wanted& wanted,
                          const Rows& rows, Amounts* sums) const {
  Amounts beside;
  for (size_t i = 0; i < kAmounts; ++i)
    if (wanted[i]) beside[i].assign(rows.count, 0);
  auto add = [&](size_t half, const OddEntry& entry, const Numbers& numbers) {
    auto [row, sign] = rows.share(entry.cell, entry.size);
    if (sign == 0) return;
    for (size_t i = 0; i < kAmounts; ++i)
      if (wanted[i])
        (half == 0 ? *sums : beside)[i][row] += static_cast<uint64_t>(sign) * numbers[i];
  };
  bool good = for_each_odd(course, steps, wanted, add);
  for (size_t i = 0; i < kAmounts; ++i)
    for (size_t row = 0; row < beside[i].size(); ++row) (*sums)[i][row] += beside[i][row];
  if (wanted[kTemporary])
    for (const IndexFacts::Straddler& block : index_.facts().straddlers) {
      if (!Index::straddles(block, steps)) continue;
      auto [row, sign] = rows.share(block.cell, block.size);
      if (sign != 0) (*sums)[kTemporary][row] -= static_cast<uint64_t>(sign) * block.blocks;
    }
  return good;
}

bool IndexSums::sum(Selection selection, Window window, Index::Steps steps, const Wanted& wanted,
                    const Rows& rows, Amounts* sums) {
  Index::Course course = index_.course(selection, window, steps);
  return sum_cells(course, steps, wanted, rows, sums) &&
         (!rows.cut || cut_sizes(course, steps, wanted, rows, sums));
}

}  // namespace malloscope::analyze
