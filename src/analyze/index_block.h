// SPDX-License-Identifier: Apache-2.0
// What changed in some part of the time, cell by cell, in few bytes: the columns that an
// index (index.h) is made of.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analyze/number_column.h"
#include "base/attributes.h"
#include "base/packing.h"
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

// A part of an index as it is stored: one zstd frame, or, unless that halves it, as it is.
struct PackedBlock {
  std::vector<uint8_t> bytes;
  uint64_t raw_bytes = 0;  // Before it was compressed; if that is the same, it is not.

  static constexpr uint64_t kMostRawBytes = uint64_t{1} << 30;

  static PackedBlock of(std::vector<uint8_t> raw);
  // With some bytes behind it, see number_column.h. `packed` may be anything, and is something else
  // afterwards: what is not compressed is not copied either.
  static bool unpack(std::vector<uint8_t>* packed, uint64_t raw_bytes, std::vector<uint8_t>* raw);
};

class IndexBlockWriter {
 public:
  // `own_peaks`: own_peak_bytes is written; else it is the same as peak_bytes.
  // `in_order`: entries are read back in the order of their cells, which takes longer.
  explicit IndexBlockWriter(bool own_peaks, bool in_order = false)
      : own_peaks_(own_peaks), in_order_(in_order) {}

  // In order of cells. `usual`: the size that most blocks of the cell may have; 0: nobody knows.
  // How the entry tells the size of the blocks that it is about.
  enum class Sizes {
    kUsual,     // All have the usual one.
    kOne,       // They have one, which the entry tells: see for_each_unusual_single().
    kAnything,  // Nothing is told.
  };
  Sizes add(const IndexEntry& entry, uint32_t usual);
  bool empty() const { return entries_ == 0; }
  // Empty again afterwards.
  PackedBlock finish();
  // The same, behind something else.
  void pack(Packer* raw);

 private:
  friend class IndexBlockReader;
  enum Column { kGaps, kTags, kCounts, kAllocated, kGone, kPeaks, kOwnPeaks, kColumns };
  // Cells to which one thing happened, and nothing else. The peak's share is the block or nothing:
  // a bit. Of blocks of the usual size no size is written.
  struct Singles {
    enum Column { kGaps, kSizes, kPeaks, kOwnPeaks, kColumns };
    uint64_t count = 0;
    uint32_t next_cell = 0;
    std::vector<uint8_t> columns[kColumns];
  };
  // A block was made; was freed; was made and one as large freed; and was a temporary one.
  enum Kind { kMade, kFreed, kBrief, kTemporary, kKinds };
  static constexpr bool makes(Kind kind) { return kind != kFreed; }
  static constexpr bool frees(Kind kind) { return kind != kMade; }

  static void put(std::vector<uint8_t>* column, uint64_t value) {
    uint8_t bytes[kMaxVarintBytes];
    column->insert(column->end(), bytes, put_varint(bytes, value));
  }
  void put(Column column, uint64_t value) { put(&columns_[column], value); }
  std::optional<Sizes> add_single(const IndexEntry& entry, uint32_t usual);

  bool own_peaks_, in_order_;
  uint64_t entries_ = 0;
  uint32_t next_cell_ = 0;
  std::vector<uint8_t> columns_[kColumns];
  Singles singles_[kKinds], usual_singles_[kKinds];
};

