// SPDX-License-Identifier: Apache-2.0
// The heap tells what happens to blocks; here it is added up by cell and step. A cell's numbers
// of the present step stay in one cache line, and a bit tells that there are any, so that the end
// of a step costs what was touched in it.

#include "analyze/index_builder.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace malloscope::analyze {

namespace {

constexpr uint32_t kMostCells = 50'000'000;
// Of more sizes than these nobody wants a list; and each step could have all of them.
constexpr size_t kMostSizes = 1 << 16, kSmallSizes = 4096;
constexpr size_t kMostFreed = 1 << 20;  // All of them are in memory.
constexpr unsigned kClassBits = 7;
constexpr size_t kAtOnce = 64;

uint64_t mix(uint32_t image, uint32_t stack, uint32_t strand_and_class) {
  uint64_t h = (uint64_t{image} << 32 ^ stack) * 0x9e3779b97f4a7c15;
  h = (h ^ h >> 32 ^ uint64_t{strand_and_class} << 17) * 0xd6e8feb86659fd93;
  return h ^ h >> 29;
}

// The counts of a cell in a step have 32 bits; one block of a sample may stand for many.
constexpr uint32_t kMostInStep = 1 << 29;
uint32_t count_of(const Block& block) {
  return static_cast<uint32_t>(std::min<uint64_t>(block.stands_for(), kMostInStep));
}

void set_bit(std::vector<uint64_t>* bits, size_t i) { (*bits)[i / 64] |= uint64_t{1} << i % 64; }

// Which bits are set, in order; clears them.
void take_bits(std::vector<uint64_t>* bits, std::vector<uint32_t>* order) {
  order->clear();
  for (size_t word = 0; word < bits->size(); ++word)
    for (uint64_t left = std::exchange((*bits)[word], 0); left != 0; left &= left - 1)
      order->push_back(static_cast<uint32_t>(word * 64) +
                       static_cast<uint32_t>(__builtin_ctzll(left)));
}

// Calls visit(i) for each of `order`, with its state and sum on their way some calls before.
template <typename States, typename Sums, typename Visit>
void for_each_ahead(const std::vector<uint32_t>& order, const States& states, const Sums& sums,
                    Visit&& visit) {
  constexpr size_t kAhead = 12;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i + kAhead < order.size()) {
      __builtin_prefetch(&states[order[i + kAhead]]);
      __builtin_prefetch(&sums[order[i + kAhead]], 1);
    }
    visit(order[i]);
  }
}

// Modulo 2^64: what has to be added to `before` to get `now`.
Totals difference(const Totals& now, const Totals& before) {
  TotalsNumbers numbers = numbers_of(now), less = numbers_of(before);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] -= less[i];
  return std::bit_cast<Totals>(numbers);
}

}  // namespace

IndexBuilder::IndexBuilder(const IndexTimes& times, bool several_processes, Sink sink)
    : sink_(std::move(sink)),
      step_writer_(several_processes),
      group_writer_(false),
      size_writer_(several_processes),
      odd_writer_(several_processes),
      lives_(facts_.times),
      survivors_(facts_.times) {
  facts_.times = times;
  facts_.several_processes = several_processes;
  next_tick_ = times.begin_of(1);
  heap_.add_observer(&observer_);
}

IndexBuilder::ImageState& IndexBuilder::state_of(ImageId image) {
  if (raw(image) >= images_.size()) {
    images_.resize(raw(image) + size_t{1});
    facts_.images.resize(raw(image));
  }
  return images_[raw(image)];
}

void IndexBuilder::image_started(const trace::Image& image) {
  ImageState& state = state_of(image.id);
  IndexFacts::Image& facts = facts_.images[raw(image.id) - 1];
  facts.pid = image.pid;
  if (facts.announced == IndexFacts::kNever) {
    facts.announced = step_;
    ++running_images_;
    if (last_to_run_) {
      facts_.images[last_to_run_->image].gone = last_to_run_->end_step;
      last_to_run_.reset();
    }
  }
  auto [process, fresh] =
      process_of_pid_.try_emplace(image.pid, static_cast<uint32_t>(processes_.size()));
  if (fresh) {
    processes_.emplace_back();
    pids_.push_back(image.pid);
  }
  state.process = process->second;
  heap_.image_started(image);
}

void IndexBuilder::touch(Running& running) {
  if (running.step == step_) return;
  running.step = step_;
  running.peak = {running.bytes, 0};
  ++running.epoch;
}

