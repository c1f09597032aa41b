// SPDX-License-Identifier: Apache-2.0
// Every 61st captured stack is unwound by libgcc too, and must have the same path
// hash: however the memo came by it, whole, in part or by a leaf, the hash names the path.
//
// The counts are kept in a file that the test has made and named in the environment, mapped by
// every process of the run.

#include <stdio.h>
#include <stdlib.h>
#include <unwind.h>

#include <atomic>

#include "base/syscall.h"
#include "record/self_check.h"
#include "unwind/walk.h"

namespace malloscope::record {
namespace {

constexpr uint64_t kEvery = 61;
constexpr size_t kFileBytes = 1 << 16;

struct Findings {
  std::atomic<uint64_t> checked, wrong, frames, text_used;
  char text[kFileBytes - 32];
};

Findings* open_findings() {
  const char* path = getenv("MSCOPE_SELF_CHECK");
  if (!path) return nullptr;
  int fd = static_cast<int>(sys::call(SYS_openat, AT_FDCWD, sys::arg(path), O_RDWR | O_CLOEXEC, 0));
  if (fd < 0) return nullptr;
  auto* findings = static_cast<Findings*>(sys::map(kFileBytes, MAP_SHARED, fd));
  sys::close(fd);
  return findings;
}

struct LibgccStack {
  uintptr_t hook_end;  // The CFA of the hook: its callers' lie beyond.
  size_t count;
  uintptr_t keys[unwind::kMaxFrames];
};
LibgccStack stack;
std::atomic_flag busy;
std::atomic<uint64_t> captures;

_Unwind_Reason_Code take_frame(_Unwind_Context* context, void*) {
  int interrupted = 0;
  uintptr_t pc = _Unwind_GetIPInfo(context, &interrupted);
  // libgcc's CFA of a frame is the sp of the frame inside it.
  if (stack.count == 0 && _Unwind_GetCFA(context) != stack.hook_end) return _URC_NO_REASON;
  if (pc == 0 || stack.count == unwind::kMaxFrames) return _URC_END_OF_STACK;
  stack.keys[stack.count++] = pc | (interrupted ? unwind::kInterrupted : 0);
  return _URC_NO_REASON;
}

void describe(Findings* findings, uintptr_t frame) {
  static uintptr_t ours[unwind::kMaxFrames];
  unwind::Start start = {frame + 8, *reinterpret_cast<const uintptr_t*>(frame)};
  unwind::Captured plain = unwind::walk_plain(start, unwind::StackBounds{}, ours);
  uint64_t at = findings->text_used.load();
  auto add = [&](const char* format, auto... values) {
    if (at + 64 < sizeof findings->text)
      at += static_cast<uint64_t>(
          snprintf(findings->text + at, sizeof findings->text - at, format, values...));
  };
  add("libgcc:");
  for (size_t i = 0; i < stack.count; ++i) add(" %lx", stack.keys[i]);
  add("\nours, inside out:");
  for (size_t i = plain.fresh.size(); i-- > 0;) add(" %lx", plain.fresh[i]);
  add("\n");
  findings->text_used.store(at);
}

}  // namespace

void self_check(uintptr_t frame, uint64_t path_hash, bool stopped) {
  static Findings* const findings = open_findings();
  if (!findings || captures.fetch_add(1) % kEvery != 0 || busy.test_and_set()) return;
  stack.hook_end = frame + 2 * sizeof(uintptr_t);
  stack.count = 0;
  _Unwind_Backtrace(take_frame, nullptr);
  uint64_t hash = unwind::path_seed(unwind::epoch().generation(), false, stopped);
  for (size_t i = stack.count; i-- > 0;) hash = unwind::extended(hash, stack.keys[i]);
  findings->checked.fetch_add(1);
  findings->frames.fetch_add(stack.count);
  if (unwind::named(hash) != path_hash) {
    findings->wrong.fetch_add(1);
    describe(findings, frame);
  }
  busy.clear();
}

}  // namespace malloscope::record
