// SPDX-License-Identifier: Apache-2.0
// The recorder does not tell the old size of an mremap. It is taken to be the range that
// begins at the old address, up to its end: which is what programs pass, but for those that
// move a part of a mapping.

#include "analyze/mapped_ranges.h"

#include <algorithm>

namespace malloscope::analyze {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kTop = uint64_t{1} << 57;  // No address is above; keeps sums from wrapping.

uint64_t page_begin(uint64_t address) { return std::min(address, kTop) & ~(kPage - 1); }
uint64_t page_end(uint64_t address, uint64_t size) {
  return (std::min(address, kTop) + std::min(size, kTop) + kPage - 1) & ~(kPage - 1);
}

}  // namespace

void MappedRanges::count(const MappedRange& range, bool in) {
  uint64_t bytes = range.end - range.begin;
  in ? bytes_ += bytes : bytes_ -= bytes;
  if (range.inside_allocator) in ? allocator_bytes_ += bytes : allocator_bytes_ -= bytes;
}

void MappedRanges::insert(const MappedRange& range) {
  if (range.begin >= range.end) return;
  remove(range.begin, range.end);
  ranges_[range.begin] = range;
  count(range, true);
}

void MappedRanges::remove(uint64_t begin, uint64_t end) {
  auto at = ranges_.upper_bound(begin);
  if (at != ranges_.begin() && std::prev(at)->second.end > begin) --at;
  while (at != ranges_.end() && at->second.begin < end) {
    MappedRange old = at->second;
    at = ranges_.erase(at);
    count(old, false);
    MappedRange before = old, after = old;
    before.end = std::min(old.end, begin);
    after.begin = std::max(old.begin, end);
    for (const MappedRange& rest : {before, after}) {
      if (rest.begin >= rest.end) continue;
      ranges_[rest.begin] = rest;
      count(rest, true);
    }
    at = ranges_.lower_bound(old.end);
  }
}

void MappedRanges::apply(const wire::Event& event, StrandId strand) {
  if (event.flags & wire::kFailed) return;
  MappedRange fresh;
  fresh.begin = page_begin(event.address);
  fresh.end = page_end(event.address, event.size);
  fresh.stack = event.stack;
  fresh.strand = strand;
  fresh.inside_allocator = event.flags & wire::kInsideAllocator;
  switch (event.op) {
    case wire::Op::kMmap:
      insert(fresh);
      break;
    case wire::Op::kMunmap:
      if (fresh.begin < fresh.end) remove(fresh.begin, fresh.end);
      break;
    case wire::Op::kMremap: {
      auto old = ranges_.find(page_begin(event.other));
      if (old != ranges_.end()) {
        fresh.inside_allocator |= old->second.inside_allocator;
        remove(old->second.begin, uint64_t{old->second.end});
      }
      insert(fresh);
      break;
    }
    case wire::Op::kSbrk: {  // The address is the old break, the size how far it moved.
      uint64_t moved = event.address + event.size;
      break_ = moved;
      fresh.end = moved;
      fresh.begin = event.address;
      if (moved > event.address && moved < kTop) insert(fresh);
      if (moved < event.address) remove(moved, event.address);
      break;
    }
    case wire::Op::kBrk:
      if (break_ != 0 && event.address > break_ && event.address < kTop) {
        fresh.begin = break_;
        fresh.end = event.address;
        insert(fresh);
      } else if (event.address < break_) {
        remove(event.address, break_);
      }
      break_ = event.address;
      break;
    default:
      break;
  }
}

}  // namespace malloscope::analyze
