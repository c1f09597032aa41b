// SPDX-License-Identifier: Apache-2.0
// What may be read, what is asked for, and what is refused.

#include "unwind/stack_reader.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

namespace malloscope::unwind {
namespace {

constexpr size_t kPage = 4096;

struct Pages {
  size_t count;
  char* memory;
  explicit Pages(size_t n)
      : count(n),
        memory(static_cast<char*>(mmap(nullptr, n * kPage, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~Pages() { munmap(memory, count * kPage); }
  uintptr_t at(size_t page, size_t offset = 0) const {
    return reinterpret_cast<uintptr_t>(memory) + page * kPage + offset;
  }
  void protect(size_t page, int protection) {
    mprotect(memory + page * kPage, kPage, protection);
    maps_changed();
  }
};

TEST(StackReader, AsksTheKernelWithoutChangingAnything) {
  Pages pages(2);
  pages.protect(1, PROT_NONE);
  sigset_t before, after;
  sigprocmask(SIG_SETMASK, nullptr, &before);
  EXPECT_EQ(ask_readable(pages.at(0)), Answer::kYes);
  EXPECT_EQ(ask_readable(pages.at(1)), Answer::kNo);
  EXPECT_EQ(ask_readable(8), Answer::kNo);
  EXPECT_EQ(ask_readable(UINTPTR_MAX - 7), Answer::kNo);
  sigprocmask(SIG_SETMASK, nullptr, &after);
  for (int signal = 1; signal < 65; ++signal)
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal));
}

TEST(StackReader, OwnsItsStackFromTheInnermostPlaceEverSeen) {
  Pages pages(4);
  StackReader reader = {};
  reader.set_bounds({pages.at(0), pages.at(4)});
  EXPECT_FALSE(reader.is_own(pages.at(3)));
  reader.enter(pages.at(2, 100 * 8));
  EXPECT_TRUE(reader.is_own(pages.at(2)));
  EXPECT_TRUE(reader.is_own(pages.at(3, kPage - 8)));
  EXPECT_FALSE(reader.is_own(pages.at(4)));
  EXPECT_FALSE(reader.is_own(pages.at(1, kPage - 8))) << "the stack may not have grown there yet";
  reader.enter(pages.at(3));
  EXPECT_TRUE(reader.is_own(pages.at(2))) << "it never shrinks";
  Pages others(1);
  reader.enter(others.at(0));
  EXPECT_TRUE(reader.is_own(pages.at(2)));
  EXPECT_FALSE(reader.is_own(others.at(0)));
}

TEST(StackReader, ReadsOnlyWholeAlignedWords) {
  Pages pages(2);
  StackReader reader = {};
  reader.set_bounds({pages.at(0), pages.at(1)});
  reader.enter(pages.at(0));
  uintptr_t value;
  EXPECT_TRUE(reader.load(pages.at(0, 8), &value));
  EXPECT_FALSE(reader.load(pages.at(0, 12), &value));
  EXPECT_FALSE(reader.load(pages.at(0, kPage - 4), &value));
  reader.enter(pages.at(1));
  EXPECT_FALSE(reader.load(pages.at(1, 4), &value));
}

TEST(StackReader, BelievesAnAnswerUntilTheMapsChange) {
  Pages pages(8);
  StackReader reader = {};
  uintptr_t value;
  for (size_t i : {1, 2, 0, 7, 5, 3}) EXPECT_TRUE(reader.load(pages.at(i, 8 * i), &value));
  pages.protect(2, PROT_NONE);
  EXPECT_FALSE(reader.load(pages.at(2), &value));
  EXPECT_TRUE(reader.load(pages.at(1), &value));
  EXPECT_TRUE(reader.load(pages.at(3), &value));
  EXPECT_FALSE(reader.load(pages.at(2), &value)) << "a refusal is not joined with its neighbours";
  pages.protect(2, PROT_READ);
  EXPECT_TRUE(reader.load(pages.at(2), &value));
}

}  // namespace
}  // namespace malloscope::unwind