// Reads a block back. It may be anything: what cannot be is told, and nothing is out of range.
class IndexBlockReader {
 public:
  // `packed`: see PackedBlock::unpack.
  bool open(std::vector<uint8_t>* packed, uint64_t raw_bytes, bool own_peaks);
  // The same of what is in bytes that outlive it, and kBehindColumn more.
  bool open(Unpacker* in, bool own_peaks);
  // The usual size of each cell that there is.
  using UsualSizes = std::span<const uint32_t>;
  // Calls visit(const IndexEntry&) for every entry; false if the block makes no sense, which
  // may be found when some have been shown.
  template <typename Visit>
  bool for_each(UsualSizes usual, Visit&& visit) const {
    return for_each_single<IndexBlockWriter::kMade>(usual, visit) &&
           for_each_single<IndexBlockWriter::kFreed>(usual, visit) &&
           for_each_single<IndexBlockWriter::kBrief>(usual, visit) &&
           for_each_single<IndexBlockWriter::kTemporary>(usual, visit) &&
           for_each_other(usual.size(), visit);
  }
  // The same for the entries of which IndexBlockWriter::add() said Sizes::kOne. Calls visit(entry,
  // size).
  template <typename Visit>
  bool for_each_unusual_single(uint64_t cells, Visit&& visit) const {
    return for_each_unusual<IndexBlockWriter::kMade>(cells, visit) &&
           for_each_unusual<IndexBlockWriter::kFreed>(cells, visit) &&
           for_each_unusual<IndexBlockWriter::kBrief>(cells, visit) &&
           for_each_unusual<IndexBlockWriter::kTemporary>(cells, visit);
  }

  // What the entries of some cells add up to: as for_each() would tell, but faster.
  struct Sum {
    uint64_t allocations = 0, reallocations = 0, allocated_bytes = 0;
    uint64_t live_bytes = 0, live_blocks = 0;
    uint64_t largest = 0;  // Of the blocks that were made, but for those of for_each_several().
  };
  struct Counting {
    static constexpr uint16_t kLarge = UINT16_MAX;
    std::vector<uint64_t> bits;  // One for each cell.
    // Of the others 0; kLarge: what `usual` says. Each step is a look at all of them, and waits for
    // them where others need the cache as well, so they are short.
    std::vector<uint16_t> sizes;
    UsualSizes usual;

    // `usual_sizes` must outlive it. UINT32_MAX: none.
    Counting(UsualSizes usual_sizes, const std::vector<uint32_t>& group_of_cell);
  };
  bool sum(const Counting& counting, Sum* sum) const;
  // Calls visit(const IndexEntry&) for the entries that do not tell which sizes they are of.
  template <typename Visit>
  bool for_each_several(uint64_t cells, Visit&& visit) const {
    return for_each_other(cells, visit);
  }

 private:
  using Column = IndexBlockWriter::Column;
  using Singles = IndexBlockWriter::Singles;
  struct SinglesView {
    uint64_t count = 0;
    std::span<const uint8_t> columns[Singles::kColumns];
  };

  // Calls visit(i, cell, size) for all singles of a kind.
  template <typename Visit>
  MSCOPE_FAST static bool scan(const SinglesView& singles, uint64_t cells, Visit&& visit);
  // The same of those that have the usual size, but calls visit(i, cell).
  template <typename Visit>
  MSCOPE_FAST static bool scan_usual(const SinglesView& singles, uint64_t cells, Visit&& visit);
  template <IndexBlockWriter::Kind kKind>
  MSCOPE_FAST IndexEntry single(const SinglesView& singles, uint64_t i, uint32_t cell,
                                uint64_t size) const;
  template <IndexBlockWriter::Kind kKind, typename Visit>
  bool for_each_single(UsualSizes usual, Visit& visit) const;
  template <IndexBlockWriter::Kind kKind, typename Visit>
  bool for_each_unusual(uint64_t cells, Visit& visit) const;
  template <typename Visit>
  bool for_each_other(uint64_t cells, Visit& visit) const;

