// SPDX-License-Identifier: Apache-2.0
// A block of an index. Checksums keep others away from it, but a file may be made to have the right
// ones.
//
//     2 bytes: how many cells there are; 1 byte: bit 0: peaks of single processes, bit 1: a block
//     of lives; the block, not compressed

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "analyze/index_block.h"
#include "analyze/index_lives.h"

using namespace malloscope::analyze;

// What was read can be written, and read again.
static void read_changes(std::vector<uint8_t> block, uint64_t cells, bool own_peaks) {
  IndexBlockReader reader;
  uint64_t raw_bytes = block.size();
  if (!reader.open(&block, raw_bytes, own_peaks)) return;
  std::vector<uint32_t> usual;
  for (uint64_t i = 0; i < cells; ++i) usual.push_back(static_cast<uint32_t>(i % 3 * 16));
  std::vector<IndexEntry> entries;
  bool good = reader.for_each(usual, [&](const IndexEntry& entry) {
    if (entry.cell >= cells) abort();
    entries.push_back(entry);
  });
  if (!good || entries.empty()) return;
  std::ranges::stable_sort(entries, {}, &IndexEntry::cell);
  auto again = std::ranges::unique(entries, {}, &IndexEntry::cell);
  entries.erase(again.begin(), again.end());
  IndexBlockWriter writer(own_peaks);
  for (const IndexEntry& entry : entries) writer.add(entry, usual[entry.cell]);
  PackedBlock written = writer.finish();
  size_t read = 0;
  if (!reader.open(&written.bytes, written.raw_bytes, own_peaks) ||
      !reader.for_each(usual, [&](const IndexEntry&) { ++read; }) || read != entries.size())
    abort();
}

static void read_lives(std::vector<uint8_t> block, uint64_t cells) {
  constexpr uint32_t kStep = 500;
  IndexLivesReader reader;
  uint64_t raw_bytes = block.size();
  if (!reader.open(&block, raw_bytes, kStep)) return;
  auto check = [&](const IndexLife& life) {
    if (life.cell >= cells) abort();
    if (life.born != IndexLife::kUntold && (life.born > kStep || life.began > life.born)) abort();
  };
  (void)reader.for_each(cells, check);
  (void)reader.for_each_straddler(cells, check);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 3) return 0;
  uint64_t cells = static_cast<uint64_t>(data[0]) | static_cast<uint64_t>(data[1]) << 8;
  std::vector<uint8_t> block(data + 3, data + size);
  if (data[2] & 2)
    read_lives(std::move(block), cells);
  else
    read_changes(std::move(block), cells, data[2] & 1);
  return 0;
}
