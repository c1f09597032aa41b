// SPDX-License-Identifier: Apache-2.0
// libgcc's unwinder as a witness against ours.

#pragma once

#include <dlfcn.h>
#include <pthread.h>
#include <unwind.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/arena.h"
#include "unwind/ledger_for_test.h"
#include "unwind/modules.h"
#include "unwind/stack_memo.h"

namespace malloscope::unwind {

// They do not follow switched stacks and see errors in every word we read there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

// In wiped memory itself: empty again in a forked child, as the recorder's is.
inline Arena& test_arena() {
  static Arena& arena = *new (map_wiped_on_fork(kPageBytes)) Arena;
  return arena;
}

inline StackBounds own_stack_bounds() {
  pthread_attr_t attributes;
  void* low;
  size_t size;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  auto start = reinterpret_cast<uintptr_t>(low);
  return {start, start + size};
}

// From libgcc_s by name: another library (libunwind) may offer the same functions.
struct Libgcc {
  decltype(&_Unwind_Backtrace) backtrace;
  decltype(&_Unwind_GetCFA) cfa;
  decltype(&_Unwind_GetIPInfo) pc;
  Libgcc() {
    void* library = dlopen("libgcc_s.so.1", RTLD_NOW);
    backtrace = reinterpret_cast<decltype(backtrace)>(dlsym(library, "_Unwind_Backtrace"));
    cfa = reinterpret_cast<decltype(cfa)>(dlsym(library, "_Unwind_GetCFA"));
    pc = reinterpret_cast<decltype(pc)>(dlsym(library, "_Unwind_GetIPInfo"));
  }
};
inline const Libgcc libgcc;

// The stack from the function whose return address is at `slot`, root first.
inline std::span<const uintptr_t> libgcc_stack(uintptr_t slot, std::vector<uintptr_t>& room) {
  struct Walk {
    uintptr_t sp;
    std::vector<uintptr_t>& keys;
    size_t count;
    bool found;
  } walk = {slot + 8, room, 0, false};
  libgcc.backtrace(
      [](_Unwind_Context* context, void* argument) {
        auto* w = static_cast<Walk*>(argument);
        int interrupted = 0;
        uintptr_t pc = libgcc.pc(context, &interrupted);
        if (!w->found && libgcc.cfa(context) != w->sp) return _URC_NO_REASON;
        w->found = true;
        if (pc == 0 || w->count == w->keys.size()) return _URC_END_OF_STACK;
        w->keys[w->count++] = pc | (interrupted ? kInterrupted : 0);
        return _URC_NO_REASON;
      },
      &walk);
  for (size_t i = 0; i < walk.count / 2; ++i) std::swap(room[i], room[walk.count - 1 - i]);
  return {room.data(), walk.count};
}

// Captures stacks for one thread, as the recorder would, and compares each.
// Can be asked from a signal handler at any time.
class Witness {
 public:
  explicit Witness(StackBounds bounds)
      : bounds_(bounds), expected_(kMaxFrames), plain_(kMaxFrames), plain_expected_(kMaxFrames) {
    // Signal handlers must not allocate.
    truth_.reserve(kMaxFrames);
    found_.reserve(2 * kMaxFrames);
    memo_ = new (test_arena().take(sizeof(StackMemo))) StackMemo;
    memo_->begin(test_arena(), bounds, ledger_.finder());
  }

  [[gnu::noinline]] void testify(Start start) {
    if (inside_) {
      // We have interrupted ourselves.
      if (inside_plain_) return;
      inside_plain_ = true;
      auto truth = libgcc_stack(start.slot, plain_expected_);
      Captured captured = walk_plain(start, bounds_, plain_);
      // It may end at a frame that needs a slow step (in the loader's resolver), but says so.
      if (captured.stopped && captured.fresh.size() < truth.size() &&
          find_rule(captured.fresh.front()).kind() == Rule::kSlow)
        truth = truth.last(captured.fresh.size());
      judge(Ledger::equal(captured.fresh, truth), truth, captured, "plain");
      inside_plain_ = false;
      return;
    }
    inside_ = true;
    asm volatile("" ::: "memory");
    auto truth = libgcc_stack(start.slot, expected_);
    Captured captured = memo_->capture(start);
    recognised_ += captured.id != StackId::kNone;
    bool good = ledger_.check(captured, truth, memo_);
    judge(good, truth, captured, "memo");
    asm volatile("" ::: "memory");
    inside_ = false;
  }

  // A capture that nobody can vouch for.
  void survive(Start start) {
    if (inside_) {
      walk_plain(start, bounds_, std::span(plain_).first(64));
    } else {
      inside_ = true;
      memo_->capture(start);
      inside_ = false;
    }
  }

  uint64_t compared() const { return compared_; }
  uint64_t mismatches() const { return mismatches_; }
  uint64_t recognised() const { return recognised_; }
  size_t stacks() const { return ledger_.stacks(); }
  StackMemo& memo() { return *memo_; }

  // Both stacks, root first, as far as they differ.
  std::string first_mismatch() const {
    std::string text = mismatch_kind_ ? mismatch_kind_ : "";
    for (size_t i = 0; i < std::max(truth_.size(), found_.size()); ++i) {
      auto name = [](const std::vector<uintptr_t>& keys, size_t at) {
        if (at >= keys.size()) return std::string("-");
        Dl_info info = {};
        auto pc = reinterpret_cast<void*>(pc_of(keys[at]));
        dladdr(pc, &info);
        char line[300];
        snprintf(line, sizeof line, "%#lx(%s%s)", keys[at], info.dli_fname ? info.dli_fname : "?",
                 info.dli_sname ? info.dli_sname : "");
        return std::string(line);
      };
      text += "\n" + name(truth_, i) + "  /  " + name(found_, i);
    }
    return text;
  }

 private:
  void judge(bool good, std::span<const uintptr_t> truth, const Captured& captured,
             const char* kind) {
    ++compared_;
    if (good) return;
    if (mismatches_++ > 0) return;
    mismatch_kind_ = kind;
    truth_.assign(truth.begin(), truth.end());
    if (captured.id != StackId::kNone) {
      auto decoded = ledger_.decode(raw(captured.id));
      found_.assign(decoded.begin(), decoded.end());
    } else if (captured.owner != StackId::kNone) {
      auto decoded = ledger_.decode(raw(captured.owner));
      found_.assign(decoded.begin(), decoded.begin() + static_cast<ptrdiff_t>(std::min<size_t>(
                                                           captured.kept, decoded.size())));
    }
    if (captured.id == StackId::kNone)
      found_.insert(found_.end(), captured.fresh.begin(), captured.fresh.end());
  }

  StackBounds bounds_;
  StackMemo* memo_;
  Ledger ledger_;
  std::vector<uintptr_t> expected_, plain_, plain_expected_;
  std::vector<uintptr_t> truth_, found_;
  const char* mismatch_kind_ = nullptr;
  volatile bool inside_ = false, inside_plain_ = false;
  uint64_t compared_ = 0, mismatches_ = 0, recognised_ = 0;
};

}  // namespace malloscope::unwind
