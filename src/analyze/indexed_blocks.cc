// SPDX-License-Identifier: Apache-2.0
// The blocks of a site (site_blocks.h) from an index. Of very many, each life is looked at once and
// for a few nanoseconds: what those of a kind come to is added up in tables that stay in the
// caches, either for one range or, to be asked again, for each step.

#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <unordered_map>

#include "analyze/site_blocks.h"
#include "analyze/small_numbers.h"
#include "analyze/tally.h"
#include "base/attributes.h"

namespace malloscope::analyze {
namespace {

// Bars of any number of blocks in bounded memory and without any order: beyond some, those of a
// kind that were born in the same of many short times become one.
class BarGrid {
 public:
  BarGrid(uint64_t from, uint64_t to, size_t few)
      : from_(from), slots_per_tick_(kSlots / static_cast<double>(to - from + 1)), few_(few) {
    std::ranges::fill(kinds_, kNoKind);
  }

  MSCOPE_FAST void add(const BlockBar& bar) {
    if (is_many_) [[likely]]
      return fold(bar);
    single_.push_back(bar);
    if (single_.size() < few_) return;
    is_many_ = true;
    for (const BlockBar& before : single_) fold(before);
    single_.clear();
  }
  void take(std::vector<BlockBar>* bars) {
    bars->insert(bars->end(), single_.begin(), single_.end());
    for (size_t kind = 0; kind < kinds_.size(); ++kind) {
      if (kinds_[kind] == kNoKind) continue;
      for (size_t slot = 0; slot < kSlots; ++slot) {
        const Sum& sum = sums_[kinds_[kind] * kSlots + slot];
        if (sum.blocks == 0) continue;
        bool is_one = sum.lowest_thread == sum.highest_thread;
        bars->push_back({sum.born, sum.died, sum.bytes, sum.blocks,
                         is_one ? ThreadId{sum.lowest_thread} : ThreadId::kNone,
                         static_cast<uint8_t>(kind % kClasses), life_class(kind / kClasses)});
      }
    }
  }

 private:
  static constexpr size_t kSlots = 1024;  // About as many as a page has pixels.
  static constexpr size_t kClasses = 65;
  static constexpr uint16_t kNoKind = UINT16_MAX;
  // Of no bars, so that what is added need not ask whether there are any.
  struct Sum {
    uint64_t born = UINT64_MAX, died = 0, bytes = 0, blocks = 0;
    uint32_t lowest_thread = UINT32_MAX, highest_thread = 0;
  };
  static uint8_t life_class(size_t number) {
    return number == kClasses ? UINT8_MAX : static_cast<uint8_t>(number);
  }

  MSCOPE_FAST void fold(const BlockBar& bar) {
    size_t life = bar.life_class == UINT8_MAX ? kClasses : bar.life_class;
    uint16_t& kind = kinds_[life * kClasses + bar.size_class];
    if (kind == kNoKind) [[unlikely]] {
      kind = static_cast<uint16_t>(sums_.size() / kSlots);
      sums_.resize(sums_.size() + kSlots);
    }
    // Those that were born before all slots are in the first.
    auto since = static_cast<double>(static_cast<int64_t>(std::max(bar.born, from_) - from_));
    auto slot = static_cast<size_t>(static_cast<int64_t>(since * slots_per_tick_));
    Sum& sum = sums_[kind * kSlots + std::min(slot, kSlots - 1)];
    sum.born = std::min(sum.born, bar.born);
    sum.died = std::max(sum.died, bar.died);
    sum.bytes += bar.bytes;
    sum.blocks += bar.blocks;
    sum.lowest_thread = std::min(sum.lowest_thread, raw(bar.thread));
    sum.highest_thread = std::max(sum.highest_thread, raw(bar.thread));
  }

  uint64_t from_;
  double slots_per_tick_;
  size_t few_;
  bool is_many_ = false;
  std::vector<BlockBar> single_;
  std::vector<Sum> sums_;                                       // kSlots of each kind.
  std::array<uint16_t, (kClasses + 1) * kClasses> kinds_ = {};  // By life and size.
};

}  // namespace

// What bars of a cell have in common: few cells differ in it. Number 0 is that of cells which are
// not wanted.
struct SiteBlocks::Looks {
  struct Look {
    Cells::Want want;
    ThreadId thread;
    uint8_t size_class;
    auto operator<=>(const Look&) const = default;
  };
  std::vector<Look> looks = {{Cells::kNone, ThreadId::kNone, 0}};
  std::vector<uint32_t> of_cell;

