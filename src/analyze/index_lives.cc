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
  life->is_varied |= more.is_varied || more.size() != life->size();
  life->blocks += more.blocks;
  life->bytes += more.bytes;
  life->first_birth = std::min(life->first_birth, more.first_birth);
  life->last_birth = std::max(life->last_birth, more.last_birth);
  life->births += more.births;
  life->last_death = std::max(life->last_death, more.last_death);
  life->longest_ticks = std::max(life->longest_ticks, more.longest_ticks);
  life->ticks += more.ticks;
}

// What a column's cells are told as.
uint32_t gap(uint32_t cell, uint32_t* last_cell) { return cell - std::exchange(*last_cell, cell); }

}  // namespace

// Lives put together as they come, by a table of their keys: where many are alike that is far less
// work than to bring them into order first.
class IndexLivesWriter::Folded {
 public:
  Folded() : places_(kFewest, 0) {}

  void add(const Keyed& fresh) {
    for (size_t at = hash(fresh) & (places_.size() - 1);; at = (at + 1) & (places_.size() - 1)) {
      if (places_[at] == 0) {
        lives_.push_back(fresh);
        places_[at] = static_cast<uint32_t>(lives_.size());
        if (lives_.size() * 2 > places_.size()) grow();
        return;
      }
      Keyed& known = lives_[places_[at] - 1];
      if (known.life.cell != fresh.life.cell || known.key() != fresh.key()) continue;
      return merge(fresh.life, &known.life);
    }
  }
  size_t size() const { return lives_.size(); }

  std::vector<Keyed> in_order() && {
    std::ranges::sort(lives_, [](const Keyed& a, const Keyed& b) {
      return a.life.cell != b.life.cell ? a.life.cell < b.life.cell : a.key() < b.key();
    });
    return std::move(lives_);
  }

 private:
  static constexpr size_t kFewest = 1 << 13;

  static size_t hash(const Keyed& keyed) {
    const IndexLife& life = keyed.life;
    uint64_t h = uint64_t{life.cell} << 32 | uint64_t{life.born} << 16 | keyed.length;
    h ^= (uint64_t{life.began} << 40 | uint64_t{raw(life.freer)} << 8 | life.roles << 1 |
          unsigned{life.by_maker}) *
         0xd6e8feb86659fd93;
    h *= 0x9e3779b97f4a7c15;
    return h >> 32;
  }
  void grow() {
    places_.assign(places_.size() * 2, 0);
    for (size_t i = 0; i < lives_.size(); ++i) {
      size_t at = hash(lives_[i]) & (places_.size() - 1);
      while (places_[at] != 0) at = (at + 1) & (places_.size() - 1);
      places_[at] = static_cast<uint32_t>(i + 1);
    }
  }

  std::vector<Keyed> lives_;
  std::vector<uint32_t> places_;  // Open addressing: a life's number, + 1.
};

// Few are alike where many stacks come up equally often. A look at the first ones tells.
bool IndexLivesWriter::are_alike(uint32_t step) const {
  constexpr size_t kLook = 4096;
  if (lives_.size() < 4 * kLook) return false;
  Folded some;
  for (size_t i = 0; i < kLook; ++i) some.add(keyed(lives_[i], step));
  return some.size() < kLook / 2;
}

std::vector<PackedBlock> IndexLivesWriter::finish(uint32_t step) {
  if (lives_.empty()) return {};
  std::vector<Reach> reaches(step < IndexTimes::kSteps ? kReaches : 1);
  auto write_one = [&](const IndexLife& life) {
    write(life, step, &reaches[reaches.size() == 1 ? 0 : reach_of(step - life.born)]);
  };
  if (are_alike(step)) {
    Folded folded;
    for (const Life& life : lives_) folded.add(keyed(life, step));
    for (const Keyed& keyed : std::move(folded).in_order()) write_one(keyed.life);
  } else {
    for_each_put_together(step, write_one);
  }
  lives_.clear();
  return packed(std::move(reaches));
}

template <typename Visit>
void IndexLivesWriter::for_each_put_together(uint32_t step, Visit&& visit) const {
  // Nearly all cells have few: they are brought together by numbers alone.
  std::vector<uint64_t> order;
  order.reserve(lives_.size());
  for (size_t i = 0; i < lives_.size(); ++i) order.push_back(uint64_t{lives_[i].cell} << 32 | i);
  std::ranges::sort(order);
  std::vector<Keyed> of_cell;
  constexpr size_t kAhead = 16, kFew = 8;
  for (size_t i = 0; i < order.size();) {
    of_cell.clear();
    for (uint64_t cell = order[i] >> 32; i < order.size() && order[i] >> 32 == cell; ++i) {
      if (i + kAhead < order.size()) __builtin_prefetch(&lives_[order[i + kAhead] & UINT32_MAX]);
      of_cell.push_back(keyed(lives_[order[i] & UINT32_MAX], step));
    }
    // Of many, those of all sizes together: else the entries would be as many as the blocks.
    auto together = [by_size = of_cell.size() <= kFew](const Keyed& keyed) {
      return std::tuple_cat(keyed.key(), std::tuple(by_size ? keyed.life.size() : 0));
    };
    if (of_cell.size() > 1) std::ranges::sort(of_cell, {}, together);
    for (size_t k = 0; k < of_cell.size();) {
      size_t first = k;
      IndexLife life = of_cell[k++].life;
      for (; k < of_cell.size() && together(of_cell[k]) == together(of_cell[first]); ++k)
        merge(of_cell[k].life, &life);
      visit(life);
    }
  }
}

