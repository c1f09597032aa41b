// SPDX-License-Identifier: Apache-2.0
#include "analyze/site_blocks.h"

#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <tuple>
#include <unordered_map>

#include "analyze/small_numbers.h"
#include "analyze/tally.h"
#include "base/attributes.h"

namespace malloscope::analyze {

void SiteBlocks::add(ImageId image, const Block& block, uint64_t died) {
  if (!wants_(image, block)) return;
  BlockBar bar;
  bar.born = block.born_tick;
  bar.died = died;
  bar.bytes = block.bytes();
  bar.blocks = block.stands_for();
  bar.thread = thread_of(block.strand);
  bar.size_class = static_cast<uint8_t>(size_class(block.size));
  bar.life_class =
      died == BlockBar::kAlive ? UINT8_MAX : static_cast<uint8_t>(size_class(died - bar.born));
  bars_.push_back(bar);
  blocks_ += block.stands_for();
  // Room for many, so that this is rare, and more than is shown in the end: neighbours of which
  // one comes late find each other then.
  if (bars_.size() > most_bars_ * 16) thin(most_bars_ * 8);
}

void SiteBlocks::changed(ImageId image, const Block& before, const Block& now,
                         const wire::Event& event, bool counts) {
  // The block goes on, but is another stack's or has another size.
  (void)now;
  if (counts) add(image, before, std::max(event.tick, before.born_tick));
}

void SiteBlocks::gone(ImageId image, const Block& block, End how, const wire::Event& event,
                      bool counts) {
  (void)how;
  if (counts) add(image, block, std::max(event.tick, block.born_tick));
}

void SiteBlocks::left(ImageId image, const BlockTable& live) {
  live.for_each([&](const Block& block) { add(image, block, BlockBar::kAlive); });
}

// For how long the bar of two would say that there was a block when there was none, or where one is
// longer. UINT64_MAX: they are unlike each other.
static uint64_t waste(const BlockBar& bar, const BlockBar& next) {
  if (bar.life_class != next.life_class || bar.size_class != next.size_class) return UINT64_MAX;
  uint64_t longest = std::max(bar.died - bar.born, next.died - next.born);
  return std::min(std::max(bar.died, next.died) - bar.born - longest, UINT64_MAX - 1);
}

// Of the `pairs` of neighbours that waste the least, what the worst does.
uint64_t SiteBlocks::highest_waste(size_t pairs) const {
  std::vector<uint64_t> wastes;
  for (size_t i = 0; i + 1 < bars_.size(); ++i)
    if (uint64_t here = waste(bars_[i], bars_[i + 1]); here != UINT64_MAX) wastes.push_back(here);
  if (wastes.size() <= pairs) return UINT64_MAX - 1;
  auto last = wastes.begin() + static_cast<ptrdiff_t>(pairs);
  std::nth_element(wastes.begin(), last, wastes.end());
  return *last;
}

static void merge(const BlockBar& more, BlockBar* bar) {
  bar->born = std::min(bar->born, more.born);
  bar->died = std::max(bar->died, more.died);
  bar->bytes += more.bytes;
  bar->blocks += more.blocks;
  if (bar->thread != more.thread) bar->thread = ThreadId::kNone;
}

void SiteBlocks::thin(size_t most) {
  while (bars_.size() > most) {
    size_t before = bars_.size();
    std::ranges::sort(bars_, [](const BlockBar& a, const BlockBar& b) {
      return std::tie(a.life_class, a.size_class, a.born, a.died) <
             std::tie(b.life_class, b.size_class, b.born, b.died);
    });
    // One of each pair of neighbours, as long as there are too many; first those that leave out
    // the least time in which there was none.
    size_t kept = 0, surplus = bars_.size() - most;
    uint64_t most_waste = highest_waste(surplus);
    for (size_t i = 0; i < bars_.size(); ++i) {
      BlockBar bar = bars_[i];
      if (surplus > 0 && i + 1 < bars_.size() && waste(bar, bars_[i + 1]) <= most_waste) {
        merge(bars_[++i], &bar);
        --surplus;
      }
      bars_[kept++] = bar;
    }
    bars_.resize(kept);
    if (kept == before) break;  // All are unlike each other: there are few such classes.
  }
}

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
    auto operator<=>(const Look&) const = default;
  };
  std::vector<Look> looks = {{Cells::kNone, ThreadId::kNone}};
  std::vector<uint32_t> of_cell;

  Looks(const Index& index, const Cells& cells) : of_cell(cells.wants.size()) {
    std::map<Look, uint32_t> known;
    Look last = looks[0];
    uint32_t number = 0;
    for (size_t i = 0; i < cells.wants.size(); ++i) {
      if (cells.wants[i] == Cells::kNone) continue;
      Look look = {cells.wants[i], thread_of(index.cells()[i].strand)};
      if (look != last) {
        last = look;
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

// The bar of a life, if it is wanted.
class SiteBlocks::BarOf {
 public:
  BarOf(const Index& index, const Cells& cells, const Looks& looks)
      : times_(index.facts().times), cells_(cells), looks_(looks) {}

  MSCOPE_FAST bool operator()(const IndexLife& life, size_t number, BlockBar* bar) {
    const Looks::Look& look = looks_.looks[number];
    if (look.want == Cells::kNone || !(life.roles & IndexLife::kHeld)) return false;
    if (look.want == Cells::kSome) {
      knows &= !life.is_varied;
      if (life.size() < cells_.min_size || life.size() > cells_.max_size) return false;
    }
    uint64_t born = times_.begin_of(life.born);
    bar->born = born + life.first_birth;
    bar->died = born + life.last_death;
    bar->bytes = life.bytes;
    bar->blocks = life.blocks;
    bar->thread = look.thread;
    bar->size_class = static_cast<uint8_t>(analyze::size_class(life.size()));
    bar->life_class = static_cast<uint8_t>(analyze::size_class(life.longest_ticks));
    return true;
  }
  static void make_alive(BlockBar* bar) {
    bar->died = BlockBar::kAlive;
    bar->life_class = UINT8_MAX;
  }

  bool knows = true;

 private:
  const IndexTimes& times_;
  const Cells& cells_;
  const Looks& looks_;
};

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
    BarOf bar_of;
    uint64_t blocks = 0;
    bool is_coarse = false;
  };
  BarGrid grid = grid_of(index, steps, most_bars_);
  Half halves[2] = {{grid, BarOf(index, cells, looks)}, {grid, BarOf(index, cells, looks)}};
  auto add = [&](Half& half, const IndexLife& life, bool alive) {
    BlockBar bar;
    if (!half.bar_of(life, look_of[life.cell], &bar)) return;
    if (alive) BarOf::make_alive(&bar);
    half.bars.add(bar);
    half.blocks += life.blocks;
    half.is_coarse |= life.blocks > 1;
  };
  bool good = index.for_each_born_ended_in_two(
      steps, [&](size_t half, const IndexLife& life) { add(halves[half], life, false); });
  good = good && index.for_each_live(steps.last,
                                     [&](const IndexLife& life) { add(halves[0], life, true); });
  for (Half& half : halves) {
    half.bars.take(&bars_);
    blocks_ += half.blocks;
    good &= half.bar_of.knows;
    is_coarse_ |= half.is_coarse;
  }
  return good;
}

SiteBlocks::Folded::Folded(const Index& index, const Cells& cells) {
  const Looks looks(index, cells);
  ok_ = with_small_numbers(looks.of_cell, looks.looks.size(),
                           [&](const auto& look_of) { return fold(index, cells, looks, look_of); });
}

// Lives that ended in one step, put together: those that were born in the same, lived about as long
// and look the same.
class SiteBlocks::StepFold {
 public:
  StepFold(const Index& index, const Cells& cells, const Looks& looks)
      : times_(index.facts().times),
        cells_(cells),
        looks_(looks),
        kinds_(looks.looks.size() * kLives * kClasses, kNoKind),
        near_(kAges * kMostKinds) {}

  // `look`: the number of the life's look, not that of kNone. `ended`: the step.
  MSCOPE_FAST void add(const IndexLife& life, size_t look, uint32_t ended) {
    if (!(life.roles & IndexLife::kHeld)) return;
    if (looks_.looks[look].want == Cells::kSome) [[unlikely]] {
      knows_ &= !life.is_varied;
      if (life.size() < cells_.min_size || life.size() > cells_.max_size) return;
    }
    size_t length =
        ended == IndexTimes::kSteps ? kLives - 1 : analyze::size_class(life.longest_ticks);
    size_t size = analyze::size_class(life.size());
    uint32_t& kind = kinds_[(look * kLives + length) * kClasses + size];
    if (kind == kNoKind) [[unlikely]] {
      kind = static_cast<uint32_t>(kind_list_.size());
      kind_list_.push_back({look, length, size});
    }
    uint32_t age = ended - life.born;
    uint32_t& place = age < kAges && kind < kMostKinds ? near_[age * kMostKinds + kind]
                                                       : far_[uint64_t{life.born} << 32 | kind];
    if (place == 0) [[unlikely]] {
      sums_.push_back({life.born, kind});
      place = static_cast<uint32_t>(sums_.size());
    }
    Sum& sum = sums_[place - 1];
    sum.first = std::min(sum.first, life.first_birth);
    sum.last = std::max(sum.last, life.last_death);
    sum.bytes += life.bytes;
    sum.blocks += life.blocks;
  }

  void finish_step(uint32_t ended, std::vector<Folded::Entry>* entries) {
    for (const Sum& sum : sums_) {
      auto [look, length, size] = kind_list_[sum.kind];
      uint64_t born = times_.begin_of(sum.born);
      BlockBar bar = {born + sum.first,
                      born + sum.last,
                      sum.bytes,
                      sum.blocks,
                      looks_.looks[look].thread,
                      static_cast<uint8_t>(size),
                      static_cast<uint8_t>(length)};
      if (ended == IndexTimes::kSteps) BarOf::make_alive(&bar);
      entries->push_back({sum.born, ended, bar});
      if (uint32_t age = ended - sum.born; age < kAges && sum.kind < kMostKinds)
        near_[age * kMostKinds + sum.kind] = 0;
    }
    sums_.clear();
    far_.clear();
  }
  bool knows() const { return knows_; }

 private:
  static constexpr size_t kLives = 66, kClasses = 65;  // Powers of two, and never.
  static constexpr uint32_t kAges = 8, kMostKinds = 1024, kNoKind = UINT32_MAX;
  struct Kind {
    size_t look, length, size;
  };
  struct Sum {
    uint32_t born = 0, kind = 0;
    uint64_t first = UINT64_MAX, last = 0;  // Ticks since the step of birth began.
    uint64_t bytes = 0, blocks = 0;
  };

  const IndexTimes& times_;
  const Cells& cells_;
  const Looks& looks_;
  bool knows_ = true;
  std::vector<uint32_t> kinds_;  // By look, length and size: a number.
  std::vector<Kind> kind_list_;
  std::vector<Sum> sums_;  // Of the step.
  std::vector<uint32_t>
      near_;  // By age in steps and kind: which sum, + 1. Nearly all are there ...
  std::unordered_map<uint64_t, uint32_t> far_;  // ... and the others, by birth and kind, here.
};

template <typename LookOf>
bool SiteBlocks::Folded::fold(const Index& index, const Cells& cells, const Looks& looks,
                              const LookOf& look_of) {
  StepFold folds[2] = {StepFold(index, cells, looks), StepFold(index, cells, looks)};
  std::vector<Entry> halves[2];
  bool good = index.in_two({}, [&](size_t i, IndexBlocks* blocks, uint32_t first, uint32_t end) {
    for (uint32_t step = first; step < end; ++step) {
      if (!index.for_each_born_ended(blocks, step, step + 1, [&](const IndexLife& life) {
            if (size_t look = look_of[life.cell]) folds[i].add(life, look, step);
          }))
        return false;
      folds[i].finish_step(step, &halves[i]);
    }
    return true;
  });
  good = good && index.for_each_live(IndexTimes::kSteps - 1, [&](const IndexLife& life) {
    if (size_t look = look_of[life.cell]) folds[1].add(life, look, IndexTimes::kSteps);
  });
  folds[1].finish_step(IndexTimes::kSteps, &halves[1]);
  entries_ = std::move(halves[0]);
  entries_.insert(entries_.end(), halves[1].begin(), halves[1].end());
  return good && folds[0].knows() && folds[1].knows();
}

void SiteBlocks::restore(const Folded& folded, const Index& index, Index::Steps steps) {
  BarGrid bars = grid_of(index, steps, most_bars_);
  for (const Folded::Entry& entry : folded.entries_) {
    if (entry.ended < steps.first || entry.born > steps.last) continue;
    BlockBar bar = entry.bar;
    if (entry.ended > steps.last) BarOf::make_alive(&bar);
    bars.add(bar);
    blocks_ += bar.blocks;
    is_coarse_ |= bar.blocks > 1;
  }
  bars.take(&bars_);
}

std::vector<BlockBar> SiteBlocks::take() {
  thin(most_bars_);
  std::ranges::sort(bars_, [](const BlockBar& a, const BlockBar& b) {
    return std::tie(a.born, a.died, a.bytes) < std::tie(b.born, b.died, b.bytes);
  });
  return std::move(bars_);
}

}  // namespace malloscope::analyze