void IndexBuilder::touch(ImageState& image, ImageId id) {
  if (image.step == step_) return;
  image.step = step_;
  image.peak = {image.live_bytes, 0};
  touched_images_.push_back(raw(id));
  touch(all_);
  Running& process = processes_[image.process];
  if (process.step != step_) touched_processes_.push_back(image.process);
  touch(process);
}

void IndexBuilder::events(std::span<const wire::Event> events) {
  if (!events.empty()) facts_.last_tick = std::max(facts_.last_tick, events.back().tick);
  size_t shown = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    const wire::Event& event = events[i];
    if (event.tick < low_tick_ || event.tick >= next_tick_) [[unlikely]] {
      show(events.subspan(shown, i - shown));
      shown = i;
      uint32_t step = facts_.times.step_of(event.tick);
      if (step > step_) advance(step);
      for (; step < high_; ++step) facts_.steps[step].mixed = true;
    }
    if (event.image != last_image_) {
      last_image_ = event.image;
      if (raw(event.image) < images_.size() &&
          facts_.images[raw(event.image) - 1].announced != IndexFacts::kNever)
        touch(images_[raw(event.image)], event.image);
    }
  }
  show(events.subspan(shown));
}

void IndexBuilder::show(std::span<const wire::Event> events) {
  if (events.empty()) return;
  facts_.steps[step_].events += events.size();
  for (size_t i = 0; i < events.size(); i += kAtOnce) {
    std::span<const wire::Event> some = events.subspan(i, std::min(kAtOnce, events.size() - i));
    expect(some);
    heap_.events(some);
  }
}

// With a million stacks every event would wait for memory three times, one after the other: for its
// block, for its stack's cell, for the cell. Here they wait for all of them together.
void IndexBuilder::expect(std::span<const wire::Event> events) {
  auto latest = [&](ImageId image, StackId stack) -> const uint32_t* {
    if (raw(image) >= images_.size()) return nullptr;
    const std::vector<uint32_t>& all = images_[raw(image)].latest;
    return raw(stack) < all.size() ? &all[raw(stack)] : nullptr;
  };
  auto makes = [](const wire::Event& event) {
    return event.kind == wire::Kind::kAlloc || event.kind == wire::Kind::kReallocEnd;
  };
  std::array<const uint32_t*, kAtOnce> where = {};
  heap_.expect(events);
  for (size_t i = 0; i < events.size(); ++i) {
    if (!makes(events[i])) continue;
    where[i] = latest(events[i].image, events[i].stack);
    __builtin_prefetch(where[i]);
  }
  for (size_t i = 0; i < events.size(); ++i) {
    if (makes(events[i])) continue;
    if (const Block* block = heap_.block(events[i].image, events[i].address))
      where[i] = latest(events[i].image, block->stack);
    __builtin_prefetch(where[i]);
  }
  for (const uint32_t* place : where) {
    if (!place || *place == 0) continue;
    __builtin_prefetch(&stacks_.states[*place - 1], 1);
    __builtin_prefetch(&usual_sizes_[*place - 1]);
  }
}

void IndexBuilder::image_ended(const trace::Image& image) {
  ImageState& state = state_of(image.id);
  IndexFacts::Image& facts = facts_.images[raw(image.id) - 1];
  facts.is_odd |= heap_.is_reallocating(image.id);
  heap_.image_ended(image);
  if (facts.announced == IndexFacts::kNever || std::exchange(state.ended, true)) return;
  // Events may follow that are before its end: a window that ends between does not know of it.
  uint32_t end_step = image.end_tick ? facts_.times.step_of(*image.end_tick) : 0;
  if (end_step > high_) {
    high_ = end_step;
    low_tick_ = facts_.times.begin_of(high_);
  }
  end_step = std::max(end_step, step_);
  touch(state, image.id);
  facts.ended = step_;
  if (--running_images_ > 0)
    facts.gone = end_step;
  else
    last_to_run_ = {raw(image.id) - 1, end_step};
  facts.last_tick = facts_.last_tick;
  ended_images_.push_back(raw(image.id));
  all_.bytes -= state.live_bytes;
  processes_[state.process].bytes -= state.live_bytes;
  state.end_epoch = all_.epoch;
  state.own_end_epoch = processes_[state.process].epoch;
}

