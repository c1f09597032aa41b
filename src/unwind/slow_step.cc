// SPDX-License-Identifier: Apache-2.0
// A Rule knows two registers. Hand-written assembly may keep the way out of its
// frame in any other (`cfa = rbx + 16`), or compute it. To step out of such a
// frame we need the registers as they were in it, and only our own are at hand.
// So we walk again, from our own function outwards, with all registers and the
// full CFI of every frame, until we are where the fast walk stopped. That costs
// about a microsecond a frame, and is done for a few frames in a million.
//
// It must all happen inside one call: our own frame, where the first registers
// are saved, is gone when that returns. A second slow frame further out goes on
// from the registers that the first left.

#include "unwind/slow_step.h"

#include "unwind/counts.h"
#include "unwind/modules.h"

namespace malloscope::unwind {

MSCOPE_SLOW bool FullWalk::step(State* at, StackReader& reader) {
  count(counts.slow);
  if (!begun_) {
    arch::own_registers(&registers_);
    uintptr_t sp = registers_.value[arch::kSp];
    at_ = {registers_.value[arch::kPc] | kInterrupted, sp, sp, registers_.value[arch::kFp]};
    reader.enter(sp);
    begun_ = true;
  }
  for (uint32_t steps = 0; steps < 2 * kMaxFrames; ++steps) {
    bool here = at_.slot == at->slot && at_.key == at->key && at_.sp == at->sp;
    if (!step_once(reader)) return false;
    if (!here) continue;
    *at = at_;
    return true;
  }
  return false;
}

bool FullWalk::step_once(StackReader& reader) {
  CfiSource source;
  Fde fde;
  uintptr_t pc = lookup_pc(at_.key);
  // A signal may have come from another stack, and setcontext goes to one.
  bool may_switch = false;
  if (!find_cfi(pc, &source)) return false;
  if (!find_fde(source.header, source.frames, pc, &fde)) {
    // Without CFI there is one frame that we still know: the kernel's.
    if (find_rule(at_.key).kind() != Rule::kSignal) return false;
    for (unsigned reg = 0; reg < arch::kRegisters; ++reg)
      if (!reader.load(at_.sp + arch::kSignalPlace[reg], &next_.value[reg])) return false;
    next_.known = (1u << arch::kRegisters) - 1;
    fde.signal = may_switch = true;
    at_.slot = at_.sp + arch::kSignalPlace[arch::kPc];
  } else {
    if (!run(fde, pc, &rows_)) return false;
    const FullRow& row = rows_.now;
    may_switch = fde.signal || row.reg[arch::kSp].kind != Place::kUnset;
    uint64_t cfa = 0;
    if (row.cfa.kind == Place::kRegister) {
      if (!is_known(row.cfa.reg)) return false;
      cfa = registers_.value[row.cfa.reg] + static_cast<int64_t>(row.cfa.value);
    } else if (row.cfa.kind != Place::kIsExpression ||
               !evaluate(expression(fde, row.cfa), nullptr, reader, &cfa)) {
      return false;
    }
    uintptr_t pc_address = 0;
    next_.known = 0;
    for (unsigned reg = 0; reg < arch::kRegisters; ++reg) {
      const Place& place = row.reg[reg];
      uintptr_t address = 0;
      if (place.kind == Place::kUnset || place.kind == Place::kSame || place.kind == Place::kLost) {
        bool kept = place.kind == Place::kSame ||
                    (place.kind == Place::kUnset && (arch::kCalleeSaved >> reg & 1));
        if (!kept || !is_known(reg)) continue;
        next_.value[reg] = registers_.value[reg];
      } else if (!find(fde, place, cfa, reader, &next_.value[reg], &address)) {
        return false;
      }
      next_.known |= 1u << reg;
      if (reg == arch::kPc) pc_address = address;
    }
    if (!(next_.known >> arch::kPc & 1)) return false;
    if (!(next_.known >> arch::kSp & 1)) next_.value[arch::kSp] = cfa;
    next_.known |= 1u << arch::kSp;
    // A return address that is in no memory gets the place it usually has: no
    // two frames share that.
    at_.slot = pc_address ? pc_address : cfa + arch::kReturnSlot;
  }

  uintptr_t sp = next_.value[arch::kSp], next_pc = next_.value[arch::kPc];
  if (!may_switch && sp <= at_.sp) {
    count(counts.not_outward);
    return false;
  }
  if (next_pc >> arch::kAddressBits) return false;
  at_.key = fde.signal && next_pc ? next_pc | kInterrupted : next_pc;
  at_.sp = sp;
  at_.fp = next_.known >> arch::kFp & 1 ? next_.value[arch::kFp] : 0;
  registers_ = next_;
  return true;
}

bool FullWalk::find(const Fde& fde, const Place& place, uint64_t cfa, StackReader& reader,
                    uint64_t* value, uintptr_t* address) {
  switch (place.kind) {
    case Place::kAtCfa:
      *address = cfa + static_cast<int64_t>(place.value);
      return reader.load(*address, value);
    case Place::kCfaPlus:
      *value = cfa + static_cast<int64_t>(place.value);
      return true;
    case Place::kRegister:
      if (!is_known(place.reg)) return false;
      *value = registers_.value[place.reg];
      return true;
    case Place::kAtExpression:
      return evaluate(expression(fde, place), &cfa, reader, address) &&
             reader.load(*address, value);
    case Place::kIsExpression:
      return evaluate(expression(fde, place), &cfa, reader, value);
    default:
      return false;
  }
}

// A DWARF expression is a program for a stack machine. What CFI may use of it:
// constants, registers, loads, arithmetic and branches.
bool FullWalk::evaluate(Cursor in, const uint64_t* initial, StackReader& reader, uint64_t* result) {
  const uint8_t* begin = in.at();
  const uint8_t* end = in.end();
  unsigned depth = 0;
  if (initial) stack_[depth++] = *initial;

  auto push = [&](uint64_t value) {
    if (depth == kStack) return in.fail();
    stack_[depth++] = value;
  };
  auto need = [&](unsigned operands) {
    if (depth >= operands) return true;
    in.fail();
    return false;
  };
  auto push_register = [&](uint64_t reg, int64_t offset) {
    if (!is_known(reg)) return in.fail();
    push(registers_.value[reg] + static_cast<uint64_t>(offset));
  };
  auto branch = [&](int64_t distance) {
    if (in.bad()) return;
    if (distance < begin - in.at() || distance > end - in.at()) return in.fail();
    in = Cursor(in.at() + distance, end);
  };

  for (unsigned operations = 0; !in.done(); ++operations) {
    if (operations == kMaxOperations) return false;
    uint8_t op = in.byte();
    if (0x30 <= op && op <= 0x4f) {  // lit0 ...
      push(op - 0x30);
    } else if (0x70 <= op && op <= 0x8f) {  // breg0 ...
      push_register(op - 0x70, in.sleb());
    } else if (op == 0x92) {  // bregx
      uint64_t reg = in.uleb();
      push_register(reg, in.sleb());
    } else if (op == 0x03 || op == 0x0e || op == 0x0f) {  // addr, const8u, const8s
      push(in.fixed<uint64_t>());
    } else if (op == 0x08) {  // const1u ...
      push(in.fixed<uint8_t>());
    } else if (op == 0x09) {
      push(static_cast<uint64_t>(int64_t{in.fixed<int8_t>()}));
    } else if (op == 0x0a) {
      push(in.fixed<uint16_t>());
    } else if (op == 0x0b) {
      push(static_cast<uint64_t>(int64_t{in.fixed<int16_t>()}));
    } else if (op == 0x0c) {
      push(in.fixed<uint32_t>());
    } else if (op == 0x0d) {
      push(static_cast<uint64_t>(int64_t{in.fixed<int32_t>()}));
    } else if (op == 0x10) {  // constu
      push(in.uleb());
    } else if (op == 0x11) {  // consts
      push(static_cast<uint64_t>(in.sleb()));
    } else if (op == 0x12) {  // dup
      if (need(1)) push(stack_[depth - 1]);
    } else if (op == 0x13) {  // drop
      if (need(1)) --depth;
    } else if (op == 0x14) {  // over
      if (need(2)) push(stack_[depth - 2]);
    } else if (op == 0x15) {  // pick
      unsigned index = in.byte();
      if (need(index + 1)) push(stack_[depth - 1 - index]);
    } else if (op == 0x16) {  // swap
      if (!need(2)) break;
      uint64_t top = stack_[depth - 1];
      stack_[depth - 1] = stack_[depth - 2];
      stack_[depth - 2] = top;
    } else if (op == 0x17) {  // rot
      if (!need(3)) break;
      uint64_t top = stack_[depth - 1];
      stack_[depth - 1] = stack_[depth - 2];
      stack_[depth - 2] = stack_[depth - 3];
      stack_[depth - 3] = top;
    } else if (op == 0x06 || op == 0x94) {  // deref, deref_size
      unsigned size = op == 0x06 ? 8 : in.byte();
      if (!need(1)) break;
      uint64_t address = stack_[depth - 1], word;
      unsigned within = address % sizeof(word);
      // Loads are of whole words, so one that is split between two is refused.
      if (size == 0 || size > 8 || (size & (size - 1)) != 0 || within + size > sizeof word)
        return false;
      if (!reader.load(address - within, &word)) return false;
      stack_[depth - 1] = word >> within * 8 & (~uint64_t{0} >> (64 - size * 8));
    } else if (op == 0x19 || op == 0x1f || op == 0x20 || op == 0x23) {  // One operand.
      if (!need(1)) break;
      uint64_t& top = stack_[depth - 1];
      if (op == 0x19) top = static_cast<int64_t>(top) < 0 ? -top : top;  // abs
      if (op == 0x1f) top = -top;                                        // neg
      if (op == 0x20) top = ~top;                                        // not
      if (op == 0x23) top += in.uleb();                                  // plus_uconst
    } else if (op == 0x2f) {                                             // skip
      branch(in.fixed<int16_t>());
    } else if (op == 0x28) {  // bra
      int16_t distance = in.fixed<int16_t>();
      if (need(1) && stack_[--depth] != 0) branch(distance);
    } else if (op == 0x96) {                                                // nop
    } else if ((0x1a <= op && op <= 0x27) || (0x29 <= op && op <= 0x2e)) {  // Two operands.
      if (!need(2)) break;
      uint64_t b = stack_[--depth], a = stack_[depth - 1], value = 0;
      auto sa = static_cast<int64_t>(a), sb = static_cast<int64_t>(b);
      switch (op) {
        case 0x1a:
          value = a & b;
          break;
        case 0x1b:  // div
          if (b == 0 || (sa == INT64_MIN && sb == -1)) return false;
          value = static_cast<uint64_t>(sa / sb);
          break;
        case 0x1c:
          value = a - b;
          break;
        case 0x1d:  // mod
          if (b == 0) return false;
          value = a % b;
          break;
        case 0x1e:
          value = a * b;
          break;
        case 0x21:
          value = a | b;
          break;
        case 0x22:
          value = a + b;
          break;
        case 0x24:
          value = b < 64 ? a << b : 0;
          break;
        case 0x25:
          value = b < 64 ? a >> b : 0;
          break;
        case 0x26:
          value = static_cast<uint64_t>(sa >> (b < 64 ? b : 63));
          break;
        case 0x27:
          value = a ^ b;
          break;
        case 0x29:
          value = a == b;
          break;
        case 0x2a:
          value = sa >= sb;
          break;
        case 0x2b:
          value = sa > sb;
          break;
        case 0x2c:
          value = sa <= sb;
          break;
        case 0x2d:
          value = sa < sb;
          break;
        case 0x2e:
          value = a != b;
          break;
        default:
          return false;
      }
      stack_[depth - 1] = value;
    } else {
      return false;
    }
  }
  if (in.bad() || depth == 0) return false;
  *result = stack_[depth - 1];
  return true;
}

}  // namespace malloscope::unwind
