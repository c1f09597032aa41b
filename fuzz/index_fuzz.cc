// SPDX-License-Identifier: Apache-2.0
// A block of an index. Checksums keep others away from it, but a file may be made to have the right
// ones.
//
//     2 bytes: how many cells there are; 1 byte: bit 0: peaks of single processes; the block, not
//     compressed

#include <zstd.h>

#include <cstdlib>
#include <vector>

#include "analyze/index_block.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace malloscope::analyze;
  if (size < 3) return 0;
  uint64_t cells = static_cast<uint64_t>(data[0]) | static_cast<uint64_t>(data[1]) << 8;
  bool own_peaks = data[2] & 1;
  std::vector<uint8_t> packed(ZSTD_compressBound(size - 3));
  packed.resize(ZSTD_compress(packed.data(), packed.size(), data + 3, size - 3, 1));
  IndexBlockReader reader;
  if (!reader.open(packed, size - 3, own_peaks)) return 0;
  uint64_t next = 0;
  IndexBlockWriter writer(own_peaks);
  bool good = reader.for_each(cells, [&](const IndexEntry& entry) {
    if (entry.cell < next || entry.cell >= cells) abort();
    next = entry.cell + uint64_t{1};
    writer.add(entry);
  });
  // What was read can be written.
  if (good && !writer.empty()) {
    IndexBlockWriter::Packed again = writer.finish();
    if (!reader.open(again.bytes, again.raw_bytes, own_peaks) ||
        !reader.for_each(cells, [](const IndexEntry&) {}))
      abort();
  }
  return 0;
}
