// SPDX-License-Identifier: Apache-2.0
// What changed in some part of the time, cell by cell, in few bytes: the columns that an
// index (index.h) is made of.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/varint.h"

namespace malloscope::analyze {

// A cell is a stack of an image with a thread and a size class. All are differences between the
// beginning of the time and its end, but for the shares.
struct IndexEntry {
  uint32_t cell = 0;
  uint64_t allocations = 0;
  uint64_t reallocations = 0;
  uint64_t temporary = 0;
  uint64_t allocated_bytes = 0;
  int64_t live_bytes = 0;
  int64_t live_blocks = 0;
  // Live bytes at the highest moment of that time, less those at its beginning: of all processes
  // together, and of the cell's own process.
  int64_t peak_bytes = 0;
  int64_t own_peak_bytes = 0;
};

class IndexBlockWriter {
 public:
  // `own_peaks`: own_peak_bytes is written; else it is the same as peak_bytes.
  explicit IndexBlockWriter(bool own_peaks) : own_peaks_(own_peaks) {}

  // In order of cells.
  void add(const IndexEntry& entry);
  bool empty() const { return columns_[kTags].empty(); }
  // The block, and its size before it was compressed. Empty again afterwards.
  struct Packed {
    std::vector<uint8_t> bytes;
    uint64_t raw_bytes = 0;
  };
  Packed finish();

 private:
  friend class IndexBlockReader;
  enum Column { kGaps, kTags, kCounts, kAllocated, kGone, kPeaks, kOwnPeaks, kColumns };

  void put(Column column, uint64_t value) {
    uint8_t bytes[kMaxVarintBytes];
    columns_[column].insert(columns_[column].end(), bytes, put_varint(bytes, value));
  }

  bool own_peaks_;
  uint32_t next_cell_ = 0;
  std::vector<uint8_t> columns_[kColumns];
};

// Reads a block back. It may be anything: what cannot be is told, and nothing is out of range.
class IndexBlockReader {
 public:
  static constexpr uint64_t kMostRawBytes = uint64_t{1} << 30;

  // `packed` must stay as it is while it is unpacked.
  bool open(std::span<const uint8_t> packed, uint64_t raw_bytes, bool own_peaks);
  // Calls visit(const IndexEntry&) for every entry; false if the block makes no sense, which
  // may be found when some have been shown.
  template <typename Visit>
  bool for_each(uint64_t cells, Visit&& visit);

 private:
  using Column = IndexBlockWriter::Column;
  bool own_peaks_ = false;
  std::vector<uint8_t> raw_;
  std::span<const uint8_t> columns_[IndexBlockWriter::kColumns];
};

// A tag says what of the entry is common, so that most entries are a gap, a tag and a size.
struct IndexTag {
  static constexpr unsigned kAllocations = 0;    // 2 bits: 0, 1, 2, or 3: in a column.
  static constexpr unsigned kGoneBlocks = 2;     // 2 bits: likewise, zigzag.
  static constexpr unsigned kReallocations = 4;  // In a column, not 0.
  static constexpr unsigned kTemporary = 5;
  static constexpr unsigned kPeak = 6;  // 2 bits: 0; as live; as allocated; in a column.
};

template <typename Visit>
bool IndexBlockReader::for_each(uint64_t cells, Visit&& visit) {
  const uint8_t *at[IndexBlockWriter::kColumns], *end[IndexBlockWriter::kColumns];
  for (int i = 0; i < IndexBlockWriter::kColumns; ++i) {
    at[i] = columns_[i].data();
    end[i] = at[i] + columns_[i].size();
  }
  bool ok = true;
  auto varint = [&](Column column) -> uint64_t {
    const uint8_t*& here = at[column];
    if (here < end[column] && *here < 0x80) [[likely]]
      return *here++;
    uint64_t value = 0;
    const uint8_t* next = get_varint(here, end[column], &value);
    if (next)
      here = next;
    else
      ok = false;
    return value;
  };
  IndexEntry entry;
  uint64_t cell = 0;
  while (at[IndexBlockWriter::kTags] < end[IndexBlockWriter::kTags]) {
    unsigned tag = *at[IndexBlockWriter::kTags]++;
    uint64_t gap = varint(IndexBlockWriter::kGaps);
    if (!ok || gap >= cells - cell) return false;
    cell += gap;
    entry.cell = static_cast<uint32_t>(cell++);
    entry.allocations = tag >> IndexTag::kAllocations & 3;
    if (entry.allocations == 3) entry.allocations = varint(IndexBlockWriter::kCounts);
    unsigned gone = tag >> IndexTag::kGoneBlocks & 3;
    auto gone_blocks = static_cast<int64_t>(gone);
    if (gone == 3) gone_blocks = unzigzag(varint(IndexBlockWriter::kCounts));
    entry.reallocations = entry.temporary = 0;
    if (tag >> IndexTag::kReallocations & 1)
      entry.reallocations = varint(IndexBlockWriter::kCounts);
    if (tag >> IndexTag::kTemporary & 1) entry.temporary = varint(IndexBlockWriter::kCounts);
    entry.allocated_bytes = entry.allocations != 0 || entry.reallocations != 0
                                ? varint(IndexBlockWriter::kAllocated)
                                : 0;
    uint64_t gone_bytes = gone != 0 || entry.reallocations != 0
                              ? static_cast<uint64_t>(unzigzag(varint(IndexBlockWriter::kGone)))
                              : 0;
    entry.live_bytes = static_cast<int64_t>(entry.allocated_bytes - gone_bytes);
    entry.live_blocks =
        static_cast<int64_t>(entry.allocations - static_cast<uint64_t>(gone_blocks));
    unsigned peak = tag >> IndexTag::kPeak & 3;
    entry.peak_bytes = peak == 0   ? 0
                       : peak == 1 ? entry.live_bytes
                       : peak == 2 ? static_cast<int64_t>(entry.allocated_bytes)
                                   : unzigzag(varint(IndexBlockWriter::kPeaks));
    entry.own_peak_bytes =
        own_peaks_ ? unzigzag(varint(IndexBlockWriter::kOwnPeaks)) : entry.peak_bytes;
    if (!ok) return false;
    visit(entry);
  }
  for (int i = 0; i < IndexBlockWriter::kColumns; ++i)
    if (at[i] != end[i]) return false;
  return true;
}

}  // namespace malloscope::analyze
