// SPDX-License-Identifier: Apache-2.0
// What an allocator really sets aside for a request. The trace has only what was asked
// for; the rest follows from each allocator's rounding, exactly for glibc, for the others from
// the spacing of their size classes. The formulas are in docs/views.md.

#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "trace/tables.h"

namespace malloscope::analyze {

enum class Allocator : uint8_t { kGlibc, kJemalloc, kTcmalloc, kMimalloc };
inline constexpr size_t kAllocators = 4;

// By its modules: those of another allocator than libc's are linked or preloaded.
Allocator allocator_of(const trace::Image& image);
std::string_view allocator_name(Allocator allocator);

// At least `size`. The address tells glibc's mapped blocks from the others.
uint64_t usable_size(Allocator allocator, uint64_t address, uint64_t size);

// For each of them: which one it was is known only when the trace has been read.
using UsableBytes = std::array<uint64_t, kAllocators>;
inline UsableBytes usable_sizes(uint64_t address, uint64_t size) {
  UsableBytes bytes;
  for (size_t i = 0; i < kAllocators; ++i)
    bytes[i] = usable_size(static_cast<Allocator>(i), address, size);
  return bytes;
}

}  // namespace malloscope::analyze
