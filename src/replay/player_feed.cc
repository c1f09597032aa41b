// SPDX-License-Identifier: Apache-2.0
#include "replay/player_feed.h"

namespace malloscope::replay {

const ChunkPlace* places;
const TrackPlace* track_places;
uint32_t* next_chunk;

Feed::Feed(uint32_t track, uint32_t first_chunk)
    : number_(track),
      decoder_(own_numbers(track_places[track].most_free_slots),
               own_numbers(track_places[track].births), {tail.slots, tail.tracks}),
      chunk_(first_chunk),
      stored_(static_cast<uint8_t*>(own_memory(tail.largest_stored))),
      raw_(static_cast<uint8_t*>(own_memory(tail.largest_raw))),
      ops_(static_cast<Op*>(own_memory(kOpsAhead * sizeof(Op)))) {
  size_t workspace = ZSTD_estimateDCtxSize();
  zstd_ = ZSTD_initStaticDCtx(own_memory(workspace), workspace);
  if (!zstd_) give_up(Fault::kNoMemory);
}

size_t Feed::refill(uint64_t done) {
  if (decoder_.left() == 0) {
    load(places[chunk_ - 1], done);
    chunk_ = next_chunk[chunk_ - 1];
  }
  size_t count = decoder_.read({ops_, kOpsAhead});
  if (decoder_.bad()) give_up(Fault::kBadWorkload, 0, 0, number_, done);
  return count;
}

void Feed::load(const ChunkPlace& place, uint64_t done) {
  size_t stored = 0;
  for (uint32_t bytes : place.stored_bytes) stored += bytes;
  read_workload(place.offset, stored_, stored);
  std::span<const uint8_t> columns[kColumns];
  size_t from = 0, to = 0;
  for (int i = 0; i < kColumns; ++i) {
    size_t size = ZSTD_decompressDCtx(zstd_, raw_ + to, place.raw_bytes[i], stored_ + from,
                                      place.stored_bytes[i]);
    if (ZSTD_isError(size) || size != place.raw_bytes[i])
      give_up(Fault::kBadWorkload, 0, 0, number_, done);
    columns[i] = {raw_ + to, size};
    from += place.stored_bytes[i];
    to += size;
  }
  decoder_.open(columns, place.ops);
}

}  // namespace malloscope::replay
