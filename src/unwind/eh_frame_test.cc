// SPDX-License-Identifier: Apache-2.0
// Our reading of CFI against libdw's, at many pcs of large libraries. The two
// sides are compared by what they compute from the same made-up registers and
// memory, so that it does not matter how each of them puts it.

#include "unwind/eh_frame.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "unwind/modules.h"
#include "unwind/oracle_for_test.h"

namespace malloscope::unwind {
namespace {

// Loaded by hand: the tests need not be linked with it.
struct Libdw {
  void* library = dlopen("libdw.so.1", RTLD_NOW);
  void* elf = dlopen("libelf.so.1", RTLD_NOW);
  template <typename F>
  F* find(F*, const char* name) {
    void* address = dlsym(library, name);
    if (!address) address = dlsym(elf, name);
    return reinterpret_cast<F*>(address);
  }
#define MSCOPE_LIBDW(name) decltype(&::name) name = find(decltype(&::name){}, #name)
  MSCOPE_LIBDW(elf_version);
  MSCOPE_LIBDW(elf_begin);
  MSCOPE_LIBDW(elf_end);
  MSCOPE_LIBDW(dwarf_getcfi_elf);
  MSCOPE_LIBDW(dwarf_cfi_end);
  MSCOPE_LIBDW(dwarf_cfi_addrframe);
  MSCOPE_LIBDW(dwarf_frame_cfa);
  MSCOPE_LIBDW(dwarf_frame_register);
#undef MSCOPE_LIBDW
};
Libdw& libdw() {
  static Libdw loaded;
  return loaded;
}

// The made-up machine.
uint64_t memory(uint64_t address) { return (address * 0x9e3779b97f4a7c15 >> 11) & ~7ull; }
struct Registers {
  uint64_t pc;
  uint64_t operator[](uint64_t number) const {
    return number == 16 ? pc : 0x7ffe00000000 + number * 0x100000;
  }
};

std::optional<uint64_t> evaluate(const Dwarf_Op* ops, size_t count, const Registers& registers,
                                 uint64_t cfa) {
  std::vector<uint64_t> stack;
  auto pop = [&] {
    uint64_t top = stack.back();
    stack.pop_back();
    return top;
  };
  for (size_t i = 0; i < count; ++i) {
    const Dwarf_Op& op = ops[i];
    if (op.atom >= DW_OP_breg0 && op.atom <= DW_OP_breg31) {
      stack.push_back(registers[op.atom - DW_OP_breg0] + op.number);
    } else if (op.atom == DW_OP_bregx) {
      stack.push_back(registers[op.number] + op.number2);
    } else if (op.atom >= DW_OP_lit0 && op.atom <= DW_OP_lit31) {
      stack.push_back(op.atom - DW_OP_lit0);
    } else if (op.atom == DW_OP_call_frame_cfa) {
      stack.push_back(cfa);
    } else if (op.atom == DW_OP_const1u || op.atom == DW_OP_const2u || op.atom == DW_OP_constu ||
               op.atom == DW_OP_consts || op.atom == DW_OP_const1s || op.atom == DW_OP_const2s) {
      stack.push_back(op.number);
    } else if (op.atom == DW_OP_plus_uconst) {
      stack.back() += op.number;
    } else if (op.atom == DW_OP_deref) {
      stack.back() = memory(stack.back());
    } else if (op.atom == DW_OP_stack_value) {
      continue;
    } else {
      if (stack.size() < 2) return {};
      uint64_t b = pop(), a = pop();
      if (op.atom == DW_OP_plus)
        stack.push_back(a + b);
      else if (op.atom == DW_OP_minus)
        stack.push_back(a - b);
      else if (op.atom == DW_OP_and)
        stack.push_back(a & b);
      else if (op.atom == DW_OP_shl)
        stack.push_back(a << b);
      else if (op.atom == DW_OP_ge)
        stack.push_back(static_cast<int64_t>(a) >= static_cast<int64_t>(b));
      else
        return {};
    }
  }
  if (stack.empty()) return {};
  return stack.back();
}

// Where a step leads: the same for both sides.
struct Step {
  bool end = false;
  uint64_t cfa = 0, pc_address = 0, fp = 0;
  bool operator==(const Step&) const = default;
};

std::optional<uint64_t> libdw_register(Dwarf_Frame* frame, int number, const Registers& registers,
                                       uint64_t cfa, uint64_t* address = nullptr,
                                       bool* lost = nullptr) {
  Dwarf_Op room[3], *ops;
  size_t count;
  if (libdw().dwarf_frame_register(frame, number, room, &ops, &count) != 0) return {};
  if (count == 0) {
    if (lost && ops == room) *lost = true;
    return registers[static_cast<uint64_t>(number)];
  }
  if (ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
    return registers[ops[0].atom - DW_OP_reg0];
  auto value = evaluate(ops, count, registers, cfa);
  if (!value || ops[count - 1].atom == DW_OP_stack_value) return value;
  if (address) *address = *value;
  return memory(*value);
}

std::optional<Step> libdw_step(Dwarf_Frame* frame, const Registers& registers, bool* computed) {
  Step step;
  Dwarf_Op* ops;
  size_t count;
  bool lost = false;
  if (libdw().dwarf_frame_cfa(frame, &ops, &count) != 0) return {};
  *computed = count > 1;
  auto cfa = evaluate(ops, count, registers, 0);
  if (!libdw_register(frame, 16, registers, cfa.value_or(0), &step.pc_address, &lost)) return {};
  if (lost) {
    step = {};
    step.end = true;
    return step;
  }
  if (!cfa) return {};
  step.cfa = *cfa;
  auto fp = libdw_register(frame, 6, registers, *cfa);
  if (!fp) return {};
  step.fp = *fp;
  return step;
}

Step our_step(Rule rule, const Registers& registers) {
  uint64_t sp = registers[7], fp = registers[6], cfa;
  switch (rule.kind()) {
    case Rule::kEnd:
      return {true};
    case Rule::kSignal:
      return {false, memory(sp + 160), sp + 168, memory(sp + 120)};
    case Rule::kFpDeref:
      cfa = memory(fp + rule.offset());
      return {false, cfa, cfa - 8, memory(fp)};
    default:
      cfa = (rule.kind() == Rule::kSp ? sp : fp) + rule.offset();
  }
  return {false, cfa, cfa - 8, rule.fp_offset() ? memory(cfa + rule.fp_offset()) : fp};
}

struct Tally {
  uint64_t pcs = 0, wrong = 0, slow = 0, folded = 0, full_wrong = 0;
  uintptr_t first_wrong = 0;
};

Tally compare(const char* name) {
  Tally tally;
  void* library = dlopen(name, RTLD_LAZY);
  if (!library) return tally;
  link_map* map;
  dlinfo(library, RTLD_DI_LINKMAP, &map);
  int fd = open(map->l_name, O_RDONLY | O_CLOEXEC);
  libdw().elf_version(EV_CURRENT);
  Elf* elf = libdw().elf_begin(fd, ELF_C_READ_MMAP, nullptr);
  Dwarf_CFI* cfi = libdw().dwarf_getcfi_elf(elf);

  struct Ranges {
    std::vector<std::pair<uintptr_t, uintptr_t>> all;
  } ranges;
  CfiSource source;
  // The dynamic section is in the module, whatever else is.
  if (!cfi || !find_cfi(reinterpret_cast<uintptr_t>(map->l_ld), &source)) return tally;
  scan_fdes(
      source.frames,
      [](const Fde& fde, void* context) {
        if (fde.end > fde.start)
          static_cast<Ranges*>(context)->all.emplace_back(fde.start, fde.end);
        return false;
      },
      &ranges);
  std::mt19937 random(1);
  // Every function of a small library, 20,000 of a large one; the first are PLTs and such.
  size_t stride = std::max<size_t>(1, ranges.all.size() / 20'000);
  auto rows = std::make_unique<Rows<FullRow>>();
  for (size_t i = 0; i < ranges.all.size(); i += i < 10 ? 1 : stride) {
    auto [start, end] = ranges.all[i];
    for (int sample = 0; sample < 3; ++sample) {
      uintptr_t pc = start + (sample == 0 ? 0 : random() % (end - start));
      Registers registers = {pc};
      Dwarf_Frame* frame;
      if (libdw().dwarf_cfi_addrframe(cfi, pc - map->l_addr, &frame) != 0) continue;
      bool computed = false;
      auto theirs = libdw_step(frame, registers, &computed);
      if (theirs) {
        ++tally.pcs;
        Rule rule = find_rule(pc | kInterrupted);
        tally.slow += rule.kind() == Rule::kSlow;
        tally.folded += computed && rule.kind() == Rule::kSp;
        if (rule.kind() != Rule::kSlow &&
            (rule.kind() > Rule::kSlow || our_step(rule, registers) != *theirs)) {
          ++tally.wrong;
          if (!tally.first_wrong) tally.first_wrong = pc - map->l_addr;
        }
        // The other registers, as a slow step would find them.
        Fde fde;
        if (!theirs->end && find_fde(source.header, source.frames, pc, &fde) &&
            run(fde, pc, rows.get()))
          for (unsigned reg : {3u, 12u, 13u, 14u, 15u}) {
            const Place& place = rows->now.reg[reg];
            uint64_t ours = registers[reg];
            if (place.kind == Place::kAtCfa) ours = memory(theirs->cfa + place.value);
            if (place.kind > Place::kAtCfa) continue;
            auto their = libdw_register(frame, static_cast<int>(reg), registers, theirs->cfa);
            tally.full_wrong += their && *their != ours;
          }
      }
      free(frame);
    }
  }
  libdw().dwarf_cfi_end(cfi);
  libdw().elf_end(elf);
  close(fd);
  return tally;
}

TEST(EhFrame, AgreesWithLibdwAtManyPcsOfLargeLibraries) {
  if (!libdw().dwarf_getcfi_elf) GTEST_SKIP() << "no libdw here";
  start(test_arena());
  uint64_t libraries = 0, folded = 0;
  for (const char* name : {"libc.so.6", "libstdc++.so.6", "libm.so.6", "libgcc_s.so.1",
                           "ld-linux-x86-64.so.2", "libpython3.11.so.1.0", "libLLVM.so.19.1",
                           "libclang-cpp.so.19.1", "libz3.so.4", "libcrypto.so.3", "libdw.so.1"}) {
    Tally tally = compare(name);
    if (tally.pcs == 0) continue;
    ++libraries;
    folded += tally.folded;
    printf("%-24s %6lu pcs, %lu wrong, %lu slow, %lu PLT\n", name, tally.pcs, tally.wrong,
           tally.slow, tally.folded);
    EXPECT_EQ(tally.wrong, 0u) << name << " first at " << std::hex << tally.first_wrong;
    EXPECT_EQ(tally.full_wrong, 0u) << name;
    EXPECT_LT(tally.slow, tally.pcs / 50) << name;
  }
  EXPECT_GE(libraries, 4u);
  EXPECT_GT(folded, 0u) << "no PLT entry was met";
}

// A library's CFI in buffers of exactly its size.
struct Copy {
  std::vector<uint8_t> header, frames;
  Section header_section, frames_section;
  std::vector<uintptr_t> pcs;

  explicit Copy(const CfiSource& source) {
    header.assign(source.header.bytes, source.header.bytes + source.header.size);
    size_t size = scan_fdes(
        source.frames,
        [](const Fde& fde, void* context) {
          static_cast<Copy*>(context)->pcs.push_back(fde.start + (fde.end - fde.start) / 2);
          return false;
        },
        this);
    frames.assign(source.frames.bytes, source.frames.bytes + size);
    header_section = {header.data(), header.size(), source.header.address};
    frames_section = {frames.data(), frames.size(), source.frames.address};
  }
};

CfiSource source_of(const char* name) {
  void* library = dlopen(name, RTLD_LAZY);
  link_map* map = nullptr;
  dlinfo(library, RTLD_DI_LINKMAP, &map);
  CfiSource source = {};
  find_cfi(reinterpret_cast<uintptr_t>(map->l_ld), &source);
  return source;
}

TEST(EhFrame, FindsTheSameWithAndWithoutTheSearchTable) {
  start(test_arena());
  Copy copy(source_of("libgcc_s.so.1"));
  ASSERT_GT(copy.pcs.size(), 50u);
  for (uintptr_t pc : copy.pcs) {
    Rule by_table = rule_from(copy.header_section, copy.frames_section, pc | kInterrupted);
    Rule by_scan = rule_from({}, copy.frames_section, pc | kInterrupted);
    EXPECT_EQ(by_table.bits(), by_scan.bits());
    EXPECT_NE(by_table.kind(), Rule::kStop);
  }
}

TEST(EhFrame, SurvivesAnyBytes) {
  start(test_arena());
  Copy good(source_of("libgcc_s.so.1"));
  std::mt19937 random(1);
  auto rows = std::make_unique<Rows<FullRow>>();
  uint64_t understood = 0, refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    Copy bad = good;
    bad.header_section.bytes = bad.header.data();
    bad.frames_section.bytes = bad.frames.data();
    // Cut somewhere, and some bytes changed.
    if (i % 4 == 0) bad.frames_section.size = random() % (bad.frames.size() + 1);
    if (i % 8 == 0) bad.header_section.size = random() % (bad.header.size() + 1);
    uintptr_t pc = good.pcs[random() % good.pcs.size()];
    for (size_t changes = random() % 200; changes-- > 0;)
      bad.frames[random() % bad.frames.size()] = static_cast<uint8_t>(random());
    if (i % 3 == 0) bad.header[random() % 12] = static_cast<uint8_t>(random());
    for (uintptr_t key : {pc, pc | kInterrupted}) {
      Rule rule = rule_from(bad.header_section, bad.frames_section, key);
      (rule.kind() == Rule::kStop ? refused : understood)++;
      Fde fde;
      if (find_fde(bad.header_section, bad.frames_section, lookup_pc(key), &fde))
        run(fde, lookup_pc(key), rows.get());
    }
  }
  EXPECT_GT(understood, 1000u);
  EXPECT_GT(refused, 1000u);
}

TEST(Rule, KeepsItsOffsets) {
  for (int64_t offset : {0l, 8l, -8l, 16l, 4096l, (1l << 26) - 8, -(1l << 26)})
    for (int64_t fp_offset : {0l, -16l, 8l, -(1l << 22), (1l << 22) - 8}) {
      Rule rule = Rule::make(Rule::kFp, offset, fp_offset);
      EXPECT_EQ(rule.kind(), Rule::kFp);
      EXPECT_EQ(rule.offset(), offset);
      EXPECT_EQ(rule.fp_offset(), fp_offset);
      EXPECT_EQ(rule.bits() >> Rule::kBits, 0u);
    }
  EXPECT_EQ(Rule::make(Rule::kSp, 12, 0).kind(), Rule::kSlow);
  EXPECT_EQ(Rule::make(Rule::kSp, 1l << 26, 0).kind(), Rule::kSlow);
  EXPECT_EQ(Rule::make(Rule::kSp, 8, 1l << 22).kind(), Rule::kSlow);
}

}  // namespace
}  // namespace malloscope::unwind
