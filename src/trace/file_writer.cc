// SPDX-License-Identifier: Apache-2.0
// When a write fails (the disk is full, a limit is reached) the file is cut back
// to its last whole epoch and nothing more is written: what is there stays
// readable, and the program that is being recorded never notices.

#include "trace/file_writer.h"

#include <errno.h>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "wire/encode.h"

namespace malloscope::trace {

FileWriter::FileWriter(int fd, std::string path)
    : fd_(fd), path_(std::move(path)), zstd_(ZSTD_createCCtx()) {
  if (::write(fd_, wire::kFileMagic, sizeof wire::kFileMagic) != sizeof wire::kFileMagic)
    error_ = fmt::format("cannot write to {}: {}", path_, strerror(errno));
  written_ = whole_ = sizeof wire::kFileMagic;
}

FileWriter::FileWriter(int fd, std::string path, uint64_t bytes, uint64_t chunks)
    : fd_(fd),
      path_(std::move(path)),
      zstd_(ZSTD_createCCtx()),
      written_(bytes),
      whole_(bytes),
      sequence_(chunks) {
  auto end = static_cast<off_t>(bytes);
  if (ftruncate(fd_, end) != 0 || lseek(fd_, 0, SEEK_END) != end)
    error_ = fmt::format("cannot write to {}: {}", path_, strerror(errno));
}

FileWriter::~FileWriter() {
  ZSTD_freeCCtx(zstd_);
  if (fd_ >= 0) ::close(fd_);
}

Result<void> FileWriter::close() {
  if (::close(std::exchange(fd_, -1)) != 0 && error_.empty())
    error_ = fmt::format("cannot write to {}: {}", path_, strerror(errno));
  return error_.empty() ? Result<void>() : fail(error_);
}

void FileWriter::append(wire::ChunkType type, std::span<const uint8_t> payload, uint64_t first_tick,
                        uint64_t last_tick, bool compress) {
  constexpr size_t kWorthCompressing = 64;
  if (compress && payload.size() >= kWorthCompressing) {
    std::vector<uint8_t> packed = wire::compress(zstd_, payload);
    if (!packed.empty() && packed.size() < payload.size())
      return write(type, wire::kCompressed, packed, payload.size(), first_tick, last_tick);
  }
  write(type, 0, payload, payload.size(), first_tick, last_tick);
}

void FileWriter::write(wire::ChunkType type, uint16_t flags, std::span<const uint8_t> payload,
                       uint64_t raw_bytes, uint64_t first_tick, uint64_t last_tick) {
  if (!error_.empty()) return;
  wire::ChunkHeader header;
  header.type = static_cast<uint16_t>(type);
  header.flags = flags;
  header.stored_bytes = static_cast<uint32_t>(payload.size());
  header.raw_bytes = static_cast<uint32_t>(raw_bytes);
  header.sequence = sequence_++;
  header.first_tick = first_tick;
  header.last_tick = last_tick;
  header.checksum = wire::checksum(header, payload);

  iovec parts[2] = {{&header, sizeof header},
                    {const_cast<uint8_t*>(payload.data()), payload.size()}};
  size_t part = 0;
  while (part < 2) {
    ssize_t done = writev(fd_, parts + part, static_cast<int>(2 - part));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      error_ = fmt::format("cannot write to {}: {}", path_, strerror(done < 0 ? errno : ENOSPC));
      if (ftruncate(fd_, static_cast<off_t>(whole_)) == 0) lseek(fd_, 0, SEEK_END);
      written_ = whole_;
      return;
    }
    for (size_t left = static_cast<size_t>(done); part < 2 && left >= parts[part].iov_len; ++part)
      left -= parts[part].iov_len, done -= static_cast<ssize_t>(parts[part].iov_len);
    if (part < 2) {
      parts[part].iov_base = static_cast<char*>(parts[part].iov_base) + done;
      parts[part].iov_len -= static_cast<size_t>(done);
    }
  }
  written_ += sizeof header + payload.size();
}

void FileWriter::end_epoch(uint64_t tick) {
  wire::Packer end;
  end.number(epoch_).number(tick);
  append(wire::ChunkType::kEpochEnd, end.result(), tick, tick);
  if (!error_.empty()) return;
  index_.push_back({whole_, tick});
  whole_ = written_;
  ++epoch_;
}

void FileWriter::finish(std::span<const uint8_t> end, uint64_t tick) {
  append(wire::ChunkType::kEnd, end, tick, tick);
  wire::Packer index;
  index.number(index_.size());
  uint64_t offset = 0, at = 0;
  for (const Epoch& epoch : index_) {
    index.number(epoch.offset - offset).number(zigzag(static_cast<int64_t>(epoch.tick - at)));
    offset = epoch.offset;
    at = epoch.tick;
  }
  append(wire::ChunkType::kIndex, index.result(), tick, tick, true);
  if (error_.empty()) whole_ = written_;
}

}  // namespace malloscope::trace
