// SPDX-License-Identifier: Apache-2.0
// A block: how many entries there are, the sizes of two columns, these (the gaps between cells; the
// sizes), and the entries as a block of an index has them.

#include "analyze/index_odd_sizes.h"

#include <utility>

#include "base/packing.h"

namespace malloscope::analyze {

static uint32_t usual_of(uint64_t size) {
  return size <= UINT32_MAX ? static_cast<uint32_t>(size) : 0;
}

void OddSizesWriter::add(const OddEntry& entry) {
  put_gap(entry.cell - std::exchange(last_cell_, entry.cell), &gaps_);
  uint8_t bytes[kMaxVarintBytes];
  sizes_.insert(sizes_.end(), bytes, put_varint(bytes, entry.size << 1 | entry.is_mapped));
  IndexEntry numbered = entry;
  numbered.cell = entries_++;
  block_.add(numbered, usual_of(entry.size));
}

PackedBlock OddSizesWriter::finish() {
  Packer raw;
  raw.number(entries_).number(gaps_.size()).number(sizes_.size());
  raw.bytes(gaps_).bytes(sizes_);
  block_.pack(&raw);
  gaps_.clear(), sizes_.clear();
  entries_ = last_cell_ = 0;
  return PackedBlock::of(std::move(raw.result()));
}

bool OddSizesReader::open(std::vector<uint8_t>* packed, uint64_t raw_bytes, bool own_peaks) {
  if (!PackedBlock::unpack(packed, raw_bytes, &raw_)) return false;
  Unpacker in(std::span<const uint8_t>(raw_).first(raw_bytes));
  uint64_t entries = in.number(), gap_bytes = in.number(), size_bytes = in.number();
  std::span<const uint8_t> gaps = in.bytes(gap_bytes), sizes = in.bytes(size_bytes);
  if (!in.ok() || entries > gaps.size()) return false;  // Each takes a byte at least.
  cells_.clear(), usual_.clear(), sizes_.clear();
  const uint8_t *gap = gaps.data(), *gap_end = gap + gaps.size();
  const uint8_t *size = sizes.data(), *size_end = size + sizes.size();
  uint64_t cell = 0;
  for (uint64_t i = 0; i < entries; ++i) {
    cell += next_gap(gap, gap_end);
    uint64_t twice = next_number(size, size_end);
    if (gap > gap_end || size > size_end || cell > UINT32_MAX) return false;
    cells_.push_back(static_cast<uint32_t>(cell));
    sizes_.push_back(twice);
    usual_.push_back(usual_of(twice >> 1));
  }
  return gap == gap_end && size == size_end && block_.open(&in, own_peaks) && in.done();
}

}  // namespace malloscope::analyze
