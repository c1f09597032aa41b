// SPDX-License-Identifier: Apache-2.0
// The peak. At a new maximum of the running sum, every stack's live bytes would
// have to be copied. Instead a maximum only counts up the heap's `peak_epoch`, and a
// stack saves its live bytes when it is about to change for the first time after it:
//
//     event          sum   epoch    A: live, saved in     B: live, saved in
//                      0     1         0                     0
//     A alloc 10      10     2        10,    0 in 1          0
//     B alloc  5      15     3        10,    0 in 1          5,    0 in 2
//     A free  10       5     3         0,   10 in 3          5,    0 in 2
//
// The share of the peak is what was saved in the last epoch, or, if nothing was,
// what is live: it has not changed since. So A held 10 and B 5 of the 15, and
// the shares add up to the peak because they are what the sum was made of.

#include "analyze/tally.h"

#include <algorithm>

namespace malloscope::analyze {

Amounts& Amounts::operator+=(const Amounts& other) {
  allocations += other.allocations;
  reallocations += other.reallocations;
  allocated_bytes += other.allocated_bytes;
  live_bytes += other.live_bytes;
  live_blocks += other.live_blocks;
  temporary += other.temporary;
  peak_bytes += other.peak_bytes;
  if (__builtin_add_overflow(lifetime_ns, other.lifetime_ns, &lifetime_ns))
    lifetime_ns = UINT64_MAX;
  allocator_ns += other.allocator_ns;
  overhead_bytes += other.overhead_bytes;
  cpu_ns += other.cpu_ns;
  cpu_samples += other.cpu_samples;
  return *this;
}

Details& Details::operator+=(const Details& other) {
  first_tick = std::min(first_tick, other.first_tick);
  last_tick = std::max(last_tick, other.last_tick);
  lifetime_ticks += other.lifetime_ticks;
  freed_blocks += other.freed_blocks;
  freed_bytes += other.freed_bytes;
  largest_block = std::max(largest_block, other.largest_block);
  live_first_tick = std::min(live_first_tick, other.live_first_tick);
  live_last_tick = std::max(live_last_tick, other.live_last_tick);
  most_bytes += other.most_bytes;
  most_blocks += other.most_blocks;
  peak_blocks += other.peak_blocks;
  live_periods |= other.live_periods;
  for (size_t i = 0; i < kAllocators; ++i) overhead_bytes[i] += other.overhead_bytes[i];
  call_cycles += other.call_cycles;
  return *this;
}

Tally::Tally(Heap* heap, TallyOptions options)
    : heap_(*heap),
      options_(options),
      plain_(!options.by_thread && !options.by_phase && !options.by_size && options.by_stack &&
             !options.sparse) {
  heap->add_observer(this);
  if (options.call_times) heap->keep_last_calls();
}

Tally::ImageCells& Tally::cells_of(ImageId image) {
  if (raw(image) >= images_.size()) images_.resize(raw(image) + size_t{1});
  return images_[raw(image)];
}

bool Tally::wants(const ImageCells& cells, const Block& block) const {
  if (block.size < options_.min_size || block.size > options_.max_size) return false;
  if (!options_.only_made_in_window) return true;
  return block.born_tick >= heap_.window().from_tick &&
         (cells.strangers.empty() || !cells.strangers.contains(BlockKey(block)));
}

size_t Tally::place_of(ImageCells& cells, const Key& key) {
  if ((cells.keys.size() + 1) * 8 >= cells.places.size() * 5) {
    cells.places.assign(std::max<size_t>(64, cells.places.size() * 2), 0);
    for (uint32_t i = 0; i < cells.keys.size(); ++i) {
      size_t at = KeyHash()(cells.keys[i]) & (cells.places.size() - 1);
      while (cells.places[at] != 0) at = (at + 1) & (cells.places.size() - 1);
      cells.places[at] = i + 1;
    }
  }
  size_t mask = cells.places.size() - 1, at = KeyHash()(key) & mask;
  for (; cells.places[at] != 0; at = (at + 1) & mask)
    if (cells.keys[cells.places[at] - 1] == key) return cells.places[at] - 1;
  cells.keys.push_back(key);
  cells.places[at] = static_cast<uint32_t>(cells.keys.size());
  return cells.keys.size() - 1;
}

static constexpr size_t kMany = 1 << 18;

size_t Tally::place_of(ImageCells& cells, const Block& block) {
  size_t place = raw(block.stack);
  if (!plain_) {
    Key key = {options_.by_stack ? block.stack : StackId::kNone, options_.told_apart(block.strand),
               !options_.by_size     ? 0
               : options_.exact_size ? block.size
                                     : size_class(block.size)};
    place = place_of(cells, key);
  }
  if (place >= cells.cells.size()) {
    cells.cells.grow_to(place + 1);
    has_much_ |= place > kMany;
    if (options_.details) cells.details.grow_to(place + 1);
  }
  return place;
}

Tally::Cell& Tally::touch(ImageCells& cells, size_t place) {
  Cell& cell = cells.cells[place];
  if (cell.peak_epoch != heap_.peak_epoch() && !cells.ended) {
    cell.peak_bytes = cell.live_bytes;
    cell.peak_epoch = heap_.peak_epoch();
    if (options_.details) cells.details[place].peak_blocks = cell.live_blocks;
  }
  return cell;
}

void Tally::keep_most(ImageCells& cells, size_t place, bool counts) {
  if (!options_.details || !counts) return;
  const Cell& cell = cells.cells[place];
  Details& details = cells.details[place];
  if (cell.live_bytes <= details.most_bytes) return;
  details.most_bytes = cell.live_bytes;
  details.most_blocks = cell.live_blocks;
}

void Tally::image_started(const trace::Image& image) {
  cells_of(image.id).start_tick = image.start_tick;
}

void Tally::found(ImageId image, const BlockTable& live) {
  if (!options_.only_made_in_window) return;
  ImageCells& cells = cells_of(image);
  live.for_each([&](const Block& block) {
    if (block.born_tick < heap_.window().from_tick) return;  // Nobody takes it for one of ours.
    if (wants(cells, block)) {
      Cell& cell = touch(cells, place_of(cells, block));
      cell.live_blocks -= block.stands_for();
      cell.live_bytes -= block.bytes();
    }
    cells.strangers.insert(BlockKey(block));
  });
}

void Tally::add_overhead(const Block& block, Details* details) const {
  if (!options_.overhead) return;
  UsableBytes usable = usable_sizes(block.address, block.size);
  for (size_t i = 0; i < kAllocators; ++i)
    details->overhead_bytes[i] += (usable[i] - block.size) << block.weight_log2;
}

void Tally::made(ImageId image, const Block& block, const wire::Event&, bool counts) {
  ImageCells& cells = cells_of(image);
  if (!wants(cells, block)) return;
  size_t place = place_of(cells, block);
  Cell& cell = touch(cells, place);
  cell.live_blocks += block.stands_for();
  cell.live_bytes += block.bytes();
  if (!counts) return;
  cell.allocations += block.stands_for();
  cell.allocated_bytes += block.bytes();
  if (!options_.details) return;
  Details& details = cells.details[place];
  details.first_tick = std::min(details.first_tick, block.born_tick);
  details.last_tick = std::max(details.last_tick, block.born_tick);
  details.largest_block = std::max(details.largest_block, block.size);
  add_overhead(block, &details);
}

void Tally::changed(ImageId image, const Block& before, const Block& now, const wire::Event&,
                    bool counts) {
  ImageCells& cells = cells_of(image);
  bool had = wants(cells, before);
  bool stranger = options_.only_made_in_window && (before.born_tick < heap_.window().from_tick ||
                                                   cells.strangers.contains(BlockKey(before)));
  if (!cells.strangers.empty()) cells.strangers.erase(BlockKey(before));
  if (stranger) cells.strangers.insert(BlockKey(now));
  if (had) {
    size_t place = place_of(cells, before);
    Cell& from = touch(cells, place);
    keep_most(cells, place, counts);
    from.live_blocks -= before.stands_for();
    from.live_bytes -= before.bytes();
    uint64_t since = std::max(before.born_tick, heap_.window().begin_tick());
    if (options_.details && counts && now.born_tick > since)
      cells.details[place].lifetime_ticks += (now.born_tick - since) << before.weight_log2;
  }
  if (!wants(cells, now)) return;
  size_t place = place_of(cells, now);
  Cell& to = touch(cells, place);
  to.live_blocks += now.stands_for();
  to.live_bytes += now.bytes();
  if (!counts) return;
  ++to.reallocations;
  if (now.bytes() > before.bytes()) to.allocated_bytes += now.bytes() - before.bytes();
  if (!options_.details) return;
  Details& details = cells.details[place];
  details.first_tick = std::min(details.first_tick, now.born_tick);
  details.last_tick = std::max(details.last_tick, now.born_tick);
  details.largest_block = std::max(details.largest_block, now.size);
  add_overhead(now, &details);
}

void Tally::gone(ImageId image, const Block& block, End how, const wire::Event& event,
                 bool counts) {
  ImageCells& cells = cells_of(image);
  if (!wants(cells, block)) {
    // In the same tick its address may be that of another.
    if (!cells.strangers.empty()) cells.strangers.erase(BlockKey(block));
    return;
  }
  size_t place = place_of(cells, block);
  Cell& cell = touch(cells, place);
  keep_most(cells, place, counts);
  cell.live_blocks -= block.stands_for();
  cell.live_bytes -= block.bytes();
  if (!counts) return;
  if (how == End::kTemporary) cell.temporary += block.stands_for();
  if (!options_.details) return;
  Details& details = cells.details[place];
  uint64_t since = std::max(block.born_tick, heap_.window().begin_tick());
  if (event.tick > since) details.lifetime_ticks += (event.tick - since) << block.weight_log2;
  details.freed_blocks += block.stands_for();
  details.freed_bytes += block.bytes();
}

void Tally::timed(ImageId image, const Block& block, uint64_t cycles, bool counts) {
  if (!options_.call_times || !counts) return;
  ImageCells& cells = cells_of(image);
  if (wants(cells, block)) cells.details[place_of(cells, block)].call_cycles += cycles;
}

void Tally::left(ImageId image, const BlockTable& live) {
  if (!options_.details) return;
  ImageCells& cells = cells_of(image);
  uint64_t end = std::min(heap_.last_tick(), heap_.window().to_tick);
  uint64_t begin = std::max(cells.start_tick, heap_.window().from_tick);
  uint64_t lived_to = heap_.end_tick(image);
  live.for_each([&](const Block& block) {
    if (!wants(cells, block)) return;
    Details& details = cells.details[place_of(cells, block)];
    uint64_t since = std::max(block.born_tick, heap_.window().begin_tick());
    if (lived_to > since) details.lifetime_ticks += (lived_to - since) << block.weight_log2;
    details.live_first_tick = std::min(details.live_first_tick, block.born_tick);
    details.live_last_tick = std::max(details.live_last_tick, block.born_tick);
    details.live_periods |= 1U << period(block.born_tick, begin, end);
  });
}

void Tally::image_ended(ImageId image) {
  ImageCells& cells = cells_of(image);
  for (size_t i = 0; i < cells.cells.size(); ++i) touch(cells, i);
  cells.ended = true;
}

std::optional<size_t> Tally::place_to_restore(ImageCells& cells, StackId stack, StrandId strand,
                                              unsigned size_class) {
  Block block;
  block.stack = stack;
  block.strand = strand;
  auto [least, most] = sizes_of_class(size_class);
  if (most < options_.min_size || least > options_.max_size) return std::nullopt;
  block.size = least & Block::kMostSize;
  return place_of(cells, block);
}

void Tally::restore(ImageId image, StackId stack, StrandId strand, unsigned size_class,
                    const Left& left) {
  ImageCells& cells = cells_of(image);
  std::optional<size_t> place = place_to_restore(cells, stack, strand, size_class);
  if (!place) return;
  cells.cells[*place].live_blocks += left.blocks;
  cells.cells[*place].live_bytes += left.bytes;
  Details& details = cells.details[*place];
  details.live_first_tick = std::min(details.live_first_tick, left.first_tick);
  details.live_last_tick = std::max(details.live_last_tick, left.last_tick);
  details.live_periods |= left.periods;
}

void Tally::restore(ImageId image, StackId stack, StrandId strand, unsigned size_class,
                    const Counts& counts) {
  ImageCells& cells = cells_of(image);
  std::optional<size_t> place = place_to_restore(cells, stack, strand, size_class);
  if (!place) return;
  Cell& cell = cells.cells[*place];
  cell.allocations += counts.allocations;
  cell.reallocations += counts.reallocations;
  cell.allocated_bytes += counts.allocated_bytes;
  cell.live_bytes += counts.live_bytes;
  cell.live_blocks += counts.live_blocks;
  cell.temporary += counts.temporary;
  cell.peak_bytes += counts.peak_bytes;
  cell.peak_epoch = heap_.peak_epoch();
}

std::optional<Row> Tally::row_at(ImageId image, size_t place) const {
  const ImageCells& cells = images_[raw(image)];
  const Cell& cell = cells.cells[place];
  uint64_t peak = cell.peak_epoch == heap_.peak_epoch() ? cell.peak_bytes
                  : cells.ended                         ? 0
                                                        : cell.live_bytes;
  bool told = options_.details &&
              (cells.details[place].lifetime_ticks > 0 || cells.details[place].call_cycles > 0);
  if (cell.allocations == 0 && cell.reallocations == 0 && cell.live_blocks == 0 && peak == 0 &&
      !told)
    return std::nullopt;
  Row row;
  row.image = image;
  row.stack = StackId{static_cast<uint32_t>(place)};
  if (!plain_) {
    row.stack = cells.keys[place].stack;
    row.strand = cells.keys[place].strand;
    uint64_t size = cells.keys[place].size;
    if (options_.exact_size) row.size = size;
    row.size_class = options_.exact_size ? size_class(size) : static_cast<unsigned>(size);
  }
  static_cast<Counts&>(row.amounts) = cell;
  row.amounts.peak_bytes = peak;
  if (!options_.details) return row;
  row.details = cells.details[place];
  if (cell.peak_epoch != heap_.peak_epoch())
    row.details.peak_blocks = cells.ended ? 0 : cell.live_blocks;
  if (cell.live_bytes > row.details.most_bytes) {
    row.details.most_bytes = cell.live_bytes;
    row.details.most_blocks = cell.live_blocks;
  }
  return row;
}

}  // namespace malloscope::analyze