  Looks(const Index& index, const Cells& cells) : of_cell(cells.wants.size()) {
    // Numbers of the thread that was met last, by class of sizes.
    std::array<std::array<uint32_t, 3>, 65> of_last = {};
    ThreadId last = ThreadId::kNone;
    std::map<Look, uint32_t> known;
    for (size_t i = 0; i < cells.wants.size(); ++i) {
      if (cells.wants[i] == Cells::kNone) continue;
      const IndexCell& cell = index.cells()[i];
      if (thread_of(cell.strand) != last) {
        last = thread_of(cell.strand);
        of_last = {};
      }
      uint32_t& number = of_last[cell.size_class][cells.wants[i]];
      if (number == 0) {
        Look look = {cells.wants[i], last, static_cast<uint8_t>(cell.size_class)};
        auto [place, fresh] = known.try_emplace(look, static_cast<uint32_t>(looks.size()));
        if (fresh) looks.push_back(look);
        number = place->second;
      }
      of_cell[i] = number;
    }
  }
};

bool SiteBlocks::restore(const Index& index, Index::Steps steps, const Cells& cells) {
  const Looks looks(index, cells);
  return with_small_numbers(looks.of_cell, looks.looks.size(), [&](const auto& look_of) {
    return restore(index, steps, cells, looks, look_of);
  });
}

// Whether a life is shown.
class SiteBlocks::Wants {
 public:
  Wants(const Cells& cells, const Looks& looks)
      : cells_(cells),
        looks_(looks),
        wants_all_(std::ranges::find(looks.looks, Cells::kSome, &Looks::Look::want) ==
                   looks.looks.end()) {}

  // `look`: the number of its cell's look, not 0.
  MSCOPE_FAST bool operator()(const IndexLife& life, size_t look) {
    if (!(life.roles & IndexLife::kHeld)) return false;
    if (wants_all_ || looks_.looks[look].want == Cells::kAll) return true;
    knows_ &= !life.is_varied;
    return life.size() >= cells_.min_size && life.size() <= cells_.max_size;
  }
  // False: blocks of different sizes were put together of which only some are.
  bool knows() const { return knows_; }

 private:
  const Cells& cells_;
  const Looks& looks_;
  bool wants_all_, knows_ = true;
};

static void make_alive(BlockBar* bar) {
  bar->died = BlockBar::kAlive;
  bar->life_class = UINT8_MAX;
}

static BarGrid grid_of(const Index& index, Index::Steps steps, size_t most_bars) {
  const IndexTimes& times = index.facts().times;
  const uint64_t from = std::max(times.begin_of(steps.first), times.cuts.front());
  return BarGrid(from, std::max(times.begin_of(steps.last), from), most_bars * 4);
}

template <typename LookOf>
bool SiteBlocks::restore(const Index& index, Index::Steps steps, const Cells& cells,
                         const Looks& looks, const LookOf& look_of) {
  // Each thread has its own.
  struct alignas(64) Half {
    BarGrid bars;
    Wants wants;
    uint64_t blocks = 0;
    bool is_coarse = false;
  };
  BarGrid grid = grid_of(index, steps, most_bars_);
  Half halves[2] = {{grid, Wants(cells, looks)}, {grid, Wants(cells, looks)}};
  const IndexTimes& times = index.facts().times;
  auto add = [&](Half& half, const IndexLife& life, bool alive) {
    size_t look = look_of[life.cell];
    if (!half.wants(life, look)) return;
    uint64_t born = times.begin_of(life.born);
    BlockBar bar = {born + life.first_birth,
                    born + life.last_death,
                    life.bytes,
                    life.blocks,
                    looks.looks[look].thread,
                    static_cast<uint8_t>(size_class(life.size())),
                    static_cast<uint8_t>(size_class(life.longest_ticks))};
    if (alive) make_alive(&bar);
    half.bars.add(bar);
    half.blocks += life.blocks;
    half.is_coarse |= life.blocks > 1;
  };
  auto wants = [&](uint64_t cell) { return look_of[cell] != 0; };
  bool good = index.for_each_born_ended_in_two(
      steps, wants, [&](size_t half, const IndexLife& life) { add(halves[half], life, false); });
  good = good && index.for_each_live(steps.last, [&](const IndexLife& life) {
    if (wants(life.cell)) add(halves[0], life, true);
  });
  for (Half& half : halves) {
    half.bars.take(&bars_);
    blocks_ += half.blocks;
    good &= half.wants.knows();
    is_coarse_ |= half.is_coarse;
  }
  return good;
}

// Lives that ended in one step, put together: those that were born in the same, lived about as long
// and look the same.
class SiteBlocks::StepFold {
 public:
  StepFold(const Index& index, const Cells& cells, const Looks& looks)
      : times_(index.facts().times),
        looks_(looks),
        wants_(cells, looks),
        stride_(looks.looks.size() * kLives),
        near_(kAges * stride_) {}

  // `look`: see Wants. `ended`: the step.
  MSCOPE_FAST void add(const IndexLife& life, size_t look, uint32_t ended) {
    if (!wants_(life, look)) return;
    size_t length = ended == IndexTimes::kSteps ? kLives - 1 : size_class(life.longest_ticks);
    uint32_t age = ended - life.born;
    uint32_t& place = age < kAges ? near_[age * stride_ + look * kLives + length]
                                  : far_place(life.born, look, length);
    if (place == 0) [[unlikely]]
      place = begin_sum(life.born, look, length);
    sums_[place - 1].add(life);
  }