void IndexBuilder::grow_places() {
  places_.assign(std::max<size_t>(1024, places_.size() * 2), 0);
  size_t mask = places_.size() - 1;
  for (uint32_t i = 0; i < cells_.size(); ++i) {
    const Cell& cell = stacks_.states[i];
    size_t at = mix(raw(cells_[i].image), cell.stack, cell.strand_and_class) & mask;
    while (places_[at] != 0) at = (at + 1) & mask;
    places_[at] = i + 1;
  }
}

uint32_t IndexBuilder::find_cell(ImageId id, ImageState& image, const Block& block,
                                 uint32_t strand_and_class) {
  uint32_t stack = raw(block.stack);
  if (stack >= image.latest.size())
    image.latest.resize(std::max(stack + size_t{1}, image.latest.size() * 2));
  uint32_t& latest = image.latest[stack];
  const std::vector<Cell>& states = stacks_.states;
  if (latest != 0 && states[latest - 1].strand_and_class == strand_and_class) return latest - 1;
  if ((cells_.size() + 1) * 2 > places_.size()) grow_places();
  size_t mask = places_.size() - 1, at = mix(raw(id), stack, strand_and_class) & mask;
  for (; places_[at] != 0; at = (at + 1) & mask) {
    uint32_t cell = places_[at] - 1;
    if (states[cell].stack == stack && states[cell].strand_and_class == strand_and_class &&
        (images_.size() <= 2 || cells_[cell].image == id)) {  // One image: number 1.
      latest = cell + 1;
      return cell;
    }
  }
  auto cell = static_cast<uint32_t>(cells_.size());
  places_[at] = latest = cell + 1;
  cells_.push_back({id, block.stack, block.strand, size_class(block.size), usual_size(block.size)});
  usual_sizes_.push_back(usual_size(block.size));
  Cell& state = stacks_.add(facts_.several_processes);
  state.stack = stack;
  state.strand_and_class = strand_and_class;
  sums_.emplace_back();
  if (cell % 64 == 0) {
    touched_in_group_.push_back(0);
    told_alone_.push_back(0);
  }
  return cell;
}

IndexBuilder::Cell& IndexBuilder::Changing::add(bool several_processes) {
  if (several_processes) own_peaks.emplace_back();
  if (states.size() % 64 == 0) touched.push_back(0);
  return states.emplace_back();
}

uint32_t IndexBuilder::size_cell_of(ImageId id, ImageState& image, uint64_t size) {
  bool is_small = size < kSmallSizes;
  if (is_small && size >= image.small_sizes.size()) [[unlikely]]
    image.small_sizes.resize(std::bit_ceil(size + 1));
  uint32_t& cell = is_small ? image.small_sizes[size] : image.large_sizes[size];
  if (cell != 0) [[likely]]
    return cell - 1;
  if (facts_.sizes.size() <= kMostSizes) {  // Else it is one that nobody will ask for.
    facts_.sizes.push_back({id, size});
    sizes_.add(facts_.several_processes);
  }
  cell = static_cast<uint32_t>(facts_.sizes.size());
  return cell - 1;
}

uint32_t IndexBuilder::number_of(StrandId strand) {
  constexpr uint32_t kFirstInPhases = 1U << (31 - kClassBits);
  if (phases_of(strand) == PhasesId::kNone) [[likely]] {
    too_much_ |= raw(strand) >= kFirstInPhases;
    return raw(strand);
  }
  auto next = static_cast<uint32_t>(strand_numbers_.size());
  return kFirstInPhases + strand_numbers_.try_emplace(raw(strand), next).first->second;
}

uint32_t IndexBuilder::cell_of(ImageId id, ImageState& image, const Block& block) {
  too_much_ |= cells_.size() > kMostCells;
  return find_cell(id, image, block,
                   number_of(block.strand) << kClassBits | size_class(block.size));
}

IndexBuilder::Cell& IndexBuilder::touch(Changing& cells, uint32_t i, const ImageState& image) {
  Cell& cell = cells.states[i];
  if (cell.step != step_) {
    cell.step = step_;
    cell.live_before = cell.live_bytes;
    cell.allocated_bytes = 0;
    cell.allocations = cell.reallocations = cell.temporary = 0;
    cell.live_blocks = 0;
    set_bit(&cells.touched, i);
    cells.any_touched = true;
  }
  if (cell.epoch != all_.epoch) {
    cell.at_peak = cell.live_bytes;
    cell.epoch = all_.epoch;
  }
  if (facts_.several_processes && cells.own_peaks[i].epoch != processes_[image.process].epoch)
    cells.own_peaks[i] = {cell.live_bytes, processes_[image.process].epoch};
  return cell;
}

