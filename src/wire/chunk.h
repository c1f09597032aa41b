// SPDX-License-Identifier: Apache-2.0
// The trace file: a sequence of chunks, each with its own checksum, appended and
// never changed. docs/trace_format.md describes every byte.
//
// Chunks come in epochs. An epoch ends with a kEpochEnd chunk; what follows the
// last one in a file that was cut is not looked at, so that a reader never sees
// half an epoch.

#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "base/packing.h"

namespace malloscope::wire {

inline constexpr char kFileMagic[8] = {'M', 'S', 'C', 'O', 'P', 'E', '\r', '\n'};
inline constexpr uint32_t kFormatVersion = 1;
inline constexpr uint32_t kChunkMagic = 0x6b63534d;  // "MSck"

enum class ChunkType : uint16_t {
  kHeader = 1,  // First in every file.
  kImageStart = 2,
  kImageEnd = 3,
  kThread = 4,  // A thread's first appearance, or its new name.
  kModule = 5,
  kStacks = 6,
  kEvents = 7,
  kMappings = 8,
  kRss = 9,
  kNote = 10,
  kEpochEnd = 11,
  kEnd = 12,    // The recording was finished properly.
  kIndex = 13,  // Where the epochs begin; can be rebuilt by reading.
  kNames = 14,  // Names of frames, added later by `symbolize`.
  kRun = 15,    // Of a merged trace: which recording some of its images come from.
  kVm = 16,
  kMarks = 17,
  kCpu = 18,
};

inline constexpr uint16_t kCompressed = 1;  // The payload is one zstd frame.

struct ChunkHeader {
  uint32_t magic = kChunkMagic;
  uint16_t type = 0;
  uint16_t flags = 0;
  uint32_t stored_bytes = 0;  // Of the payload in the file ...
  uint32_t raw_bytes = 0;     // ... and once decompressed.
  uint64_t sequence = 0;      // Counts the chunks of the file from 0.
  uint64_t first_tick = 0;
  uint64_t last_tick = 0;
  uint64_t checksum = 0;  // XXH3 of the header with this field 0, then of the payload.
};
static_assert(sizeof(ChunkHeader) == 48);

// No chunk is larger, so that a reader knows how much memory a hostile one may ask for.
inline constexpr uint32_t kMaxChunkBytes = 16 << 20;
inline constexpr uint32_t kMaxChunkEvents = 1 << 16;
// Nor is an epoch: it cannot hold more than the lanes do.
inline constexpr uint64_t kMaxEpochEvents = 5'300'000;

uint64_t checksum(ChunkHeader header, std::span<const uint8_t> payload);

using malloscope::Packer;
using malloscope::Unpacker;

}  // namespace malloscope::wire
