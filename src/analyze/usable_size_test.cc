// SPDX-License-Identifier: Apache-2.0
// glibc's rounding is compared with glibc itself.
#include "analyze/usable_size.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <thread>

namespace malloscope::analyze {
namespace {

TEST(UsableSize, IsGlibcs) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer's malloc is not glibc's";
#endif
  // In a thread, which has an arena of its own: what other tests have left in the first one may
  // have a hole at the start of a page, where a large block looks as if it were mapped.
  std::thread([] {
    for (size_t size = 0; size < 400'000; size += size < 2000 ? 1 : 997) {
      void* block = std::malloc(size);
      // A chunk may be given out a little larger where the rest would be too small for one.
      size_t real = malloc_usable_size(block);
      uint64_t computed = usable_size(Allocator::kGlibc, reinterpret_cast<uintptr_t>(block), size);
      EXPECT_GE(real, computed) << size;
      EXPECT_LE(real, computed + 16) << size;
      std::free(block);
    }
  }).join();
}

TEST(UsableSize, FollowsTheSpacingOfTheOthers) {
  using enum Allocator;
  struct {
    Allocator allocator;
    uint64_t size, usable;
  } cases[] = {{kJemalloc, 1, 8},       {kJemalloc, 9, 16},
               {kJemalloc, 17, 32},     {kJemalloc, 128, 128},
               {kJemalloc, 129, 160},   {kJemalloc, 257, 320},
               {kJemalloc, 320, 320},   {kJemalloc, 5000, 5120},
               {kTcmalloc, 1025, 1152}, {kTcmalloc, 300'000, 303'104},
               {kMimalloc, 129, 144},   {kMimalloc, 1025, 1152}};
  for (auto& c : cases)
    EXPECT_EQ(usable_size(c.allocator, 4096, c.size), c.usable)
        << allocator_name(c.allocator) << " " << c.size;
}

TEST(UsableSize, IsNeverLessThanTheRequest) {
  for (uint64_t size : {uint64_t{0}, uint64_t{1}, uint64_t{131'072}, uint64_t{1} << 40, UINT64_MAX})
    for (uint64_t usable : usable_sizes(16, size)) EXPECT_GE(usable, size);
}

TEST(UsableSize, KnowsTheAllocatorByItsLibrary) {
  trace::Image image;
  image.modules = {{0, 1, 0, 0, "/home/libjemalloc/app", ""}};
  EXPECT_EQ(allocator_of(image), Allocator::kGlibc);
  image.modules.push_back({0, 1, 0, 0, "/usr/lib/libjemalloc.so.2", ""});
  EXPECT_EQ(allocator_of(image), Allocator::kJemalloc);
}

}  // namespace
}  // namespace malloscope::analyze