// A sum that sinks is no new maximum; so whoever looks only when a block is made misses none.
void IndexBuilder::settle(ImageState& image, uint64_t change, uint64_t tick) {
  image.live_bytes += change;
  if (image.live_bytes > image.peak.bytes) image.peak = {image.live_bytes, tick};
  if (image.ended) return;
  for (Running* running : {&all_, &processes_[image.process]}) {
    running->bytes += change;
    if (running->bytes <= running->peak.bytes) continue;
    running->peak = {running->bytes, tick};
    ++running->epoch;
  }
}

uint32_t IndexBuilder::odd_size_of(const OddSize& odd) {
  auto hash = [](const OddSize& key) {
    uint64_t h = (uint64_t{key.cell} << 32 ^ key.size) * 0x9e3779b97f4a7c15;
    return h ^ h >> 32;
  };
  if (odd_sizes_.size() * 2 >= odd_places_.size()) {
    odd_places_.assign(std::max<size_t>(1024, odd_places_.size() * 2), 0);
    for (uint32_t i = 0; i < odd_sizes_.size(); ++i) {
      size_t at = hash(odd_sizes_[i]) & (odd_places_.size() - 1);
      while (odd_places_[at] != 0) at = (at + 1) & (odd_places_.size() - 1);
      odd_places_[at] = i + 1;
    }
  }
  size_t mask = odd_places_.size() - 1, at = hash(odd) & mask;
  for (; odd_places_[at] != 0; at = (at + 1) & mask)
    if (odd_sizes_[odd_places_[at] - 1] == odd) return odd_places_[at] - 1;
  odd_sizes_.push_back(odd);
  odd_changes_.add(facts_.several_processes);
  odd_places_[at] = static_cast<uint32_t>(odd_sizes_.size());
  return odd_places_[at] - 1;
}

void IndexBuilder::close_odd_sizes() {
  order_.clear();
  for (uint32_t i = 0; i < odd_sizes_.size(); ++i) {
    const OddSize& odd = odd_sizes_[i];
    bool alone = told_alone_[odd.cell / 64] >> odd.cell % 64 & 1;
    if (!alone || odd.size >= kMayBeMapped) order_.push_back(i);
  }
  std::ranges::sort(order_, {}, [&](uint32_t i) { return odd_sizes_[i]; });
  for (uint32_t i : order_) {
    const OddSize& odd = odd_sizes_[i];
    OddEntry entry = {entry_of(odd_changes_, i, cells_[odd.cell].image), odd.size, odd.is_mapped};
    entry.cell = odd.cell;
    odd_writer_.add(entry);
  }
  // As many places as the next step may need.
  odd_places_.assign(std::bit_ceil(odd_sizes_.size() * 4 + 1024), 0);
  odd_sizes_.clear();
  odd_changes_ = Changing();
}

template <typename Change>
uint32_t IndexBuilder::count(ImageId id, ImageState& image, const Block& block, Change&& change) {
  constexpr uint64_t kPage = 4096;
  uint32_t cell = cell_of(id, image, block);
  change(touch(stacks_, cell, image));
  change(touch(sizes_, size_cell_of(id, image, block.size), image));
  bool is_mapped = block.size >= kMayBeMapped && block.address % kPage == 16;
  if (block.size != usual_sizes_[cell] || is_mapped)
    change(touch(odd_changes_, odd_size_of({cell, is_mapped, block.size}), image));
  return cell;
}

void IndexBuilder::made(ImageId id, const Block& block, uint64_t tick) {
  ImageState& image = images_[raw(id)];
  if (image.ended) [[unlikely]]
    facts_.images[raw(id) - 1].is_odd = true;
  count(id, image, block, [&](Cell& cell) {
    cell.allocations += count_of(block);
    cell.live_blocks += static_cast<int32_t>(count_of(block));
    cell.allocated_bytes += block.bytes();
    cell.live_bytes += block.bytes();
    too_much_ |= cell.allocations >= kMostInStep;
  });
  uint32_t thread = raw(thread_of(block.strand));
  if (thread >= image.made_in.size()) image.made_in.resize(thread + size_t{1});
  image.made_in[thread] = step_;
  settle(image, block.bytes(), tick);
}

