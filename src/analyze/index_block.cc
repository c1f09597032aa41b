// SPDX-License-Identifier: Apache-2.0
//     raw block:   size of each column, then the columns
//     packed:      one zstd frame
//
// Live bytes and blocks are written as what is missing of what was allocated: where
// nothing was freed, moved in or moved away, that is nothing.

#include "analyze/index_block.h"

#include <zstd.h>

#include "base/packing.h"

namespace malloscope::analyze {

void IndexBlockWriter::add(const IndexEntry& entry) {
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
}

IndexBlockWriter::Packed IndexBlockWriter::finish() {
  Packer raw;
  for (const auto& column : columns_) raw.number(column.size());
  for (auto& column : columns_) {
    raw.bytes(column);
    column.clear();
  }
  next_cell_ = 0;
  const std::vector<uint8_t>& bytes = raw.result();
  Packed packed;
  packed.raw_bytes = bytes.size();
  packed.bytes.resize(ZSTD_compressBound(bytes.size()));
  size_t size =
      ZSTD_compress(packed.bytes.data(), packed.bytes.size(), bytes.data(), bytes.size(), 1);
  packed.bytes.resize(ZSTD_isError(size) ? 0 : size);
  return packed;
}

bool IndexBlockReader::open(std::span<const uint8_t> packed, uint64_t raw_bytes, bool own_peaks) {
  own_peaks_ = own_peaks;
  if (raw_bytes > kMostRawBytes) return false;
  raw_.resize(raw_bytes);
  size_t size = ZSTD_decompress(raw_.data(), raw_.size(), packed.data(), packed.size());
  if (ZSTD_isError(size) || size != raw_bytes) return false;
  Unpacker in(raw_);
  uint64_t sizes[IndexBlockWriter::kColumns];
  for (uint64_t& column : sizes) column = in.number();
  for (int i = 0; i < IndexBlockWriter::kColumns; ++i) columns_[i] = in.bytes(sizes[i]);
  return in.ok() && in.done();
}

}  // namespace malloscope::analyze
