// SPDX-License-Identifier: Apache-2.0
// The operations of one track, a few hundred decoded ahead. Its memory is taken at the beginning.

#pragma once

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include <cstdint>

#include "replay/codec.h"
#include "replay/player_base.h"

namespace malloscope::replay {

extern const ChunkPlace* places;
extern const TrackPlace* track_places;
extern uint32_t* next_chunk;  // Of the same track; by chunk. From 1 on; 0: none.

class Feed {
 public:
  static constexpr size_t kOpsAhead = 512;

  Feed(uint32_t track, uint32_t first_chunk);

  // Decodes the next ones into ops(): how many, of which 0 may also be an empty chunk. Only if
  // there is more.
  size_t refill(uint64_t done);
  bool has_more() const { return decoder_.left() > 0 || chunk_ != 0; }
  const Op* ops() const { return ops_; }

 private:
  void load(const ChunkPlace& place, uint64_t done);

  uint32_t number_;
  TrackDecoder decoder_;
  uint32_t chunk_;  // The next one.
  uint8_t* stored_;
  uint8_t* raw_;
  Op* ops_;
  ZSTD_DCtx* zstd_;
};

}  // namespace malloscope::replay
