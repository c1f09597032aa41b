// SPDX-License-Identifier: Apache-2.0
// The columns of a chunk -> events. The bytes are anybody's: every count, size
// and distance is checked, and nothing larger than the chunk allows is allocated.

#pragma once

#include <zstd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "wire/chunk.h"
#include "wire/columns.h"

namespace malloscope::wire {

// A stretch of one thread's events, as it lies in `events` of the chunk.
struct DecodedRun {
  ImageId image;
  ThreadId thread;
  uint32_t first;
  uint32_t count;
};

struct DecodedChunk {
  std::vector<Event> events;
  std::vector<DecodedRun> runs;
};

class EventDecoder {
 public:
  EventDecoder();
  ~EventDecoder();
  EventDecoder(const EventDecoder&) = delete;
  EventDecoder& operator=(const EventDecoder&) = delete;

  // Appends the chunk's events and runs to `out`. False if the payload is not a possible one;
  // `out` then holds what was read so far.
  bool decode(std::span<const uint8_t> payload, DecodedChunk* out);

  // The same in parts, for whoever wants them while they are in the cache: after begin(), each
  // part() appends one run, which is the rest of a run or some of it (at least `least` events, and
  // all of its last tick), until there is no more().
  bool begin(std::span<const uint8_t> payload);
  bool of_one_run() const { return runs_.size() == 1; }
  bool more() const { return run_ < runs_.size(); }
  bool part(uint32_t least, DecodedChunk* out);

 private:
  struct Run {
    DecodedRun run;
    uint64_t tick;         // Of the last event decoded.
    uint32_t decoded = 0;  // Of `run.count` tags.
    // Told ahead: of the free, and of the event, to come.
    StackId free_stack = StackId::kNone;
    uint64_t alignment = 0;
  };
  bool all_used() const;
  bool decode_some(Run* run, uint32_t least, DecodedChunk* out);

  std::unique_ptr<Predictor> predictor_;
  std::vector<uint8_t> columns_[kColumns];
  const uint8_t *at_[kColumns], *end_[kColumns];  // In the columns.
  std::vector<Run> runs_;
  size_t run_ = 0;  // The one to go on with.
  ZSTD_DCtx* zstd_;
};

// The contents of one zstd frame that claims to hold `raw_bytes`; nothing if it lies.
std::optional<std::vector<uint8_t>> decompress(ZSTD_DCtx* context, std::span<const uint8_t> stored,
                                               uint64_t raw_bytes);

}  // namespace malloscope::wire