void IndexBuilder::changed(ImageId id, const Block& before, const Block& now, uint64_t tick) {
  ImageState& image = images_[raw(id)];
  uint32_t left = count(id, image, before, [&](Cell& from) {
    from.live_blocks -= static_cast<int32_t>(count_of(before));
    from.live_bytes -= before.bytes();
  });
  count(id, image, now, [&](Cell& to) {
    to.live_blocks += static_cast<int32_t>(count_of(now));
    to.live_bytes += now.bytes();
    ++to.reallocations;
    if (now.bytes() > before.bytes()) to.allocated_bytes += now.bytes() - before.bytes();
  });
  Block origin = origins_.take(id, before);
  origins_.put(id, now, origin);
  end_life(id, before, left, tick, IndexLife::kHeld, origin, thread_of(before.strand), &lives_);
  settle(image, now.bytes() - before.bytes(), tick);
}

// A block that has been reallocated has lived as what it was first, too.
void IndexBuilder::end_life(ImageId id, const Block& block, uint32_t cell, uint64_t tick,
                            uint8_t roles, const Block& origin, ThreadId freer,
                            IndexLivesWriter* lives) {
  auto lived = [tick](const Block& from) {
    return tick > from.born_tick ? tick - from.born_tick : 0;
  };
  IndexLivesWriter::Life life;
  life.by_maker = freer == thread_of(block.strand);
  if (!life.by_maker) life.freer = freer;
  bool reallocated = origin != block;
  if (reallocated && (roles & IndexLife::kLived)) {
    life.cell = cell_of(id, images_[raw(id)], origin);
    life.roles = IndexLife::kLived;
    life.blocks = origin.stands_for();
    life.bytes = origin.bytes();
    life.born_tick = life.began_tick = origin.born_tick;
    life.ticks = lived(origin);
    lives->add(life);
    roles &= static_cast<uint8_t>(~IndexLife::kLived);
  }
  life.cell = cell;
  life.roles = roles;
  life.blocks = block.stands_for();
  life.bytes = block.bytes();
  life.born_tick = block.born_tick;
  life.began_tick = origin.born_tick;
  life.ticks = lived(block);
  lives->add(life);
}

void IndexBuilder::left(ImageId id, const BlockTable& live) {
  constexpr size_t kMany = 1 << 20;
  ImageState& image = images_[raw(id)];
  live.for_each([&](const Block& block) {
    Block origin = origins_.take(id, block);
    end_life(id, block, cell_of(id, image, block), block.born_tick,
             IndexLife::kHeld | IndexLife::kLived, origin, thread_of(block.strand), &survivors_);
    if (survivors_.size() >= kMany) close_survivors();
  });
}

void IndexBuilder::close_survivors() {
  if (survivors_.size() == 0) return;
  to_pack_.push_back(
      {Level::kSurvivors,
       survivor_parts_++,
       [lives = std::exchange(survivors_, IndexLivesWriter(facts_.times))]() mutable {
         return lives.finish(IndexTimes::kSteps);
       },
       {}});
  pack_beside();
}

void IndexBuilder::pack_beside() {
  tell_packed();
  // Where no thread can be had, it is done when it is asked for.
  packing_ = std::async(std::launch::async | std::launch::deferred,
                        [blocks = std::move(to_pack_)]() mutable {
                          for (ToPack& block : blocks) block.packed = block.pack();
                          return std::move(blocks);
                        });
  to_pack_.clear();
}

void IndexBuilder::tell_packed() {
  if (!packing_.valid()) return;
  for (ToPack& packed : packing_.get())
    for (uint32_t i = 0; i < packed.packed.size(); ++i)
      if (!packed.packed[i].bytes.empty())
        sink_(packed.level, packed.number + i, std::move(packed.packed[i]));
}

void IndexBuilder::count_freed(ImageState& image, const Block& block, ThreadId freer) {
  ThreadId maker = thread_of(block.strand);
  if (raw(maker) >= image.freed.size()) image.freed.resize(raw(maker) + size_t{1});
  std::vector<IndexFacts::Freed>& by = image.freed[raw(maker)];
  auto found = std::ranges::find(by, freer, &IndexFacts::Freed::freer);
  if (found == by.end()) {
    by.emplace_back().freer = freer;
    found = by.end() - 1;
  }
  found->blocks += block.stands_for();
  found->bytes += block.bytes();
}