std::vector<PackedBlock> IndexLivesWriter::packed(std::vector<Reach> reaches) {
  std::vector<PackedBlock> blocks;
  for (Reach& reach : reaches) {
    PackedBlock& block = blocks.emplace_back();
    if (reach.inner.empty() && reach.straddlers.empty()) continue;
    Packer raw;
    std::vector<std::vector<uint8_t>> taken;
    for (Columns* columns : {&reach.inner, &reach.straddlers}) {
      raw.number(columns->singles[kGaps].size());
      for (const std::vector<uint64_t>& numbers : columns->singles)
        put_batches(numbers, &taken.emplace_back());
      taken.push_back(std::move(columns->others));
    }
    for (const auto& column : taken) raw.number(column.size());
    for (const auto& column : taken) raw.bytes(column);
    block = PackedBlock::of(std::move(raw.result()));
  }
  return blocks;
}

IndexLivesWriter::Keyed IndexLivesWriter::keyed(const Life& life, uint32_t step) const {
  Keyed keyed;
  IndexLife& to = keyed.life;
  to.cell = life.cell;
  to.born = to.began = std::min(step, times_->step_of(life.born_tick));
  if (to.born < step && life.began_tick != life.born_tick)
    to.began = std::min(to.born, times_->step_of(life.began_tick));
  to.first_birth = to.last_birth = life.born_tick - times_->begin_of(to.born);
  to.births = to.first_birth * life.blocks;
  to.last_death = to.first_birth + life.ticks;
  to.roles = life.roles;
  to.by_maker = life.by_maker;
  to.freer = life.freer;
  to.blocks = life.blocks;
  to.bytes = life.bytes;
  to.longest_ticks = life.ticks;
  to.ticks = life.ticks * life.blocks;
  keyed.length = LogHistogram::step_of(
      static_cast<uint64_t>(static_cast<double>(life.ticks) * times_->ns_per_tick));
  return keyed;
}

bool IndexLivesWriter::is_single(const IndexLife& life) {
  return life.blocks == 1 && life.roles == IndexLife::kAll && life.by_maker &&
         life.began == life.born;
}

void IndexLivesWriter::write(const IndexLife& life, uint32_t step, Reach* reach) {
  bool inner = life.born == step;
  Columns& to = inner ? reach->inner : reach->straddlers;
  if (is_single(life)) {
    to.singles[kGaps].push_back(gap(life.cell, &to.last_single));
    to.singles[kSizes].push_back(life.bytes);
    to.singles[kTicks].push_back(life.ticks);
    if (!inner) to.singles[kAges].push_back(step - life.born);
    to.singles[kBirths].push_back(life.births);
    return;
  }
  std::vector<uint8_t>* others = &to.others;
  put(others, gap(life.cell, &to.last_other));
  if (!inner) {
    put(others, step - life.born);
    put(others, life.born - life.began);
  }
  put(others, life.first_birth);
  put(others, life.last_birth - life.first_birth);
  put(others, life.births);
  put(others, life.last_death - life.first_birth);
  put(others, life.roles + (life.is_varied ? IndexLife::kAll + 1 : 0));
  put(others, life.by_maker ? 0 : raw(life.freer) + uint64_t{1});
  put(others, life.blocks);
  put(others, life.bytes);
  put(others, life.longest_ticks);
  put(others, life.ticks);
}

bool IndexLivesReader::open(std::vector<uint8_t>* packed, uint64_t raw_bytes, uint32_t step) {
  step_ = step;
  if (!PackedBlock::unpack(packed, raw_bytes, &raw_)) return false;
  Unpacker in(std::span<const uint8_t>(raw_).first(raw_bytes));
  uint64_t sizes[2][Writer::kSingles + 1];
  Columns* both[2] = {&inner_, &straddlers_};
  for (Columns* columns : both) columns->count = in.number();
  for (auto& of_columns : sizes)
    for (uint64_t& size : of_columns) size = in.number();
  for (int i = 0; i < 2; ++i) {
    for (int column = 0; column < Writer::kSingles; ++column)
      both[i]->singles[column] = in.bytes(sizes[i][column]);
    both[i]->others = in.bytes(sizes[i][Writer::kSingles]);
  }
  return in.ok() && in.done();
}

}  // namespace malloscope::analyze
