// SPDX-License-Identifier: Apache-2.0
// A file that ends in the middle of a chunk was cut: the disk was full, the
// machine went down, it is still being written. That is not an error, and what
// comes before is whole. Bytes that do not fit their checksum are one.

#include "trace/file_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "wire/decode.h"

namespace malloscope::trace {

Result<FileReader> FileReader::open(const std::string& path) {
  FileReader reader;
  reader.path_ = path;
  reader.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info;
  if (reader.fd_ < 0 || fstat(reader.fd_, &info) != 0)
    return fail(fmt::format("cannot read {}: {}", path, strerror(errno)));
  if (!S_ISREG(info.st_mode)) return fail(fmt::format("{} is not a file", path));
  reader.bytes_ = static_cast<uint64_t>(info.st_size);
  char magic[sizeof wire::kFileMagic] = {};
  if (pread(reader.fd_, magic, sizeof magic, 0) != sizeof magic ||
      memcmp(magic, wire::kFileMagic, sizeof magic) != 0)
    return fail(fmt::format("{} is not a Malloscope trace{}", path,
                            std::string_view(magic, sizeof magic).starts_with("MWORK")
                                ? "; it is a workload, for malloscope replay"
                                : ""));
  reader.zstd_ = ZSTD_createDCtx();
  reader.rewind();
  return reader;
}

FileReader::FileReader(FileReader&& other) noexcept
    : fd_(other.fd_),
      path_(std::move(other.path_)),
      bytes_(other.bytes_),
      at_(other.at_),
      sequence_(other.sequence_),
      zstd_(other.zstd_) {
  other.fd_ = -1;
  other.zstd_ = nullptr;
}

FileReader::~FileReader() {
  if (fd_ >= 0) close(fd_);
  ZSTD_freeDCtx(zstd_);
}

void FileReader::rewind() {
  at_ = sizeof wire::kFileMagic;
  sequence_ = 0;
}

Result<Next> FileReader::header(wire::ChunkHeader* header) {
  if (at_ == bytes_) return Next::kEnd;
  if (bytes_ - at_ < sizeof *header) return Next::kCut;
  if (pread(fd_, header, sizeof *header, static_cast<off_t>(at_)) != sizeof *header)
    return fail(fmt::format("cannot read {}: {}", path_, strerror(errno)));
  if (header->magic != wire::kChunkMagic || header->sequence != sequence_ ||
      header->stored_bytes > wire::kMaxChunkBytes || header->raw_bytes > wire::kMaxChunkBytes)
    return fail(fmt::format("{} is damaged at byte {}: there should be a chunk", path_, at_));
  if (bytes_ - at_ - sizeof *header < header->stored_bytes) return Next::kCut;
  return Next::kChunk;
}

Result<Next> FileReader::skip(Chunk* chunk) {
  wire::ChunkHeader head;
  auto found = header(&head);
  if (!found || *found != Next::kChunk) return found;
  *chunk = {static_cast<wire::ChunkType>(head.type),
            at_,
            head.first_tick,
            head.last_tick,
            head.checksum,
            {}};
  before_ = at_;
  at_ += sizeof head + head.stored_bytes;
  ++sequence_;
  return found;
}

Result<Next> FileReader::next(Chunk* chunk) {
  wire::ChunkHeader head;
  auto found = header(&head);
  if (!found || *found != Next::kChunk) return found;
  stored_.resize(head.stored_bytes);
  ssize_t n = pread(fd_, stored_.data(), stored_.size(), static_cast<off_t>(at_ + sizeof head));
  if (n != static_cast<ssize_t>(stored_.size()))
    return fail(fmt::format("cannot read {}: {}", path_, strerror(errno)));
  if (wire::checksum(head, stored_) != head.checksum)
    return fail(fmt::format("{} is damaged at byte {}: the checksum is wrong", path_, at_));
  *chunk = {static_cast<wire::ChunkType>(head.type),
            at_,
            head.first_tick,
            head.last_tick,
            head.checksum,
            stored_};
  if (head.flags & wire::kCompressed) {
    auto plain = wire::decompress(zstd_, stored_, head.raw_bytes);
    if (!plain)
      return fail(fmt::format("{} is damaged at byte {}: it cannot be unpacked", path_, at_));
    raw_ = std::move(*plain);
    chunk->payload = raw_;
  }
  before_ = at_;
  at_ += sizeof head + head.stored_bytes;
  ++sequence_;
  return found;
}

}  // namespace malloscope::trace
