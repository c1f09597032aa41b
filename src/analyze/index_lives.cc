// SPDX-License-Identifier: Apache-2.0
#include "analyze/index_lives.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "analyze/log_histogram.h"
#include "base/packing.h"

namespace malloscope::analyze {

namespace {

void put(std::vector<uint8_t>* column, uint64_t value) {
  uint8_t bytes[kMaxVarintBytes];
  column->insert(column->end(), bytes, put_varint(bytes, value));
}

void merge(const IndexLife& more, IndexLife* life) {
  life->blocks += more.blocks;
  life->bytes += more.bytes;
  life->first_tick = std::min(life->first_tick, more.first_tick);
  life->last_tick = std::max(life->last_tick, more.last_tick);
  life->longest_ticks = std::max(life->longest_ticks, more.longest_ticks);
}

// What a column's cells are told as.
uint64_t gap(uint32_t cell, uint32_t* last_cell) { return cell - std::exchange(*last_cell, cell); }

}  // namespace

std::vector<PackedBlock> IndexLivesWriter::finish(uint32_t step) {
  if (lives_.empty()) return {};
  // Nearly all cells have few: they are brought together by numbers alone.
  std::vector<uint64_t> order;
  order.reserve(lives_.size());
  for (size_t i = 0; i < lives_.size(); ++i) order.push_back(uint64_t{lives_[i].cell} << 32 | i);
  std::ranges::sort(order);
  std::vector<Columns> reaches(step < IndexTimes::kSteps ? kReaches : 1);
  std::vector<Keyed> of_cell;
  for (size_t i = 0; i < order.size();) {
    of_cell.clear();
    for (uint64_t cell = order[i] >> 32; i < order.size() && order[i] >> 32 == cell; ++i)
      of_cell.push_back(keyed(lives_[order[i] & UINT32_MAX], step));
    if (of_cell.size() > 1)
      std::ranges::sort(of_cell, [](const Keyed& a, const Keyed& b) { return a.key() < b.key(); });
    for (size_t k = 0; k < of_cell.size();) {
      size_t first = k;
      IndexLife life = of_cell[k++].life;
      for (; k < of_cell.size() && of_cell[k].key() == of_cell[first].key(); ++k)
        merge(of_cell[k].life, &life);
      write(life, step, &reaches[reaches.size() == 1 ? 0 : reach_of(step - life.born)]);
    }
  }
  lives_.clear();
  std::vector<PackedBlock> blocks;
  for (const Columns& columns : reaches) {
    PackedBlock& block = blocks.emplace_back();
    if (std::ranges::all_of(columns.bytes, [](const auto& column) { return column.empty(); }))
      continue;
    Packer raw;
    for (const auto& column : columns.bytes) raw.number(column.size());
    for (const auto& column : columns.bytes) raw.bytes(column);
    block = PackedBlock::of(std::move(raw.result()));
  }
  return blocks;
}

IndexLivesWriter::Keyed IndexLivesWriter::keyed(const Life& life, uint32_t step) const {
  Keyed keyed;
  IndexLife& to = keyed.life;
  to.cell = life.cell;
  to.born = to.began = std::min(step, times_->step_of(life.born_tick));
  if (to.born < step) {
    if (life.began_tick != life.born_tick)
      to.began = std::min(to.born, times_->step_of(life.began_tick));
    to.first_tick = to.last_tick = life.born_tick;
  }
  to.roles = life.roles;
  to.by_maker = life.by_maker;
  to.freer = life.freer;
  to.blocks = life.blocks;
  to.bytes = life.bytes;
  to.longest_ticks = life.ticks;
  keyed.length = LogHistogram::step_of(
      static_cast<uint64_t>(static_cast<double>(life.ticks) * times_->ns_per_tick));
  return keyed;
}

void IndexLivesWriter::write(const IndexLife& life, uint32_t step, Columns* to) const {
  std::vector<uint8_t>* columns = to->bytes;
  bool inner = life.born == step;
  uint64_t birth = inner ? 0 : life.first_tick - times_->begin_of(life.born);
  if (life.blocks == 1 && life.roles == IndexLife::kAll && life.by_maker &&
      life.began == life.born) {
    put(&columns[inner ? kInnerGaps : kGaps], gap(life.cell, &to->last_cells[inner]));
    put(&columns[inner ? kInnerSizes : kSizes], life.bytes);
    put(&columns[inner ? kInnerTicks : kTicks], life.longest_ticks);
    if (inner) return;
    put(&columns[kAges], step - life.born);
    put(&columns[kBirths], birth);
    return;
  }
  std::vector<uint8_t>* other = &columns[inner ? kOtherInner : kOther];
  put(other, gap(life.cell, &to->last_cells[2 + inner]));
  if (!inner) {
    put(other, step - life.born);
    put(other, birth);
    put(other, life.last_tick - life.first_tick);
    put(other, life.born - life.began);
  }
  put(other, life.roles);
  put(other, life.by_maker ? 0 : raw(life.freer) + uint64_t{1});
  put(other, life.blocks);
  put(other, life.bytes);
  put(other, life.longest_ticks);
}

bool IndexLivesReader::open(std::vector<uint8_t>* packed, uint64_t raw_bytes, uint32_t step) {
  step_ = step;
  if (!PackedBlock::unpack(packed, raw_bytes, &raw_)) return false;
  Unpacker in(std::span<const uint8_t>(raw_).first(raw_bytes));
  uint64_t sizes[IndexLivesWriter::kColumns];
  for (uint64_t& size : sizes) size = in.number();
  for (int i = 0; i < IndexLivesWriter::kColumns; ++i) columns_[i] = in.bytes(sizes[i]);
  return in.ok() && in.done();
}

}  // namespace malloscope::analyze
