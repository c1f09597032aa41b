// SPDX-License-Identifier: Apache-2.0
// Writes a workload: operations in, chunks out, a chunk of each track in memory at a time.

#pragma once

#include <zstd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "replay/codec.h"

namespace malloscope::replay {

// Of all that stands behind the chunks.
uint64_t checksum(FileTail tail, std::span<const ChunkPlace> places,
                  std::span<const TrackPlace> tracks);

class WorkloadWriter {
 public:
  // Takes over an open, empty file. `path` is for messages.
  WorkloadWriter(int fd, std::string path);
  ~WorkloadWriter();
  WorkloadWriter(const WorkloadWriter&) = delete;
  WorkloadWriter& operator=(const WorkloadWriter&) = delete;

  // Tracks are numbered from 0 on, in the order of their first operation. A `fresh` slot is the
  // one that the track's stack has on top: see workload.h.
  void append(uint32_t track, const Op& op);

  // Fills in what the writer knows of the tail and the tracks, writes what is left, and closes the
  // file.
  Result<FileTail> finish(FileTail tail, std::vector<TrackPlace> tracks);

  uint64_t bytes() const { return written_; }

 private:
  struct Track {
    std::vector<uint8_t> columns[kColumns];
    uint32_t ops = 0;
    uint64_t tick = 0, last_wait = 0;
    uint64_t births = 0;
  };
  // Who made a slot's block, and which of its maker's it was.
  struct Birth {
    uint32_t track = 0;
    uint64_t number = 0;  // From 1 on.
  };

  void give_birth(uint32_t track, uint32_t slot);
  uint8_t put_age(uint32_t track, uint32_t slot);
  void end_chunk(uint32_t track);
  void write(const void* bytes, size_t size);

  int fd_;
  std::string path_;
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> zstd_;
  std::vector<std::unique_ptr<Track>> tracks_;
  std::vector<Birth> births_;  // By slot.
  std::vector<ChunkPlace> places_;
  std::vector<uint8_t> stored_;
  uint64_t written_ = 0;
  uint64_t largest_stored_ = 0, largest_raw_ = 0;
  std::string error_;
};

}  // namespace malloscope::replay
