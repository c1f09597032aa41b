// SPDX-License-Identifier: Apache-2.0
// Two looks at the file. The first reads headers only, to find the last whole epoch.

#include "trace/whole_chunks.h"

#include <fmt/format.h>

namespace malloscope::trace {

using wire::ChunkType;

Result<WholeChunks> WholeChunks::open(const std::string& path, const Look& look) {
  auto reader = FileReader::open(path);
  if (!reader) return std::unexpected(reader.error());
  WholeChunks chunks(std::move(*reader), path);
  Chunk chunk = {};
  for (;;) {
    auto next = chunks.reader_.skip(&chunk);
    if (!next) return std::unexpected(next.error());
    if (*next != Next::kChunk) {
      chunks.cut_ = *next == Next::kCut;
      break;
    }
    if (chunk.type == ChunkType::kEpochEnd) chunks.whole_ = chunk.offset + 1;
    if (chunk.type == ChunkType::kImageStart) {
      chunks.reader_.step_back();
      next = chunks.reader_.next(&chunk);
      if (!next) return std::unexpected(next.error());
    }
    if (!look(chunk)) return chunks.nonsense(chunk);
  }
  chunks.reader_.rewind();
  return chunks;
}

Result<bool> WholeChunks::next(Chunk* chunk) {
  for (;;) {
    auto next = reader_.skip(chunk);
    if (!next) return std::unexpected(next.error());
    if (*next != Next::kChunk) return false;
    // Beyond the last whole epoch only the end is of interest, and names that were added later.
    // If half an epoch comes first, that was no proper end.
    bool beyond = chunk->offset >= whole_;
    bool wanted = !beyond || chunk->type == ChunkType::kNames ||
                  (chunk->type == ChunkType::kEnd && !half_epoch_);
    if (!events_ && !beyond &&
        (chunk->type == ChunkType::kEvents || chunk->type == ChunkType::kMappings))
      continue;
    if (!wanted && !ended_) {
      half_epoch_ = true;
      continue;
    }
    reader_.step_back();
    next = reader_.next(chunk);
    if (!next) return std::unexpected(next.error());
    if (!wanted) continue;  // It was only to be checked.
    ended_ |= chunk->type == ChunkType::kEnd;
    return true;
  }
}

std::unexpected<Error> WholeChunks::nonsense(const Chunk& chunk) const {
  return fail(
      fmt::format("{} is damaged at byte {}: the chunk makes no sense", path_, chunk.offset));
}

std::unexpected<Error> WholeChunks::nothing() const {
  return fail(fmt::format("{} ends before its first whole chunk; nothing was recorded", path_));
}

std::string WholeChunks::why_no_end() const {
  if (ended_) return {};
  return cut_ ? "the file ends in the middle of a chunk: it was cut"
              : "the recording did not finish: the collector was killed, or is still writing";
}

}  // namespace malloscope::trace
