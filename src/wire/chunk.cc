// SPDX-License-Identifier: Apache-2.0

#include "wire/chunk.h"

#include <xxhash.h>

#include <cstring>

namespace malloscope::wire {

uint64_t checksum(ChunkHeader header, std::span<const uint8_t> payload) {
  header.checksum = 0;
  uint64_t seed = XXH3_64bits(&header, sizeof header);
  return XXH3_64bits_withSeed(payload.data(), payload.size(), seed);
}

}  // namespace malloscope::wire
