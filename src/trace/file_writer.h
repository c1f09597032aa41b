// SPDX-License-Identifier: Apache-2.0
// Appends chunks to a trace file, and never leaves half an epoch behind.

#pragma once

#include <zstd.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "wire/chunk.h"

namespace malloscope::trace {

class FileWriter {
 public:
  // Takes over an open, empty file. `path` is for messages.
  FileWriter(int fd, std::string path);
  // Goes on behind so many bytes and chunks of one that is not empty; what stood there is cut off.
  FileWriter(int fd, std::string path, uint64_t bytes, uint64_t chunks);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void append(wire::ChunkType type, std::span<const uint8_t> payload, uint64_t first_tick,
              uint64_t last_tick, bool compress = false);

  // Everything appended so far is whole and may be kept.
  void end_epoch(uint64_t tick);

  // Writes the index after `end`, the payload of the kEnd chunk.
  void finish(std::span<const uint8_t> end, uint64_t tick);

  // Tells of what went wrong until now and in closing. Nothing may be appended after it.
  Result<void> close();

  uint64_t bytes() const { return written_; }
  // Set at the first write that failed; from then on nothing is written. A sentence.
  const std::string& error() const { return error_; }

 private:
  void write(wire::ChunkType type, uint16_t flags, std::span<const uint8_t> payload,
             uint64_t raw_bytes, uint64_t first_tick, uint64_t last_tick);

  int fd_;
  std::string path_;
  ZSTD_CCtx* zstd_;
  uint64_t written_ = 0;
  uint64_t whole_ = 0;  // Up to the end of the last epoch.
  uint64_t sequence_ = 0;
  uint64_t epoch_ = 0;
  std::string error_;
  struct Epoch {
    uint64_t offset;
    uint64_t tick;
  };
  std::vector<Epoch> index_;
};

}  // namespace malloscope::trace
