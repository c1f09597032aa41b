// SPDX-License-Identifier: Apache-2.0
// What happened in a step of an index (index.h) to blocks that have another size than is usual for
// their cell. With it every amount of a cell can be told by exact sizes: those of the usual size
// have what is left of the cell's.
//
//     cell 7, usual size 48      allocations   live bytes
//       all of it                     5           160
//       odd: 40                       1            40
//       odd: 60                       1             0
//       so, of 48                     3           120

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyze/index_block.h"

namespace malloscope::analyze {

// From here on a block may be a mapping of its own, which changes what is set aside for it
// (usable_size.h): such blocks are odd, whatever their size.
inline constexpr uint64_t kMayBeMapped = uint64_t{128} << 10;

struct OddEntry : IndexEntry {
  uint64_t size = 0;
  bool is_mapped = false;
};

class OddSizesWriter {
 public:
  explicit OddSizesWriter(bool own_peaks) : block_(own_peaks) {}

  // In order of cells.
  void add(const OddEntry& entry);
  bool empty() const { return entries_ == 0; }
  PackedBlock finish();

 private:
  uint32_t entries_ = 0, last_cell_ = 0;
  std::vector<uint8_t> gaps_, sizes_;
  IndexBlockWriter block_;  // Each entry as a cell of its own, by its number.
};

// Reads a block back, which may be anything.
class OddSizesReader {
 public:
  bool open(std::vector<uint8_t>* packed, uint64_t raw_bytes, bool own_peaks);

  // Calls visit(const OddEntry&) for every entry; false if the block makes no sense, which may be
  // found when some have been shown. `cells`: how many there are.
  template <typename Visit>
  bool for_each(uint64_t cells, Visit&& visit) {
    if (!cells_.empty() && cells_.back() >= cells) return false;
    return block_.for_each(usual_, [&](const IndexEntry& entry) {
      OddEntry odd;
      static_cast<IndexEntry&>(odd) = entry;
      odd.cell = cells_[entry.cell];
      odd.size = sizes_[entry.cell] >> 1;
      odd.is_mapped = sizes_[entry.cell] & 1;
      visit(static_cast<const OddEntry&>(odd));
    });
  }

 private:
  std::vector<uint8_t> raw_;
  std::vector<uint32_t> cells_, usual_;  // Of each entry.
  std::vector<uint64_t> sizes_;          // Twice that, and 1 if it is mapped.
  IndexBlockReader block_;
};

}  // namespace malloscope::analyze
