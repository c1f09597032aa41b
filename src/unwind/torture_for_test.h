// SPDX-License-Identifier: Apache-2.0
// Real code that does everything which is hard to unwind, and captures its stack
// all the time; every capture is compared with what libgcc's unwinder finds. To
// be included by test files that differ in how they are compiled.

#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "unwind/oracle_for_test.h"

namespace malloscope::unwind {
namespace {

thread_local Witness* witness = nullptr;

// What an allocation hook is to the recorder.
[[gnu::noinline]] void hook() {
  auto* frame = static_cast<uintptr_t*>(__builtin_frame_address(0));
  if (witness) witness->testify({reinterpret_cast<uintptr_t>(frame + 1), frame[0]});
  asm volatile("" ::: "memory");  // No tail call: the frame must be there.
}

struct Life {
  std::mt19937 random;
  int budget = 0;
  bool in_handler = false;
  bool blind = false;  // libgcc cannot see here: see on_tick.
  ucontext_t here, there;
  std::vector<char> coroutine = std::vector<char>(256 << 10);
  unsigned pick(unsigned below) { return static_cast<unsigned>(random() % below); }
};
thread_local Life* life = nullptr;

void wander(int depth);

[[gnu::noinline]] int with_alloca(int depth) {
  auto* bytes = static_cast<volatile char*>(__builtin_alloca(16 + life->pick(500)));
  bytes[3] = 1;
  wander(depth);
  return bytes[3];
}

// Wants its frame on a 32-byte boundary: gcc realigns the stack.
[[gnu::noinline, gnu::target("avx2")]] double realigned(int depth) {
  alignas(32) volatile double lanes[8] = {1, 2, 3, 4};
  wander(depth);
  return lanes[2];
}

// With an alloca and arguments on the stack too, gcc finds its way back by a
// word that it saves (DRAP).
[[gnu::noinline]] int realigned_64(int depth, int a, int b, int c, int d, int e, int f, int g) {
  alignas(64) volatile int values[32] = {};
  auto* bytes = static_cast<volatile char*>(__builtin_alloca(16 + life->pick(100)));
  bytes[1] = static_cast<char>(g);
  values[a & 31] = b + c + d + e + f + g;
  wander(depth);
  return values[3] + bytes[1] + g;
}

[[gnu::noinline]] double many_registers(int depth, double x, long a, long b) {
  long c = a * 3 + life->pick(5), d = b * 5 + c, e = c ^ d, f = d + e;
  for (long i = 0; i < 2; ++i) {
    if (life->pick(3) == 0) wander(depth - 1);
    a += c * i, b ^= d, c += e, d -= f;
  }
  hook();
  return x + static_cast<double>(a + b + c + d + e + f);
}

[[gnu::noinline]] void throws(int depth) {
  if (depth > 0 && life->pick(3)) {
    throws(depth - 1);
  } else {
    hook();
    life->blind = true;
    throw std::runtime_error("out");
  }
  asm volatile("" ::: "memory");
}

[[gnu::noinline]] void catches(int depth) {
  try {
    wander(depth - 1);
    throws(static_cast<int>(life->pick(5)));
  } catch (const std::exception&) {
    life->blind = false;
    hook();
  }
}

[[gnu::noinline, noreturn]] void jump_out(jmp_buf& where, int depth) {
  if (depth > 0) wander(std::min(depth - 1, 3));
  longjmp(where, 1);
}

[[gnu::noinline]] void jumps(int depth) {
  jmp_buf where;
  if (setjmp(where) == 0) jump_out(where, depth);
  hook();
}

[[gnu::noinline]] void sorts(int depth) {
  int numbers[6];
  for (int& n : numbers) n = static_cast<int>(life->pick(100));
  static thread_local int inner;
  inner = std::min(depth - 1, 2);
  qsort(numbers, 6, sizeof(int), [](const void* a, const void* b) {
    if (life->pick(4) == 0) wander(inner);
    hook();
    return *static_cast<const int*>(a) - *static_cast<const int*>(b);
  });
}

void swap(ucontext_t& from, ucontext_t& to) {
  life->blind = true;
  swapcontext(&from, &to);
  life->blind = false;
}

void coroutine_main() {
  life->blind = false;
  wander(3);
  hook();
  swap(life->there, life->here);
  wander(3);
  life->blind = true;  // Returns by setcontext.
}

[[gnu::noinline]] void switches(int depth) {
  static thread_local bool is_running = false;
  // From the alternate stack one must not switch away: the next signal would be
  // put on top of what is there.
  if (is_running || depth < 2 || life->in_handler) return hook();
  is_running = true;
  getcontext(&life->there);
  life->there.uc_stack.ss_sp = life->coroutine.data();
  life->there.uc_stack.ss_size = life->coroutine.size();
  life->there.uc_link = &life->here;
  makecontext(&life->there, coroutine_main, 0);
  swap(life->here, life->there);
  hook();
  swap(life->here, life->there);
  is_running = false;
}

void on_signal(int) {
  int saved = errno;
  hook();
  if (life->pick(3) == 0 && !life->in_handler) {
    life->in_handler = true;
    wander(2);
    life->in_handler = false;
  }
  errno = saved;
}

[[gnu::noinline]] void takes_signal(int) {
  pthread_kill(pthread_self(), life->pick(2) ? SIGUSR1 : SIGUSR2);
  hook();
}

[[gnu::noinline]] void wander(int depth) {
  if (life->budget <= 0 || depth <= 0) return hook();
  int rounds = 1 + static_cast<int>(life->pick(3));
  for (int i = 0; i < rounds && life->budget-- > 0; ++i) {
    int next = depth - 1;
    switch (life->pick(12)) {
      case 0:
        with_alloca(next);
        break;
      case 1:
        realigned(next);
        break;
      case 2:
        realigned_64(next, 1, 2, 3, 4, 5, 6, 7);
        break;
      case 3:
        many_registers(next, 1.5, 2, 3);
        break;
      case 4:
        catches(std::min(next, 6));
        break;
      case 5:
        jumps(next);
        break;
      case 6:
        sorts(next);
        break;
      case 7:
        switches(next);
        break;
      case 8:
        takes_signal(next);
        break;
      default:
        wander(next);
        break;
    }
  }
  hook();
}

void handle(int signal, int flags, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(signal, &action, nullptr);
}

struct AlternateStack {
  std::vector<char> bytes = std::vector<char>(1 << 20);
  AlternateStack() {
    stack_t stack = {};
    stack.ss_sp = bytes.data();
    stack.ss_size = bytes.size();
    sigaltstack(&stack, nullptr);
  }
  ~AlternateStack() {
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }
};

void live_through(unsigned seed, int budget, bool bounds_known) {
  AlternateStack alternate;
  Witness own(bounds_known ? own_stack_bounds() : StackBounds{});
  Life mine;
  mine.random.seed(seed);
  life = &mine;
  witness = &own;
  while (own.compared() < static_cast<uint64_t>(budget)) {
    mine.budget = 2000;
    wander(5 + static_cast<int>(mine.pick(60)));
  }
  witness = nullptr;
  life = nullptr;
  EXPECT_EQ(own.mismatches(), 0u) << own.first_mismatch();
  EXPECT_GT(own.recognised(), own.compared() / 100) << "hardly any stack came up again";
}

TEST(TORTURE, EveryCaptureAgreesWithLibgcc) {
  if (kSanitized) GTEST_SKIP();
  start(test_arena());
  handle(SIGUSR1, 0, on_signal);
  handle(SIGUSR2, SA_ONSTACK, on_signal);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i)
    threads.emplace_back([i] { live_through(i + 1, 40'000, i != 3); });
  for (std::thread& t : threads) t.join();
}

#if !defined(__clang__)
TEST(TORTURE, HasFramesThatAreRealigned) {
  if (kSanitized) GTEST_SKIP();
  start(test_arena());
  auto pc = reinterpret_cast<uintptr_t>(&realigned_64);
  int found = 0;
  for (uintptr_t i = 0; i < 300; ++i)
    found += find_rule((pc + i) | kInterrupted).kind() == Rule::kFpDeref;
  EXPECT_GT(found, 10);
}
#endif

std::atomic<int> ticks;

// A signal that the program did not ask for comes between any two instructions:
// in prologues, in PLT entries, in the vdso, in our own unwinder.
void on_tick(int) {
  int saved = errno;
  ++ticks;
  if (witness) {
    auto* frame = static_cast<uintptr_t*>(__builtin_frame_address(0));
    Start start = {reinterpret_cast<uintptr_t>(frame + 1), frame[0]};
    // While libgcc throws, it rewrites its own frames, and while swapcontext
    // swaps, its CFI is wrong: asked to unwind them then, libgcc crashes. We must
    // not; what we find there is anybody's guess.
    life->blind ? witness->survive(start) : witness->testify(start);
  }
  errno = saved;
}

TEST(TORTURE, AgreesWithLibgccInSignalsAtArbitraryPcs) {
  if (kSanitized) GTEST_SKIP();
  start(test_arena());
  handle(SIGUSR1, 0, on_signal);
  handle(SIGUSR2, SA_ONSTACK, on_signal);
  // Restarting, and now on this stack, now on the other.
  handle(SIGPROF, SA_RESTART | SA_ONSTACK, on_tick);
  handle(SIGALRM, SA_RESTART, on_tick);
  itimerval every = {{0, 271}, {0, 271}}, other = {{0, 389}, {0, 389}}, never = {};
  setitimer(ITIMER_PROF, &every, nullptr);
  setitimer(ITIMER_REAL, &other, nullptr);
  live_through(9, 60'000, true);
  setitimer(ITIMER_PROF, &never, nullptr);
  setitimer(ITIMER_REAL, &never, nullptr);
  handle(SIGPROF, 0, SIG_IGN);
  handle(SIGALRM, 0, SIG_IGN);
  EXPECT_GT(ticks, 100);
}

}  // namespace
}  // namespace malloscope::unwind
