// SPDX-License-Identifier: Apache-2.0
#include "replay/reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "replay/writer.h"

namespace malloscope::replay {
namespace {

bool read_at(int fd, uint64_t offset, void* bytes, size_t size) {
  auto* at = static_cast<uint8_t*>(bytes);
  while (size > 0) {
    ssize_t done = pread(fd, at, size, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    at += done;
    offset += static_cast<uint64_t>(done);
    size -= static_cast<size_t>(done);
  }
  return true;
}

// Of what a chunk of so many operations can need at most.
constexpr uint64_t kMaxRawBytes = uint64_t{kMaxChunkOps} * (1 + 5 * kMaxVarintBytes);

}  // namespace

bool is_workload(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  FileHead head = {};
  bool is =
      read_at(fd, 0, &head, sizeof head) && memcmp(head.magic, kWorkloadMagic, kMagicName) == 0;
  close(fd);
  return is;
}

Result<WorkloadReader> WorkloadReader::open(const std::string& path) {
  WorkloadReader reader;
  reader.path_ = path;
  reader.fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status = {};
  if (reader.fd_ < 0 || fstat(reader.fd_, &status) != 0)
    return fail(fmt::format("{} cannot be opened: {}", path, strerror(errno)));
  if (!S_ISREG(status.st_mode)) return fail(path + " is not a file");
  reader.bytes_ = static_cast<uint64_t>(status.st_size);

  FileHead head = {};
  if (!read_at(reader.fd_, 0, &head, sizeof head) ||
      memcmp(head.magic, kWorkloadMagic, kMagicName) != 0)
    return fail(path + " is not a workload (malloscope workload TRACE -o FILE makes one)");
  if (memcmp(head.magic, kWorkloadMagic, sizeof kWorkloadMagic) != 0)
    return fail(path + " is of another version of Malloscope: make it again from its trace");
  FileTail& tail = reader.tail_;
  std::string cut = path + " is cut or damaged: make it again from its trace";
  if (reader.bytes_ < sizeof head + sizeof tail ||
      !read_at(reader.fd_, reader.bytes_ - sizeof tail, &tail, sizeof tail) ||
      !std::equal(std::begin(tail.magic), std::end(tail.magic), kTailMagic))
    return fail(cut);
  uint64_t room = reader.bytes_ - sizeof tail;
  if (tail.tracks > kMaxTracks || tail.places_offset > room || tail.chunks > room ||
      room - tail.places_offset !=
          tail.chunks * sizeof(ChunkPlace) + tail.tracks * sizeof(TrackPlace))
    return fail(cut);
  reader.places_.resize(tail.chunks);
  reader.tracks_.resize(tail.tracks);
  uint64_t place_bytes = tail.chunks * sizeof(ChunkPlace);
  if (!read_at(reader.fd_, tail.places_offset, reader.places_.data(), place_bytes) ||
      !read_at(reader.fd_, tail.places_offset + place_bytes, reader.tracks_.data(),
               tail.tracks * sizeof(TrackPlace)) ||
      checksum(tail, reader.places_, reader.tracks_) != tail.checksum)
    return fail(cut);
  if (tail.slots > UINT32_MAX || !std::isfinite(tail.ns_per_tick) || tail.ns_per_tick <= 0)
    return fail(cut);
  std::vector<uint64_t> ops(tail.tracks);
  uint64_t all_ops = 0;
  for (const ChunkPlace& place : reader.places_) {
    uint64_t stored = 0, raw = 0;
    for (int i = 0; i < kColumns; ++i) {
      stored += place.stored_bytes[i];
      raw += place.raw_bytes[i];
    }
    if (place.offset > tail.places_offset || stored > tail.places_offset - place.offset ||
        stored > tail.largest_stored || raw > tail.largest_raw || raw > kMaxRawBytes ||
        place.ops > kMaxChunkOps || place.track >= tail.tracks)
      return fail(cut);
    ops[place.track] += place.ops;
    all_ops += place.ops;
  }
  // Memory is taken for what the tail says: never for more than the operations can need.
  if (tail.largest_stored > room || tail.largest_raw > kMaxRawBytes ||
      tail.slots > all_ops * kMostNewSlots)
    return fail(cut);
  for (uint32_t i = 0; i < tail.tracks; ++i) {
    const TrackPlace& track = reader.tracks_[i];
    if (track.ops != ops[i] ||
        track.most_free_slots > std::min(tail.slots, ops[i] * kMostNewSlots) ||
        track.births > std::min(std::bit_ceil(ops[i]), kMostBirths) ||
        (track.births & (track.births - 1)) != 0)
      return fail(cut);
  }
  uint64_t left = all_ops;
  for (uint64_t calls : tail.calls) {
    if (calls > left) return fail(cut);
    left -= calls;
  }
  if (tail.setup_calls > left) return fail(cut);
  return reader;
}

WorkloadReader::WorkloadReader(WorkloadReader&& other) noexcept { *this = std::move(other); }
WorkloadReader& WorkloadReader::operator=(WorkloadReader&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  std::swap(tail_, other.tail_);
  std::swap(places_, other.places_);
  std::swap(tracks_, other.tracks_);
  return *this;
}
WorkloadReader::~WorkloadReader() {
  if (fd_ >= 0) close(fd_);
}

Result<void> WorkloadReader::read(
    const std::function<void(uint32_t track, const Op& op)>& visit) const {
  std::vector<uint8_t> stored, raw;
  std::vector<Op> ops(256);
  auto broken = [&](const ChunkPlace& place) {
    return fail(
        fmt::format("{} is damaged at byte {}: make it again from its trace", path_, place.offset));
  };
  for (uint32_t track = 0; track < tail_.tracks; ++track) {
    std::vector<uint32_t> free_slots(tracks_[track].most_free_slots);
    std::vector<uint32_t> births(tracks_[track].births);
    TrackDecoder decoder(free_slots, births, {tail_.slots, tail_.tracks});
    for (const ChunkPlace& place : places_) {
      if (place.track != track) continue;
      size_t stored_bytes = 0, raw_bytes = 0;
      for (int i = 0; i < kColumns; ++i) {
        stored_bytes += place.stored_bytes[i];
        raw_bytes += place.raw_bytes[i];
      }
      stored.resize(stored_bytes);
      raw.resize(raw_bytes);
      if (!read_at(fd_, place.offset, stored.data(), stored_bytes) ||
          XXH3_64bits(stored.data(), stored_bytes) != place.checksum)
        return broken(place);
      std::span<const uint8_t> columns[kColumns];
      size_t from = 0, to = 0;
      for (int i = 0; i < kColumns; ++i) {
        size_t size = ZSTD_decompress(raw.data() + to, place.raw_bytes[i], stored.data() + from,
                                      place.stored_bytes[i]);
        if (ZSTD_isError(size) || size != place.raw_bytes[i]) return broken(place);
        columns[i] = {raw.data() + to, size};
        from += place.stored_bytes[i];
        to += size;
      }
      decoder.open(columns, place.ops);
      while (decoder.left() > 0) {
        size_t count = decoder.read(ops);
        for (size_t i = 0; i < count; ++i) visit(track, ops[i]);
        if (decoder.bad()) return broken(place);
      }
    }
  }
  return {};
}

}  // namespace malloscope::replay
