// SPDX-License-Identifier: Apache-2.0
// Where CFI is wrong or a stack has been switched, a step may lead anywhere. Two
// places can be read without asking: the thread's own stack, from the innermost
// place where we have ever met it outwards (the kernel never takes a stack back,
// but the main thread's grows downwards, so below that there may be nothing
// yet), and the page in which the walk began, because the program is running
// on it. Anything else - a coroutine's stack, a signal's, garbage - is asked of the
// kernel page by page, once, and believed until the program changes its maps.
//
// We ask with rt_sigprocmask and an operation that does not exist: the kernel
// copies the mask from the address first (EFAULT if it cannot), then refuses
// the operation (EINVAL). Nothing is changed, and since every threaded program
// needs that call, sandboxes allow it. Any other answer means that we may not ask.

#include "unwind/stack_reader.h"

#include <errno.h>

#include "base/syscall.h"
#include "unwind/counts.h"

namespace malloscope::unwind {

static constinit std::atomic<uint32_t> maps_epoch = 1;

void maps_changed() { maps_epoch.fetch_add(1, std::memory_order_release); }

Answer ask_readable(uintptr_t address) {
  if (sys::is_sandboxed()) return Answer::kForbidden;
  constexpr long kNoSuchOperation = -1;
  long answer = sys::call(SYS_rt_sigprocmask, kNoSuchOperation, static_cast<long>(address), 0, 8);
  if (answer == -EINVAL) return Answer::kYes;
  return answer == -EFAULT ? Answer::kNo : Answer::kForbidden;
}

void StackReader::set_bounds(StackBounds bounds) {
  bounds_ = bounds;
  own_low_ = bounds.high;
  own_bytes_ = 0;
}

MSCOPE_SLOW bool StackReader::is_readable(uintptr_t address) {
  if (address % sizeof(uintptr_t) != 0) return false;
  uintptr_t page = address & ~kPageMask;
  if (page == here_) return true;

  uint32_t maps = maps_epoch.load(std::memory_order_acquire);
  if (maps != maps_) {
    for (Range& range : ranges_) range = {};
    maps_ = maps;
  }
  for (const Range& range : ranges_)
    if (page - range.low < range.high - range.low) return true;

  if (ask_readable(address) != Answer::kYes) {
    count(counts.unreadable);
    return false;
  }
  for (Range& range : ranges_) {
    if (range.low == range.high) continue;
    if (page == range.high) return range.high += kPageMask + 1, true;
    if (page + kPageMask + 1 == range.low) return range.low = page, true;
  }
  ranges_[next_range_++ % kRanges] = {page, page + kPageMask + 1};
  return true;
}

}  // namespace malloscope::unwind