  void finish_step(uint32_t ended, std::vector<Folded::Entry>* entries) {
    for (size_t i = 0; i < sums_.size(); ++i) {
      const Sum& sum = sums_[i];
      const Kind& kind = kinds_[i];
      const Looks::Look& look = looks_.looks[kind.look];
      uint64_t born = times_.begin_of(kind.born);
      BlockBar bar = {born + sum.first, born + sum.last, sum.bytes,  sum.blocks,
                      look.thread,      look.size_class, kind.length};
      if (ended == IndexTimes::kSteps) make_alive(&bar);
      entries->push_back({kind.born, ended, bar});
      if (uint32_t age = ended - kind.born; age < kAges)
        near_[age * stride_ + kind.look * kLives + kind.length] = 0;
    }
    sums_.clear();
    kinds_.clear();
    far_.clear();
  }
  bool knows() const { return wants_.knows(); }

 private:
  static constexpr size_t kLives = 66;  // Powers of two, and never.
  static constexpr uint32_t kAges = 16;
  struct Kind {
    uint32_t born, look;
    uint8_t length;
  };
  struct Sum {  // Of a kind, apart from what that is, so that all fit into the nearest cache.
    uint64_t first = UINT64_MAX, last = 0;  // Ticks since the step of birth began.
    uint64_t bytes = 0, blocks = 0;

    MSCOPE_FAST void add(const IndexLife& life) {
      first = std::min(first, life.first_birth);
      last = std::max(last, life.last_death);
      bytes += life.bytes;
      blocks += life.blocks;
    }
  };

  MSCOPE_SLOW uint32_t begin_sum(uint32_t born, size_t look, size_t length) {
    kinds_.push_back({born, static_cast<uint32_t>(look), static_cast<uint8_t>(length)});
    sums_.emplace_back();
    return static_cast<uint32_t>(sums_.size());
  }
  MSCOPE_SLOW uint32_t& far_place(uint32_t born, size_t look, size_t length) {
    return far_[(uint64_t{look} * IndexTimes::kSteps + born) * kLives + length];
  }

  const IndexTimes& times_;
  const Looks& looks_;
  Wants wants_;
  const size_t stride_;
  std::vector<Sum> sums_;  // Of the step.
  std::vector<Kind> kinds_;
  // Which sum, + 1: by age in steps, look and length, where nearly all are; of those that are older
  // by birth instead.
  std::vector<uint32_t> near_;
  std::unordered_map<uint64_t, uint32_t> far_;
};

template <typename LookOf>
bool SiteBlocks::Folded::fold(const Index& index, const Cells& cells,
                              std::span<const Index::Steps> missing, uint32_t last,
                              const Looks& looks, const LookOf& look_of) {
  StepFold folds[2] = {StepFold(index, cells, looks), StepFold(index, cells, looks)};
  std::vector<Entry> halves[2];
  auto wants = [&](uint64_t cell) { return look_of[cell] != 0; };
  bool good = true;
  for (Index::Steps steps : missing)
    good &= index.in_two(steps, [&](size_t i, IndexBlocks* blocks, uint32_t first, uint32_t end) {
      for (uint32_t step = first; step < end; ++step) {
        auto add = [&](const IndexLife& life) __attribute__((always_inline)) {
          folds[i].add(life, look_of[life.cell], step);
        };
        if (!index.for_each_born_ended(blocks, step, step + 1, wants, add)) return false;
        folds[i].finish_step(step, &halves[i]);
      }
      return true;
    });
  for (const std::vector<Entry>& half : halves)
    ended_.insert(ended_.end(), half.begin(), half.end());
  live_.clear();
  good = good && index.for_each_live(last, [&](const IndexLife& life) {
    if (wants(life.cell)) folds[1].add(life, look_of[life.cell], IndexTimes::kSteps);
  });
  folds[1].finish_step(IndexTimes::kSteps, &live_);
  return good && folds[0].knows() && folds[1].knows();
}

bool SiteBlocks::Folded::cover(const Index& index, const Cells& cells, Index::Steps steps) {
  std::vector<Index::Steps> missing;
  Index::Steps all = steps;
  if (!steps_) {
    missing.push_back(steps);
  } else {
    all = {std::min(steps.first, steps_->first), std::max(steps.last, steps_->last)};
    if (all.first < steps_->first) missing.push_back({all.first, steps_->first - 1});
    if (all.last > steps_->last) missing.push_back({steps_->last + 1, all.last});
  }
  if (missing.empty()) return true;
  const Looks looks(index, cells);
  steps_ = all;
  return with_small_numbers(looks.of_cell, looks.looks.size(), [&](const auto& look_of) {
    return fold(index, cells, missing, all.last, looks, look_of);
  });
}

void SiteBlocks::restore(const Folded& folded, const Index& index, Index::Steps steps) {
  BarGrid bars = grid_of(index, steps, most_bars_);
  for (const auto* entries : {&folded.ended_, &folded.live_})
    for (const Folded::Entry& entry : *entries) {
      if (entry.ended < steps.first || entry.born > steps.last) continue;
      BlockBar bar = entry.bar;
      if (entry.ended > steps.last) make_alive(&bar);
      bars.add(bar);
      blocks_ += bar.blocks;
      is_coarse_ |= bar.blocks > 1;
    }
  bars.take(&bars_);
}

}  // namespace malloscope::analyze