void IndexBuilder::close_freed(ImageState& image, ImageId id) {
  for (uint32_t maker = 0; maker < image.freed.size(); ++maker)
    for (IndexFacts::Freed& freed : image.freed[maker]) {
      if (freed.blocks == 0) continue;
      if (facts_.freed.size() < kMostFreed)
        facts_.freed.push_back(
            {step_, id, ThreadId{maker}, freed.freer, freed.blocks, freed.bytes});
      else
        facts_.knows_freed = false;
      freed.blocks = freed.bytes = 0;
    }
}

void IndexBuilder::gone(ImageId id, const Block& block, End how, const wire::Event& event) {
  ImageState& image = images_[raw(id)];
  uint32_t place = count(id, image, block, [&](Cell& from) {
    from.live_blocks -= static_cast<int32_t>(count_of(block));
    from.live_bytes -= block.bytes();
    if (how == End::kTemporary) from.temporary += count_of(block);
    too_much_ |= from.live_blocks <= -static_cast<int32_t>(kMostInStep);
  });
  if (how == End::kTemporary)
    if (uint32_t made = image.made_in[raw(thread_of(block.strand))]; made != step_)
      facts_.straddlers.push_back({place, made, step_, count_of(block), block.size});
  if (how != End::kLost) count_freed(image, block, event.thread);
  end_life(id, block, place, event.tick,
           how == End::kLost ? IndexLife::kHeld | IndexLife::kLived : IndexLife::kAll,
           origins_.take(id, block), event.thread, &lives_);
  settle(image, -block.bytes(), event.tick);
}

void IndexBuilder::advance(uint32_t step) {
  close_step();
  for (uint32_t s = step_ + 1; s < step; ++s)
    facts_.steps[s].peak_bytes = facts_.steps[s].end_bytes = all_.bytes;
  uint32_t group = step_ / IndexTimes::kGroupSteps;
  if (group != step / IndexTimes::kGroupSteps) close_group(group);
  step_ = step;
  high_ = std::max(high_, step);
  low_tick_ = facts_.times.begin_of(high_);
  next_tick_ = step + 1 < IndexTimes::kSteps ? facts_.times.begin_of(step + 1) : UINT64_MAX;
  last_image_ = ImageId::kNone;
}

IndexEntry IndexBuilder::entry_of(const Changing& cells, uint32_t i, ImageId image) const {
  const Cell& cell = cells.states[i];
  IndexEntry entry;
  entry.cell = i;
  entry.allocations = cell.allocations;
  entry.reallocations = cell.reallocations;
  entry.temporary = cell.temporary;
  entry.allocated_bytes = cell.allocated_bytes;
  entry.live_bytes = static_cast<int64_t>(cell.live_bytes - cell.live_before);
  entry.live_blocks = cell.live_blocks;
  uint64_t peak = cell.epoch == all_.epoch ? cell.at_peak : cell.live_bytes;
  entry.peak_bytes = static_cast<int64_t>(peak - cell.live_before);
  if (facts_.several_processes) {
    const OwnPeak& own_peak = cells.own_peaks[i];
    uint32_t epoch = processes_[images_[raw(image)].process].epoch;
    uint64_t own = own_peak.epoch == epoch ? own_peak.bytes : cell.live_bytes;
    entry.own_peak_bytes = static_cast<int64_t>(own - cell.live_before);
  }
  return entry;
}

