// SPDX-License-Identifier: Apache-2.0
// Frames of hand-written assembly: described in ways no compiler uses, not
// described at all, or described wrongly.

#include "unwind/slow_step.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <ucontext.h>

#include "unwind/oracle_for_test.h"

// Each calls its argument.
extern "C" {
void frame_by_rbx(void (*next)());
void frame_by_expression(void (*next)());
void return_in_register(void (*next)());
void computed_slot(void (*next)());
void traps_while_realigning(void (*unused)());
void no_cfi(void (*next)());
void cfa_too_high(void (*next)());
void cfa_not_outward(void (*next)());
void cfa_by_wild_fp(void (*next)());
void return_to_garbage(void (*next)());
void expression_of_garbage(void (*next)());
}

asm(R"(
  .text
frame_by_rbx:                   # CFA = rbx + 16
  .cfi_startproc
  push %rbx
  .cfi_def_cfa_offset 16
  .cfi_offset rbx, -16
  mov %rsp, %rbx
  .cfi_def_cfa_register rbx
  sub $200, %rsp
  and $-16, %rsp
  call *%rdi
  mov %rbx, %rsp
  .cfi_def_cfa_register rsp
  pop %rbx
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc

frame_by_expression:            # CFA = r12 + 8 + 8, computed
  .cfi_startproc
  push %r12
  .cfi_def_cfa_offset 16
  .cfi_offset r12, -16
  mov %rsp, %r12
  .cfi_escape 0x0f, 0x05, 0x7c, 0x08, 0x38, 0x22, 0x96
  sub $64, %rsp
  and $-16, %rsp
  call *%rdi
  mov %r12, %rsp
  .cfi_def_cfa rsp, 16
  pop %r12
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc

return_in_register:             # the return address is in rbx
  .cfi_startproc
  push %rbx
  .cfi_def_cfa_offset 16
  .cfi_offset rbx, -16
  mov 8(%rsp), %rbx
  .cfi_register rip, rbx
  call *%rdi
  .cfi_offset rip, -8
  pop %rbx
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc

computed_slot:                  # rbx saved at *(r13), where r13 points to a pointer's pointee
  .cfi_startproc
  push %r13
  .cfi_def_cfa_offset 16
  .cfi_offset r13, -16
  push %rbx
  .cfi_def_cfa_offset 24
  mov %rsp, %r13
  .cfi_escape 0x10, 0x03, 0x02, 0x7d, 0x00
  push %r13
  .cfi_def_cfa_offset 32
  .cfi_escape 0x0f, 0x04, 0x77, 0x00, 0x06, 0x96
  .cfi_escape 0x0f, 0x05, 0x77, 0x00, 0x06, 0x23, 0x18
  mov $77, %rbx
  call *%rdi
  pop %r13
  .cfi_def_cfa rsp, 24
  pop %rbx
  .cfi_def_cfa_offset 16
  .cfi_restore rbx
  pop %r13
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc

traps_while_realigning:         # as gcc's prologues: for a moment, CFA = r10
  .cfi_startproc
  lea 8(%rsp), %r10
  .cfi_def_cfa r10, 0
  and $-64, %rsp
  int3
  lea -8(%r10), %rsp
  .cfi_def_cfa rsp, 8
  ret
  .cfi_endproc

no_cfi:
  sub $8, %rsp
  call *%rdi
  add $8, %rsp
  ret

cfa_too_high:                   # off by a gigabyte
  .cfi_startproc
  sub $8, %rsp
  .cfi_def_cfa_offset 1073741824
  call *%rdi
  add $8, %rsp
  ret
  .cfi_endproc

cfa_not_outward:                # the same frame for ever
  .cfi_startproc
  sub $8, %rsp
  .cfi_def_cfa_offset 0
  call *%rdi
  add $8, %rsp
  ret
  .cfi_endproc

cfa_by_wild_fp:
  .cfi_startproc
  push %rbp
  movabs $0x123456789abcdef0, %rbp
  .cfi_def_cfa rbp, 16
  .cfi_offset rbp, -16
  call *%rdi
  pop %rbp
  ret
  .cfi_endproc

return_to_garbage:              # what CFI takes for the return address is none
  .cfi_startproc
  movabs $0xfedcba9876543210, %rax
  push %rax
  .cfi_def_cfa_offset 8
  call *%rdi
  pop %rax
  ret
  .cfi_endproc

expression_of_garbage:          # CFA = *(rdx * rdx), and rdx is long lost
  .cfi_startproc
  sub $8, %rsp
  .cfi_escape 0x0f, 0x05, 0x71, 0x00, 0x12, 0x1e, 0x06
  call *%rdi
  add $8, %rsp
  ret
  .cfi_endproc
)");

