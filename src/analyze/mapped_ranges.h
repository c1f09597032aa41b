// SPDX-License-Identifier: Apache-2.0
// What an image has mapped, as ranges of whole pages that do not overlap: mmap puts
// one down over whatever was there, munmap takes any part out, mremap moves one.

#pragma once

#include <cstdint>
#include <map>

#include "analyze/strand.h"
#include "wire/event.h"

namespace malloscope::analyze {

struct MappedRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  StackId stack = StackId::kNone;  // Of the call that mapped it, or moved or enlarged it last.
  StrandId strand = StrandId::kNone;
  bool inside_allocator = false;
};

class MappedRanges {
 public:
  // A call that failed changes nothing.
  void apply(const wire::Event& event, StrandId strand = StrandId::kNone);

  uint64_t bytes() const { return bytes_; }
  uint64_t allocator_bytes() const { return allocator_bytes_; }  // Of these, the allocator's own.

  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (const auto& [begin, range] : ranges_) visit(range);
  }

 private:
  using Map = std::map<uint64_t, MappedRange>;

  void insert(const MappedRange& range);
  void remove(uint64_t begin, uint64_t end);
  void count(const MappedRange& range, bool in);

  Map ranges_;  // By begin.
  uint64_t bytes_ = 0, allocator_bytes_ = 0;
  uint64_t break_ = 0;  // The end of the data segment, once sbrk or brk has told it.
};

}  // namespace malloscope::analyze