void IndexBuilder::close_step() {
  touch(all_);
  IndexFacts::Step& step = facts_.steps[step_];
  step.peak_bytes = all_.peak.bytes;
  step.peak_tick = all_.peak.tick;
  step.end_bytes = all_.bytes;
  for (uint32_t i : touched_images_) {
    ImageState& image = images_[i];
    Totals now = heap_.totals(ImageId{i});
    facts_.image_steps.push_back({step_, ImageId{i}, difference(now, image.before), image.peak});
    image.before = now;
    close_freed(image, ImageId{i});
  }
  if (facts_.several_processes)
    for (uint32_t i : touched_processes_)
      facts_.process_steps.push_back({step_, pids_[i], processes_[i].peak.bytes,
                                      processes_[i].peak.tick, processes_[i].bytes});
  for (uint32_t i : ended_images_) {
    facts_.images[i - 1].before_peak = images_[i].end_epoch != all_.epoch;
    facts_.images[i - 1].before_own_peak =
        images_[i].own_end_epoch != processes_[images_[i].process].epoch;
  }
  touched_images_.clear();
  touched_processes_.clear();
  ended_images_.clear();
  if (lives_.size() > 0)
    to_pack_.push_back({Level::kLives,
                        step_ * kReaches,
                        [lives = std::exchange(lives_, IndexLivesWriter(facts_.times)),
                         step = step_]() mutable { return lives.finish(step); },
                        {}});
  auto hand_over = [&]<typename Writer>(Level level, Writer* writer) {
    to_pack_.push_back(
        {level,
         step_,
         [full = std::exchange(*writer, Writer(facts_.several_processes))]() mutable {
           return std::vector{full.finish()};
         },
         {}});
  };
  if (std::exchange(sizes_.any_touched, false)) {
    take_bits(&sizes_.touched, &order_);
    for (uint32_t i : order_)
      size_writer_.add(entry_of(sizes_, i, facts_.sizes[i].image),
                       usual_size(facts_.sizes[i].size));
    hand_over(Level::kSizes, &size_writer_);
  }
  if (!std::exchange(stacks_.any_touched, false)) return;

  take_bits(&stacks_.touched, &order_);
  for_each_ahead(order_, stacks_.states, sums_, [&](uint32_t i) {
    IndexEntry entry =
        entry_of(stacks_, i, facts_.several_processes ? cells_[i].image : ImageId::kNone);
    if (step_writer_.add(entry, usual_sizes_[i]) == IndexBlockWriter::Sizes::kOne)
      set_bit(&told_alone_, i);
    Sum& sum = sums_[i];
    sum.allocations += entry.allocations;
    sum.reallocations += entry.reallocations;
    sum.temporary += entry.temporary;
    sum.allocated_bytes += entry.allocated_bytes;
    sum.live_bytes += entry.live_bytes;
    sum.live_blocks += entry.live_blocks;
    set_bit(&touched_in_group_, i);
  });
  hand_over(Level::kStep, &step_writer_);
  std::vector<uint32_t> touched = std::move(order_);
  close_odd_sizes();
  if (!odd_writer_.empty()) hand_over(Level::kOddSizes, &odd_writer_);
  for (uint32_t i : touched) told_alone_[i / 64] = 0;
  order_ = std::move(touched);
  pack_beside();
}

void IndexBuilder::close_group(uint32_t group) {
  take_bits(&touched_in_group_, &order_);
  for_each_ahead(order_, sums_, sums_, [&](uint32_t i) {
    Sum sum = std::exchange(sums_[i], {});
    IndexEntry entry;
    entry.cell = i;
    entry.allocations = sum.allocations;
    entry.reallocations = sum.reallocations;
    entry.temporary = sum.temporary;
    entry.allocated_bytes = sum.allocated_bytes;
    entry.live_bytes = sum.live_bytes;
    entry.live_blocks = sum.live_blocks;
    group_writer_.add(entry, usual_sizes_[i]);
  });
  if (!group_writer_.empty())
    to_pack_.push_back({Level::kGroup,
                        group,
                        [writer = std::exchange(group_writer_, IndexBlockWriter(false))]() mutable {
                          return std::vector{writer.finish()};
                        },
                        {}});
}

bool IndexBuilder::finish(const trace::Tables& tables) {
  facts_.events = tables.events;
  facts_.phases = heap_.phases();
  too_much_ |= tables.events > INT32_MAX;  // Epochs are counted in 32 bits.
  facts_.images.resize(tables.images.size());
  for (size_t i = 0; i < tables.images.size(); ++i) facts_.images[i].pid = tables.images[i].pid;
  close_step();
  if (facts_.sizes.size() > kMostSizes) facts_.sizes.clear();
  if (!facts_.knows_freed) facts_.freed.clear();
  for (size_t i = 0; i < facts_.images.size(); ++i)
    facts_.images[i].is_odd |= heap_.is_reallocating(tables.images[i].id);
  heap_.finish();
  close_survivors();
  for (uint32_t s = step_ + 1; s < IndexTimes::kSteps; ++s)
    facts_.steps[s].peak_bytes = facts_.steps[s].end_bytes = all_.bytes;
  close_group(step_ / IndexTimes::kGroupSteps);
  pack_beside();
  tell_packed();
  return !too_much_;
}

}  // namespace malloscope::analyze
