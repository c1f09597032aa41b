// SPDX-License-Identifier: Apache-2.0
#include "trace/append.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trace/file_reader.h"
#include "trace/file_writer.h"

namespace malloscope::trace {

Result<Tail> tail_of(const std::string& path) {
  auto reader = FileReader::open(path);
  if (!reader) return std::unexpected(reader.error());
  Tail tail;
  tail.bytes = sizeof wire::kFileMagic;
  Chunk chunk = {};
  for (;;) {
    auto next = reader->skip(&chunk);
    if (!next) return std::unexpected(next.error());
    if (*next != Next::kChunk) return tail;
    tail.bytes = reader->position();
    tail.last_tick = std::max(tail.last_tick, chunk.last_tick);
    tail.finished |= chunk.type == wire::ChunkType::kEnd;
    ++tail.chunks;
  }
}

Result<void> append_chunks(const std::string& path, const Tail& tail, wire::ChunkType type,
                           const std::vector<std::vector<uint8_t>>& payloads) {
  int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return fail(fmt::format("cannot write to {}: {}", path, strerror(errno)));
  FileWriter file(fd, path, tail.bytes, tail.chunks);
  for (const std::vector<uint8_t>& payload : payloads)
    file.append(type, payload, tail.last_tick, tail.last_tick, true);
  return file.close();
}

}  // namespace malloscope::trace
