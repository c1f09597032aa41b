// SPDX-License-Identifier: Apache-2.0
// A trace file as its chunks, one after the other, each checked before it is shown.

#pragma once

#include <zstd.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "wire/chunk.h"

namespace malloscope::trace {

struct Chunk {
  wire::ChunkType type;
  uint64_t offset;  // Of the chunk in the file.
  uint64_t first_tick;
  uint64_t last_tick;
  uint64_t checksum;                 // Of header and payload, as the file has it.
  std::span<const uint8_t> payload;  // Decompressed; valid until the next call.
};

enum class Next {
  kChunk,
  kEnd,  // Of the file, at the end of a chunk.
  kCut,  // The file ends within a chunk.
};

class FileReader {
 public:
  static Result<FileReader> open(const std::string& path);
  FileReader(FileReader&& other) noexcept;
  ~FileReader();

  // The next chunk. An error if the bytes there are not one.
  Result<Next> next(Chunk* chunk);

  // The next chunk's header only; its payload is skipped unread.
  Result<Next> skip(Chunk* chunk);

  // Back to the chunk that was shown or skipped last.
  void step_back() { at_ = before_, --sequence_; }
  void rewind();
  uint64_t bytes() const { return bytes_; }
  uint64_t position() const { return at_; }  // Of the next chunk.

 private:
  FileReader() = default;
  Result<Next> header(wire::ChunkHeader* header);

  int fd_ = -1;
  std::string path_;
  uint64_t bytes_ = 0;
  uint64_t at_ = 0, before_ = 0;
  uint64_t sequence_ = 0;
  ZSTD_DCtx* zstd_ = nullptr;
  std::vector<uint8_t> stored_, raw_;
};

}  // namespace malloscope::trace
