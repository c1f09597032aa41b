// SPDX-License-Identifier: Apache-2.0
// What the unwinder must know about x86-64 Linux: DWARF's register numbers, the
// frame the kernel makes for a signal, and how to read our own registers.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/attributes.h"

namespace malloscope::unwind::arch {

// DWARF's numbers (System V ABI, figure 3.36). 16 stands for the return address.
inline constexpr unsigned kFp = 6, kSp = 7, kPc = 16, kRegisters = 17;

// A function must leave these as it found them: rbx, rbp, r12 - r15.
inline constexpr uint32_t kCalleeSaved = 1u << 3 | 1u << kFp | 0xfu << 12;

// A call pushes the return address: it lies right below the CFA.
inline constexpr int kReturnSlot = -8;

// Addresses of user space fit in this many bits, with 5-level page tables too.
inline constexpr unsigned kAddressBits = 56;

// When a signal handler returns, rsp points to a ucontext. These are the places
// of its saved registers, from there.
inline constexpr int kSignalSp = 160, kSignalPc = 168, kSignalFp = 120;
inline constexpr uint8_t kSignalPlace[kRegisters] = {144, 136, 152, 128, 112, 104, 120, 160, 40,
                                                     48,  56,  64,  72,  80,  88,  96,  168};

// mov $SYS_rt_sigreturn, %rax; syscall: what a handler returns to, where it has
// no unwind table (musl, Go; libgcc knows it by these bytes too).
inline constexpr uint8_t kSigreturn[9] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};

// The CFA of a lazy PLT entry, as linkers write it: rsp + 8 + ((rip & 15) >= n) * 8,
// for once the entry's second instruction has pushed a word. At a known pc it is
// just rsp + `*offset`.
inline bool plt_offset(const uint8_t* expression, size_t size, uintptr_t pc, int64_t* offset) {
  if (size != 11) return false;
  constexpr uint8_t kBreg7 = 0x77, kBreg16 = 0x80, kLit0 = 0x30, kAnd = 0x1a, kGe = 0x2a,
                    kShl = 0x24, kPlus = 0x22;
  const uint8_t* e = expression;
  auto is_literal = [](uint8_t op) { return kLit0 <= op && op < kLit0 + 32; };
  if (e[0] != kBreg7 || e[1] >= 0x40 || e[2] != kBreg16 || e[3] != 0 || !is_literal(e[4]) ||
      e[5] != kAnd || !is_literal(e[6]) || e[7] != kGe || !is_literal(e[8]) || e[9] != kShl ||
      e[10] != kPlus)
    return false;
  uint64_t pushed = (pc & (e[4] - kLit0)) >= static_cast<uint64_t>(e[6] - kLit0);
  *offset = e[1] + static_cast<int64_t>(pushed << (e[8] - kLit0));
  return true;
}

struct Registers {
  uintptr_t value[kRegisters];
  uint32_t known;  // Bit per register: whether its value could be recovered.
};

// The registers here and now; those that calls destroy are left unknown.
MSCOPE_FAST void own_registers(Registers* out) {
  asm volatile(
      "movq %%rbx, 24(%0)\n\t"
      "movq %%rbp, 48(%0)\n\t"
      "movq %%rsp, 56(%0)\n\t"
      "movq %%r12, 96(%0)\n\t"
      "movq %%r13, 104(%0)\n\t"
      "movq %%r14, 112(%0)\n\t"
      "movq %%r15, 120(%0)\n\t"
      "leaq 0f(%%rip), %%rax\n\t"
      "movq %%rax, 128(%0)\n"
      "0:"
      :
      : "r"(out->value)
      : "rax", "memory");
  out->known = kCalleeSaved | 1u << kSp | 1u << kPc;
}

}  // namespace malloscope::unwind::arch
