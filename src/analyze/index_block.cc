// SPDX-License-Identifier: Apache-2.0
// A block: how many singles there are of each kind, the size of each column, the columns.
//
// With very many stacks nearly all that happens to one in a short time is that a block is made, is
// freed, or both. Those entries have columns of their own, which are read without asking what is
// there.
//
// Live bytes and blocks are written as what is missing of what was allocated: where
// nothing was freed, moved in or moved away, that is nothing.

#include "analyze/index_block.h"

#include <zstd.h>

#include <algorithm>
#include <utility>

namespace malloscope::analyze {

PackedBlock PackedBlock::of(std::vector<uint8_t> raw) {
  PackedBlock packed;
  packed.raw_bytes = raw.size();
  packed.bytes.resize(ZSTD_compressBound(raw.size()));
  size_t size = ZSTD_compress(packed.bytes.data(), packed.bytes.size(), raw.data(), raw.size(), 1);
  if (!ZSTD_isError(size) && size < raw.size() / 2)
    packed.bytes.resize(size);
  else
    packed.bytes = std::move(raw);
  return packed;
}

bool PackedBlock::unpack(std::vector<uint8_t>* packed, uint64_t raw_bytes,
                         std::vector<uint8_t>* raw) {
  if (raw_bytes > kMostRawBytes) return false;
  bool is_raw = packed->size() == raw_bytes;
  if (is_raw) std::swap(*packed, *raw);
  raw->resize(raw_bytes + kBehindColumn);
  if (is_raw) return true;
  size_t size = ZSTD_decompress(raw->data(), raw_bytes, packed->data(), packed->size());
  return !ZSTD_isError(size) && size == raw_bytes;
}

std::optional<IndexBlockWriter::Sizes> IndexBlockWriter::add_single(const IndexEntry& entry,
                                                                    uint32_t usual) {
  Kind kind = entry.temporary != 0     ? kTemporary
              : entry.allocations == 0 ? kFreed
              : entry.live_blocks != 0 ? kMade
                                       : kBrief;
  auto live = static_cast<uint64_t>(entry.live_bytes);
  uint64_t size = kind == kFreed ? 0 - live : entry.allocated_bytes;
  auto block = static_cast<int64_t>(makes(kind) ? size : live);
  auto is_bit = [&](int64_t peak) { return peak == 0 || peak == block; };
  int64_t change = int{makes(kind)} - int{frees(kind)};
  if (in_order_ || size > UINT32_MAX || entry.reallocations != 0 ||
      entry.temporary != (kind == kTemporary) || entry.allocations != makes(kind) ||
      entry.allocated_bytes != (makes(kind) ? size : 0) || entry.live_blocks != change ||
      entry.live_bytes != change * static_cast<int64_t>(size) || !is_bit(entry.peak_bytes) ||
      (own_peaks_ && !is_bit(entry.own_peak_bytes)))
    return std::nullopt;
  bool is_usual = size == usual && usual != 0;
  Singles& singles = (is_usual ? usual_singles_ : singles_)[kind];
  auto put_bit = [&](Singles::Column column, int64_t peak) {
    std::vector<uint8_t>& bits = singles.columns[column];
    if (singles.count % 8 == 0) bits.push_back(0);
    bits.back() |= static_cast<uint8_t>(unsigned{peak != 0} << singles.count % 8);
  };
  put_gap(entry.cell - singles.next_cell, &singles.columns[Singles::kGaps]);
  if (!is_usual) put(&singles.columns[Singles::kSizes], size);
  put_bit(Singles::kPeaks, entry.peak_bytes);
  if (own_peaks_) put_bit(Singles::kOwnPeaks, entry.own_peak_bytes);
  singles.next_cell = entry.cell + 1;
  ++singles.count;
  return is_usual ? Sizes::kUsual : Sizes::kOne;
}

IndexBlockWriter::Sizes IndexBlockWriter::add(const IndexEntry& entry, uint32_t usual) {
  ++entries_;
  if (std::optional<Sizes> added = add_single(entry, usual)) return *added;
  put(kGaps, entry.cell - next_cell_);
  next_cell_ = entry.cell + 1;
  auto gone_blocks =
      static_cast<int64_t>(entry.allocations - static_cast<uint64_t>(entry.live_blocks));
  auto gone_bytes =
      static_cast<int64_t>(entry.allocated_bytes - static_cast<uint64_t>(entry.live_bytes));
  unsigned few = entry.allocations < 3 ? static_cast<unsigned>(entry.allocations) : 3;
  bool nothing_gone = gone_blocks == 0 && gone_bytes == 0;
  unsigned gone = nothing_gone                         ? 0
                  : gone_blocks > 0 && gone_blocks < 3 ? static_cast<unsigned>(gone_blocks)
                                                       : 3;
  unsigned peak = entry.peak_bytes == 0                                             ? 0
                  : entry.peak_bytes == entry.live_bytes                            ? 1
                  : entry.peak_bytes == static_cast<int64_t>(entry.allocated_bytes) ? 2
                                                                                    : 3;
  columns_[kTags].push_back(static_cast<uint8_t>(
      few << IndexTag::kAllocations | gone << IndexTag::kGoneBlocks |
      unsigned{entry.reallocations != 0} << IndexTag::kReallocations |
      unsigned{entry.temporary != 0} << IndexTag::kTemporary | peak << IndexTag::kPeak));
  if (few == 3) put(kCounts, entry.allocations);
  if (gone == 3) put(kCounts, zigzag(gone_blocks));
  if (entry.reallocations) put(kCounts, entry.reallocations);
  if (entry.temporary) put(kCounts, entry.temporary);
  if (entry.allocations || entry.reallocations) put(kAllocated, entry.allocated_bytes);
  if (gone != 0 || entry.reallocations) put(kGone, zigzag(gone_bytes));
  if (peak == 3) put(kPeaks, zigzag(entry.peak_bytes));
  if (own_peaks_) put(kOwnPeaks, zigzag(entry.own_peak_bytes));
  return Sizes::kAnything;
}

PackedBlock IndexBlockWriter::finish() {
  Packer raw;
  pack(&raw);
  return PackedBlock::of(std::move(raw.result()));
}

void IndexBlockWriter::pack(Packer* to) {
  Packer& raw = *to;
  auto for_each_singles = [&](auto&& visit) {
    for (Singles* all : {singles_, usual_singles_})
      for (int kind = 0; kind < kKinds; ++kind) visit(all[kind]);
  };
  for_each_singles([&](const Singles& singles) {
    raw.number(singles.count);
    for (const auto& column : singles.columns) raw.number(column.size());
  });
  for (const auto& column : columns_) raw.number(column.size());
  for_each_singles([&](Singles& singles) {
    for (auto& column : singles.columns) {
      raw.bytes(column);
      column.clear();
    }
    singles.count = singles.next_cell = 0;
  });
  for (auto& column : columns_) {
    raw.bytes(column);
    column.clear();
  }
  entries_ = next_cell_ = 0;
}

IndexBlockReader::Counting::Counting(UsualSizes usual_sizes,
                                     const std::vector<uint32_t>& group_of_cell)
    : bits(group_of_cell.size() / 64 + 1), sizes(usual_sizes.size()), usual(usual_sizes) {
  for (size_t cell = 0; cell < group_of_cell.size(); ++cell) {
    bool counts = group_of_cell[cell] != UINT32_MAX;
    bits[cell / 64] |= uint64_t{counts} << cell % 64;
    if (counts) sizes[cell] = static_cast<uint16_t>(std::min<uint32_t>(usual[cell], kLarge));
  }
}

// Which cells count cannot be guessed: what does not is added as 0.
bool IndexBlockReader::sum(const Counting& counting, Sum* sum) const {
  size_t cells = counting.sizes.size();
  auto mask_of = [bits = counting.bits.data()](uint32_t cell) {
    return 0 - (bits[cell / 64] >> cell % 64 & 1);
  };
  for (int kind = 0; kind < IndexBlockWriter::kKinds; ++kind) {
    uint64_t blocks = 0, bytes = 0, largest = 0;
    auto add_usual = [&, sizes = counting.sizes.data()](uint64_t, uint32_t cell) {
      uint64_t size = sizes[cell];
      if (size == Counting::kLarge) [[unlikely]]
        size = counting.usual[cell];
      blocks += size != 0;
      bytes += size;
      largest = std::max(largest, size);
    };
    auto add_any = [&](uint64_t, uint32_t cell, uint64_t size) {
      uint64_t mask = mask_of(cell);
      blocks -= mask;
      bytes += size & mask;
      largest = std::max(largest, size & mask);
    };
    if (!scan_usual(usual_singles_[kind], cells, add_usual) ||
        !scan(singles_[kind], cells, add_any))
      return false;
    bool makes = IndexBlockWriter::makes(static_cast<IndexBlockWriter::Kind>(kind));
    bool frees = IndexBlockWriter::frees(static_cast<IndexBlockWriter::Kind>(kind));
    if (makes) sum->largest = std::max(sum->largest, largest);
    sum->allocations += makes ? blocks : 0;
    sum->allocated_bytes += makes ? bytes : 0;
    sum->live_blocks += (makes ? blocks : 0) - (frees ? blocks : 0);
    sum->live_bytes += (makes ? bytes : 0) - (frees ? bytes : 0);
  }
  auto add = [&](const IndexEntry& entry) {
    uint64_t mask = mask_of(entry.cell);
    sum->allocations += entry.allocations & mask;
    sum->reallocations += entry.reallocations & mask;
    sum->allocated_bytes += entry.allocated_bytes & mask;
    sum->live_bytes += static_cast<uint64_t>(entry.live_bytes) & mask;
    sum->live_blocks += static_cast<uint64_t>(entry.live_blocks) & mask;
  };
  return for_each_other(cells, add);
}

bool IndexBlockReader::open(std::vector<uint8_t>* packed, uint64_t raw_bytes, bool own_peaks) {
  if (!PackedBlock::unpack(packed, raw_bytes, &raw_)) return false;
  Unpacker in(std::span<const uint8_t>(raw_).first(raw_bytes));
  return open(&in, own_peaks) && in.done();
}

bool IndexBlockReader::open(Unpacker* from, bool own_peaks) {
  Unpacker& in = *from;
  own_peaks_ = own_peaks;
  uint64_t single_sizes[2 * IndexBlockWriter::kKinds][Singles::kColumns];
  uint64_t sizes[IndexBlockWriter::kColumns];
  SinglesView* all[2 * IndexBlockWriter::kKinds];
  for (int kind = 0; kind < IndexBlockWriter::kKinds; ++kind) {
    all[kind] = &singles_[kind];
    all[IndexBlockWriter::kKinds + kind] = &usual_singles_[kind];
  }
  for (int kind = 0; kind < 2 * IndexBlockWriter::kKinds; ++kind) {
    all[kind]->count = in.number();
    for (uint64_t& column : single_sizes[kind]) column = in.number();
  }
  for (uint64_t& column : sizes) column = in.number();
  for (int kind = 0; kind < 2 * IndexBlockWriter::kKinds; ++kind) {
    for (int i = 0; i < Singles::kColumns; ++i)
      all[kind]->columns[i] = in.bytes(single_sizes[kind][i]);
    uint64_t bits = all[kind]->count / 8 + (all[kind]->count % 8 != 0);
    if (single_sizes[kind][Singles::kPeaks] != bits ||
        single_sizes[kind][Singles::kOwnPeaks] != (own_peaks ? bits : 0))
      return false;
  }
  for (int i = 0; i < IndexBlockWriter::kColumns; ++i) columns_[i] = in.bytes(sizes[i]);
  return in.ok();
}

}  // namespace malloscope::analyze