namespace malloscope::unwind {
namespace {

Witness* witness = nullptr;
Captured last;
std::vector<uintptr_t> last_keys;

[[gnu::noinline]] void testify() {
  auto* frame = static_cast<uintptr_t*>(__builtin_frame_address(0));
  witness->testify({reinterpret_cast<uintptr_t>(frame + 1), frame[0]});
  asm volatile("" ::: "memory");
}

// Without an oracle: where the CFI is a lie, libgcc would crash.
[[gnu::noinline]] void look() {
  auto* frame = static_cast<uintptr_t*>(__builtin_frame_address(0));
  last = witness->memo().capture({reinterpret_cast<uintptr_t>(frame + 1), frame[0]});
  last_keys.assign(last.fresh.begin(), last.fresh.end());
  asm volatile("" ::: "memory");
}

class SlowStepTest : public testing::Test {
 protected:
  void SetUp() override {
    start(test_arena());
    own_ = std::make_unique<Witness>(own_stack_bounds());
    witness = own_.get();
  }
  std::unique_ptr<Witness> own_;
};

TEST_F(SlowStepTest, StepsOutOfFramesThatNoRuleDescribes) {
  for (auto* frame : {frame_by_rbx, frame_by_expression, return_in_register, computed_slot}) {
    uint64_t slow = counts.slow;
    for (int i = 0; i < 3; ++i) frame(testify);
    EXPECT_EQ(counts.slow, slow + 3);
  }
  EXPECT_EQ(own_->compared(), 12u);
  EXPECT_EQ(own_->mismatches(), 0u) << own_->first_mismatch();
}

TEST_F(SlowStepTest, GoesOnFromOneSlowFrameToTheNext) {
  uint64_t slow = counts.slow;
  frame_by_rbx([] {
    testify();
    frame_by_expression([] {
      testify();
      return_in_register([] {
        testify();
        computed_slot([] {
          testify();
          frame_by_rbx(testify);
          testify();
        });
        testify();
      });
    });
    testify();
  });
  EXPECT_EQ(own_->mismatches(), 0u) << own_->first_mismatch();
  EXPECT_EQ(own_->compared(), 8u);
  EXPECT_GT(counts.slow, slow + 8);
}

TEST_F(SlowStepTest, KeepsOnlyWhatIsOutsideOfASlowFrame) {
  frame_by_rbx([] {
    testify();
    testify();
    EXPECT_GE(witness->memo().stepped(), 2u) << "this function and the slow frame";
    EXPECT_LT(witness->memo().stepped(), 5u);
  });
  EXPECT_EQ(own_->mismatches(), 0u);
}

void on_trap(int) {
  auto* frame = static_cast<uintptr_t*>(__builtin_frame_address(0));
  witness->testify({reinterpret_cast<uintptr_t>(frame + 1), frame[0]});
}

TEST_F(SlowStepTest, HasAllRegistersOfAnInterruptedFrame) {
  struct sigaction action = {}, old;
  action.sa_handler = on_trap;
  sigaction(SIGTRAP, &action, &old);
  uint64_t slow = counts.slow;
  traps_while_realigning(testify);
  sigaction(SIGTRAP, &old, nullptr);
  EXPECT_EQ(counts.slow, slow + 1);
  EXPECT_EQ(own_->compared(), 1u);
  EXPECT_EQ(own_->mismatches(), 0u) << own_->first_mismatch();
}

TEST_F(SlowStepTest, StopsAtCodeWithoutCfi) {
  uint64_t stops = counts.no_cfi;
  no_cfi(testify);
  EXPECT_EQ(own_->mismatches(), 0u) << own_->first_mismatch();
  EXPECT_EQ(counts.no_cfi, stops + 1);
  own_->memo().clear();
  no_cfi(look);
  EXPECT_TRUE(last.stopped);
  EXPECT_EQ(last_keys.size() + last.kept, 1u);
}

TEST_F(SlowStepTest, StopsWhereCfiLies) {
  for (auto* liar :
       {cfa_too_high, cfa_not_outward, cfa_by_wild_fp, return_to_garbage, expression_of_garbage}) {
    for (int i = 0; i < 2; ++i) {
      liar(look);
      EXPECT_TRUE(last.stopped);
      EXPECT_EQ(last_keys.size(), 1u);
      EXPECT_EQ(last.kept, 0u);
    }
  }
  look();
  EXPECT_FALSE(last.stopped);
  EXPECT_GT(last_keys.size(), 5u);
}

// --- Single steps: the processor traps after every instruction, in prologues,
// epilogues, PLT entries and the loader's resolver.

std::atomic<uint64_t> steps;

void on_step(int) {
  ++steps;
  auto* frame = static_cast<uintptr_t*>(__builtin_frame_address(0));
  witness->testify({reinterpret_cast<uintptr_t>(frame + 1), frame[0]});
}

void set_trap_flag(bool on) {
  if (on) {
    asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "cc", "memory");
  } else {
    asm volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "cc", "memory");
  }
}

int by_size(const void* a, const void* b) {
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

TEST_F(SlowStepTest, AgreesWithLibgccAfterEverySingleInstruction) {
  if (kSanitized) GTEST_SKIP();
  struct sigaction action = {}, old;
  action.sa_handler = on_step;
  sigaction(SIGTRAP, &action, &old);
  int numbers[] = {5, 2, 9, 1};
  char text[64];
  set_trap_flag(true);
  qsort(numbers, 4, sizeof(int), by_size);
  // Called for the first time here: they go through lazy binding.
  text[0] = static_cast<char>(toascii(numbers[0]));
  snprintf(text, sizeof text, "%d %s %p", numbers[0], "text", static_cast<void*>(text));
  free(malloc(strtoul(text, nullptr, 10) + labs(-100)));
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  set_trap_flag(false);
  sigaction(SIGTRAP, &old, nullptr);
  EXPECT_GT(steps, 1000u);
  EXPECT_EQ(own_->mismatches(), 0u) << "of " << own_->compared() << own_->first_mismatch();
}

}  // namespace
}  // namespace malloscope::unwind
