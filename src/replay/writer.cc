// SPDX-License-Identifier: Apache-2.0
#include "replay/writer.h"

#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

namespace malloscope::replay {
namespace {

// A workload is written once and read many times.
constexpr int kLevel = 6;

void put(std::vector<uint8_t>* column, uint64_t value) {
  size_t old = column->size();
  column->resize(old + kMaxVarintBytes);
  column->resize(static_cast<size_t>(put_varint(column->data() + old, value) - column->data()));
}

void put_slot(std::vector<uint8_t> (&columns)[kColumns], uint64_t number) {
  columns[kSlotLowColumn].push_back(static_cast<uint8_t>(number));
  columns[kSlotMiddleColumn].push_back(static_cast<uint8_t>(number >> 8));
  put(&columns[kSlotHighColumn], number >> 16);
}

}  // namespace

uint64_t checksum(FileTail tail, std::span<const ChunkPlace> places,
                  std::span<const TrackPlace> tracks) {
  tail.checksum = 0;
  std::fill(std::begin(tail.magic), std::end(tail.magic), '\0');
  uint64_t seed = XXH3_64bits(places.data(), places.size_bytes());
  seed = XXH3_64bits_withSeed(tracks.data(), tracks.size_bytes(), seed);
  return XXH3_64bits_withSeed(&tail, sizeof tail, seed);
}

WorkloadWriter::WorkloadWriter(int fd, std::string path)
    : fd_(fd), path_(std::move(path)), zstd_(ZSTD_createCCtx(), &ZSTD_freeCCtx) {
  ZSTD_CCtx_setParameter(zstd_.get(), ZSTD_c_compressionLevel, kLevel);
  FileHead head;
  std::copy(std::begin(kWorkloadMagic), std::end(kWorkloadMagic), head.magic);
  write(&head, sizeof head);
}

WorkloadWriter::~WorkloadWriter() {
  if (fd_ >= 0) close(fd_);
}

void WorkloadWriter::give_birth(uint32_t track, uint32_t slot) {
  if (slot >= births_.size())
    births_.resize(std::max<size_t>(slot + size_t{1}, births_.size() * 2));
  births_[slot] = {track, ++tracks_[track]->births};
}

// Returns what the tag says of it.
uint8_t WorkloadWriter::put_age(uint32_t track, uint32_t slot) {
  Track& self = *tracks_[track];
  const Birth& birth = births_[slot];
  uint64_t age = self.births - birth.number;
  if (birth.track != track || age >= kMostBirths) {
    put_slot(self.columns, slot);
    return kElsewhere;
  }
  if (age < kFresh) return static_cast<uint8_t>(age);
  put_slot(self.columns, age - kFresh);
  return kOld;
}

void WorkloadWriter::append(uint32_t number, const Op& op) {
  while (number >= tracks_.size()) tracks_.push_back(std::make_unique<Track>());
  Track& track = *tracks_[number];
  std::vector<uint8_t>& sizes = track.columns[kSizeColumn];
  auto tag = static_cast<uint8_t>(op.kind);
  if (is_call(op.kind)) {
    put(&track.columns[kTimeColumn], op.tick - track.tick);
    track.tick = op.tick;
  }
  switch (op.kind) {
    case OpKind::kMalloc:
    case OpKind::kCalloc:
      put(&sizes, op.size);
      give_birth(number, op.slot);
      break;
    case OpKind::kMemalign:
    case OpKind::kAlignedAlloc:
    case OpKind::kPosixMemalign:
      put(&sizes, op.size);
      put(&sizes, op.alignment_log2);
      give_birth(number, op.slot);
      break;
    case OpKind::kRealloc:
    case OpKind::kReallocToFree:
    case OpKind::kFree: {
      uint8_t age = op.fresh ? kFresh : put_age(number, op.slot);
      tag = static_cast<uint8_t>(tag | age << kAgeShift);
      if (op.kind == OpKind::kRealloc) {
        put(&sizes, op.size);
        give_birth(number, op.slot);
      }
      break;
    }
    case OpKind::kWait:
      put(&sizes, zigzag(static_cast<int64_t>(op.size - track.last_wait)));
      track.last_wait = op.size;
      put_slot(track.columns, op.track);
      break;
    case OpKind::kNewSlots:
      put(&sizes, op.size);
      put_slot(track.columns, op.slot);
      break;
    case OpKind::kDropSlots:
      put(&sizes, op.size);
      break;
    case OpKind::kTakeSlot:
      put_slot(track.columns, op.slot);
      break;
    case OpKind::kFreeNull:
    case OpKind::kNextThread:
    case OpKind::kBegin:
      break;
  }
  track.columns[kTagColumn].push_back(tag);
  if (++track.ops == kMaxChunkOps) end_chunk(number);
}

void WorkloadWriter::end_chunk(uint32_t number) {
  Track& track = *tracks_[number];
  if (track.ops == 0) return;
  ChunkPlace place;
  place.offset = written_;
  place.ops = track.ops;
  place.track = number;
  stored_.clear();
  uint64_t raw = 0;
  for (int i = 0; i < kColumns; ++i) {
    std::vector<uint8_t>& column = track.columns[i];
    size_t old = stored_.size();
    stored_.resize(old + ZSTD_compressBound(column.size()));
    size_t size = ZSTD_compress2(zstd_.get(), stored_.data() + old, stored_.size() - old,
                                 column.data(), column.size());
    if (ZSTD_isError(size)) {
      error_ = fmt::format("zstd cannot compress: {}", ZSTD_getErrorName(size));
      size = 0;
    }
    stored_.resize(old + size);
    place.stored_bytes[i] = static_cast<uint32_t>(size);
    place.raw_bytes[i] = static_cast<uint32_t>(column.size());
    raw += column.size();
    column.clear();
  }
  place.checksum = XXH3_64bits(stored_.data(), stored_.size());
  largest_stored_ = std::max<uint64_t>(largest_stored_, stored_.size());
  largest_raw_ = std::max(largest_raw_, raw);
  places_.push_back(place);
  write(stored_.data(), stored_.size());
  track.ops = 0;
}

void WorkloadWriter::write(const void* bytes, size_t size) {
  const auto* at = static_cast<const uint8_t*>(bytes);
  while (size > 0 && error_.empty()) {
    ssize_t done = ::write(fd_, at, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) {
      error_ = fmt::format("{} cannot be written: {}", path_, strerror(done < 0 ? errno : ENOSPC));
      return;
    }
    at += done;
    size -= static_cast<size_t>(done);
    written_ += static_cast<size_t>(done);
  }
}

Result<FileTail> WorkloadWriter::finish(FileTail tail, std::vector<TrackPlace> tracks) {
  for (uint32_t i = 0; i < tracks_.size(); ++i) {
    end_chunk(i);
    if (uint64_t births = tracks_[i]->births)
      tracks[i].births = std::min(std::bit_ceil(births), kMostBirths);
  }
  tail.chunks = places_.size();
  tail.places_offset = written_;
  tail.tracks = static_cast<uint32_t>(tracks.size());
  tail.largest_stored = largest_stored_;
  tail.largest_raw = largest_raw_;
  size_t place_bytes = places_.size() * sizeof(ChunkPlace);
  size_t track_bytes = tracks.size() * sizeof(TrackPlace);
  tail.checksum = checksum(tail, places_, tracks);
  std::copy(std::begin(kTailMagic), std::end(kTailMagic), tail.magic);
  write(places_.data(), place_bytes);
  write(tracks.data(), track_bytes);
  write(&tail, sizeof tail);
  int fd = std::exchange(fd_, -1);
  if (close(fd) != 0 && error_.empty())
    error_ = fmt::format("{} cannot be written: {}", path_, strerror(errno));
  if (!error_.empty()) return fail(error_);
  return tail;
}

}  // namespace malloscope::replay