  bool own_peaks_ = false;
  std::vector<uint8_t> raw_;
  SinglesView singles_[IndexBlockWriter::kKinds], usual_singles_[IndexBlockWriter::kKinds];
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
MSCOPE_FAST bool IndexBlockReader::scan(const SinglesView& singles, uint64_t cells, Visit&& visit) {
  const uint8_t *gaps = singles.columns[Singles::kGaps].data(),
                *gaps_end = gaps + singles.columns[Singles::kGaps].size();
  const uint8_t *sizes = singles.columns[Singles::kSizes].data(),
                *sizes_end = sizes + singles.columns[Singles::kSizes].size();
  uint64_t cell = 0;
  for (uint64_t i = 0; i < singles.count; ++i) {
    uint64_t gap = next_gap(gaps, gaps_end);
    uint64_t size = next_number(sizes, sizes_end);
    if (gaps > gaps_end || sizes > sizes_end || gap >= cells - cell) return false;
    cell += gap;
    visit(i, static_cast<uint32_t>(cell), size);
    ++cell;
  }
  return gaps == gaps_end && sizes == sizes_end;
}

template <typename Visit>
MSCOPE_FAST bool IndexBlockReader::scan_usual(const SinglesView& singles, uint64_t cells,
                                              Visit&& visit) {
  const uint8_t *gaps = singles.columns[Singles::kGaps].data(),
                *end = gaps + singles.columns[Singles::kGaps].size();
  uint64_t cell = 0;
  for (uint64_t i = 0; i < singles.count; ++i) {
    uint64_t gap = next_gap(gaps, end);
    if (gaps > end || gap >= cells - cell) return false;
    cell += gap;
    visit(i, static_cast<uint32_t>(cell));
    ++cell;
  }
  return gaps == end;
}

template <IndexBlockWriter::Kind kKind>
MSCOPE_FAST IndexEntry IndexBlockReader::single(const SinglesView& singles, uint64_t i,
                                                uint32_t cell, uint64_t size) const {
  constexpr bool kMakes = IndexBlockWriter::makes(kKind), kFrees = IndexBlockWriter::frees(kKind);
  IndexEntry entry;
  entry.cell = cell;
  entry.allocations = kMakes;
  entry.temporary = kKind == IndexBlockWriter::kTemporary;
  entry.allocated_bytes = kMakes ? size : 0;
  entry.live_blocks = int{kMakes} - int{kFrees};
  entry.live_bytes = entry.live_blocks * static_cast<int64_t>(size);
  auto if_set = [&](Singles::Column column) {
    const uint8_t* bits = singles.columns[column].data();
    auto block = static_cast<int64_t>(kMakes ? size : 0 - size);
    return block & -static_cast<int64_t>(bits[i / 8] >> i % 8 & 1);
  };
  entry.peak_bytes = if_set(Singles::kPeaks);
  entry.own_peak_bytes = if_set(own_peaks_ ? Singles::kOwnPeaks : Singles::kPeaks);
  return entry;
}

template <IndexBlockWriter::Kind kKind, typename Visit>
bool IndexBlockReader::for_each_single(UsualSizes usual, Visit& visit) const {
  auto show = [&](const SinglesView& singles, uint64_t i, uint32_t cell, uint64_t size) {
    visit(static_cast<const IndexEntry&>(single<kKind>(singles, i, cell, size)));
  };
  return scan_usual(usual_singles_[kKind], usual.size(),
                    [&](uint64_t i, uint32_t cell) {
                      show(usual_singles_[kKind], i, cell, usual[cell]);
                    }) &&
         scan(singles_[kKind], usual.size(), [&](uint64_t i, uint32_t cell, uint64_t size) {
           show(singles_[kKind], i, cell, size);
         });
}

template <IndexBlockWriter::Kind kKind, typename Visit>
bool IndexBlockReader::for_each_unusual(uint64_t cells, Visit& visit) const {
  return scan(singles_[kKind], cells, [&](uint64_t i, uint32_t cell, uint64_t size) {
    visit(static_cast<const IndexEntry&>(single<kKind>(singles_[kKind], i, cell, size)), size);
  });
}

template <typename Visit>
bool IndexBlockReader::for_each_other(uint64_t cells, Visit& visit) const {
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
    visit(static_cast<const IndexEntry&>(entry));
  }
  for (int i = 0; i < IndexBlockWriter::kColumns; ++i)
    if (at[i] != end[i]) return false;
  return true;
}

}  // namespace malloscope::analyze
