// SPDX-License-Identifier: Apache-2.0
#include "trace/append.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "trace/file_reader.h"
#include "wire/encode.h"

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

static bool write_all(int fd, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    ssize_t done = write(fd, at, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    at += done;
    size -= static_cast<size_t>(done);
  }
  return true;
}

Result<void> append_chunks(const std::string& path, const Tail& tail, wire::ChunkType type,
                           const std::vector<std::vector<uint8_t>>& payloads) {
  auto trouble = [&] {
    return fail(fmt::format("{} could not be written: {}", path, strerror(errno)));
  };
  int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return trouble();
  auto end = static_cast<off_t>(tail.bytes);
  std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> zstd(ZSTD_createCCtx(), &ZSTD_freeCCtx);
  bool good = ftruncate(fd, end) == 0 && lseek(fd, 0, SEEK_END) == end;
  uint64_t sequence = tail.chunks;
  for (const std::vector<uint8_t>& payload : payloads) {
    if (!good) break;
    std::vector<uint8_t> packed = wire::compress(zstd.get(), payload);
    bool smaller = !packed.empty() && packed.size() < payload.size();
    const std::vector<uint8_t>& stored = smaller ? packed : payload;
    wire::ChunkHeader header;
    header.type = static_cast<uint16_t>(type);
    header.flags = smaller ? wire::kCompressed : 0;
    header.stored_bytes = static_cast<uint32_t>(stored.size());
    header.raw_bytes = static_cast<uint32_t>(payload.size());
    header.sequence = sequence++;
    header.first_tick = header.last_tick = tail.last_tick;
    header.checksum = wire::checksum(header, stored);
    good = write_all(fd, &header, sizeof header) && write_all(fd, stored.data(), stored.size());
  }
  int error = good ? 0 : errno;
  if (!good && ftruncate(fd, end) != 0) error = errno;
  if (close(fd) != 0 && good) error = errno;
  errno = error;
  return error == 0 ? Result<void>() : trouble();
}

}  // namespace malloscope::trace
