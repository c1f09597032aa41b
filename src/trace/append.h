// SPDX-License-Identifier: Apache-2.0
// Adds chunks behind the last whole one of a trace that is finished.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "wire/chunk.h"

namespace malloscope::trace {

// Where a trace ends.
struct Tail {
  uint64_t bytes = 0;   // Of whole chunks.
  uint64_t chunks = 0;  // The next one's sequence number.
  uint64_t last_tick = 0;
  bool finished = false;  // The recording has ended: nobody else writes to the file.
};
Result<Tail> tail_of(const std::string& path);

// Writes chunks of one type behind `tail`; what stood there is cut off. If that fails, the file
// ends at `tail` again.
Result<void> append_chunks(const std::string& path, const Tail& tail, wire::ChunkType type,
                           const std::vector<std::vector<uint8_t>>& payloads);

}  // namespace malloscope::trace
