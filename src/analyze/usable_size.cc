// SPDX-License-Identifier: Apache-2.0
#include "analyze/usable_size.h"

#include <algorithm>

namespace malloscope::analyze {
namespace {

constexpr uint64_t kPage = 4096;
// A size beyond this is no block's; it is left as it is, so that no sum wraps.
constexpr uint64_t kNonsense = uint64_t{1} << 56;

uint64_t round_up(uint64_t size, uint64_t step) { return (size + step - 1) & ~(step - 1); }

// A chunk is the block and 8 bytes before it, in steps of 16, at least 32. From 128 KiB on it may
// be a mapping of its own, which begins 16 bytes before the block; the threshold moves while the
// program runs, the place in the page does not.
uint64_t glibc(uint64_t address, uint64_t size) {
  constexpr uint64_t kMapped = 128 << 10;
  if (size >= kMapped && address % kPage == 16) return round_up(size + 16, kPage) - 16;
  return std::max<uint64_t>(24, round_up(size + 8, 16) - 8);
}

// Classes that divide each doubling into `parts` equal steps, none finer than `finest`.
uint64_t spaced(uint64_t size, uint64_t parts, uint64_t finest) {
  size = std::max<uint64_t>(size, 1);
  uint64_t doubling = uint64_t{1} << (63 - __builtin_clzll(std::max<uint64_t>(size - 1, 1)));
  return round_up(size, std::max(doubling / parts, finest));
}

}  // namespace

uint64_t usable_size(Allocator allocator, uint64_t address, uint64_t size) {
  if (size >= kNonsense) return size;
  switch (allocator) {
    case Allocator::kGlibc:
      return glibc(address, size);
    case Allocator::kJemalloc:
      return size <= 8 ? 8 : spaced(size, 4, 16);
    case Allocator::kTcmalloc:
      if (size > 256 << 10) return round_up(size, 2 * kPage);
      return size <= 8 ? 8 : spaced(size, 8, 16);
    case Allocator::kMimalloc:
      return size <= 8 ? 8 : spaced(size, 8, 16);
  }
  return size;
}

Allocator allocator_of(const trace::Image& image) {
  for (const trace::Module& module : image.modules) {
    std::string_view name = module.path;
    if (size_t slash = name.rfind('/'); slash != std::string_view::npos)
      name.remove_prefix(slash + 1);
    if (name.starts_with("libjemalloc")) return Allocator::kJemalloc;
    if (name.starts_with("libtcmalloc")) return Allocator::kTcmalloc;
    if (name.starts_with("libmimalloc")) return Allocator::kMimalloc;
  }
  return Allocator::kGlibc;
}

std::string_view allocator_name(Allocator allocator) {
  constexpr std::string_view kNames[kAllocators] = {"glibc", "jemalloc", "tcmalloc", "mimalloc"};
  return kNames[static_cast<size_t>(allocator)];
}

}  // namespace malloscope::analyze
