// SPDX-License-Identifier: Apache-2.0
// A compiler describes each function's frame as a program (CFI) that, run up to
// a pc, says where the caller's registers are. Running it costs a few hundred
// nanoseconds, and for a given pc it always says the same; so we run it once per
// pc and keep the result as a Rule.
//
//     .eh_frame_hdr      pc -> FDE, sorted: a binary search
//     .eh_frame          CIE: what many functions share     FDE: one function
//
// The bytes are those of whatever the program has mapped, so nothing in them is
// believed: every length is cut to the section, every pointer must lead back
// into it, and a table that is not sorted at worst finds nothing, because the
// FDE it leads to must itself claim the pc.

#include "unwind/eh_frame.h"

#include <cstring>
#include <type_traits>

namespace malloscope::unwind {
namespace {

// How a pointer is stored (DW_EH_PE_*): format in the low nibble, base above.
constexpr uint8_t kOmit = 0xff, kIndirect = 0x80, kPcRelative = 0x10, kDataRelative = 0x30;
constexpr uint8_t kSortedTable = kDataRelative | 0x0b;  // Pairs of 4-byte offsets.
constexpr size_t kPairBytes = 8;

// Far above what is met, so that hostile bytes cost time in proportion to their
// number and no more.
constexpr size_t kMaxAugmentation = 15, kMaxProgram = 1 << 20;

uintptr_t address_at(const Section& section, const uint8_t* at) {
  return section.address + static_cast<uintptr_t>(at - section.bytes);
}

uint64_t read_format(Cursor& in, uint8_t encoding) {
  switch (encoding & 0x0f) {
    case 0x00:
      return in.fixed<uint64_t>();
    case 0x01:
      return in.uleb();
    case 0x02:
      return in.fixed<uint16_t>();
    case 0x03:
      return in.fixed<uint32_t>();
    case 0x04:
      return in.fixed<uint64_t>();
    case 0x09:
      return static_cast<uint64_t>(in.sleb());
    case 0x0a:
      return static_cast<uint64_t>(in.fixed<int16_t>());
    case 0x0b:
      return static_cast<uint64_t>(in.fixed<int32_t>());
    case 0x0c:
      return in.fixed<uint64_t>();
  }
  in.fail();
  return 0;
}

uintptr_t read_pointer(Cursor& in, uint8_t encoding, const Section& section) {
  uintptr_t here = address_at(section, in.at());
  uint64_t value = read_format(in, encoding);
  switch (encoding & 0xf0) {
    case 0:
      return value;
    case kPcRelative:
      return here + value;
    case kDataRelative:
      return section.address + value;
  }
  in.fail();
  return 0;
}

// The length in front of every entry. Returns a cursor over the entry; empty and
// `bad` if there is none.
Cursor read_entry(Cursor& in) {
  uint64_t length = in.fixed<uint32_t>();
  if (length == 0xffffffff) length = in.fixed<uint64_t>();
  if (in.bad() || length > in.left()) {
    in.fail();
    Cursor none(in.at(), in.at());
    none.fail();
    return none;
  }
  Cursor entry(in.at(), in.at() + length);
  in.skip(length);
  return entry;
}

struct Cie {
  uint64_t code_align;
  int64_t data_align;
  uint8_t encoding;
  bool counted, signal;  // Whether FDEs carry augmentation data.
  const uint8_t *program, *end;
};

bool read_cie(const Section& section, size_t offset, Cie* out) {
  if (offset >= section.size) return false;
  Cursor in(section.bytes + offset, section.bytes + section.size);
  Cursor entry = read_entry(in);
  if (entry.fixed<uint32_t>() != 0) return false;  // Not a CIE.
  uint8_t version = entry.byte();
  if (version != 1 && version != 3 && version != 4) return false;
  const uint8_t* augmentation = entry.at();
  size_t letters = 0;
  while (entry.byte() != 0)
    if (++letters > kMaxAugmentation) return false;
  if (version == 4 && (entry.byte() != sizeof(uintptr_t) || entry.byte() != 0)) return false;
  out->code_align = entry.uleb();
  out->data_align = entry.sleb();
  uint64_t pc_register = version == 1 ? entry.byte() : entry.uleb();
  if (entry.bad() || pc_register != arch::kPc) return false;

  out->encoding = 0;
  out->signal = false;
  out->counted = *augmentation == 'z';
  if (out->counted) {
    uint64_t size = entry.uleb();
    if (size > entry.left()) return false;
    Cursor data(entry.at(), entry.at() + size);
    entry.skip(size);
    while (*++augmentation != 0) {
      if (*augmentation == 'R') {
        out->encoding = data.byte();
      } else if (*augmentation == 'P') {
        uint8_t encoding = data.byte();
        if (encoding != kOmit) read_format(data, encoding);
      } else if (*augmentation == 'L') {
        data.byte();
      } else if (*augmentation == 'S') {
        out->signal = true;
      } else {
        return false;
      }
    }
    if (data.bad()) return false;
  } else if (*augmentation != 0) {
    return false;
  }
  out->program = entry.at();
  out->end = entry.end();
  return !entry.bad();
}

enum class Entry { kFde, kOther, kEnd };

// The entry at `*offset`, which is moved past it.
Entry read_fde(const Section& section, size_t* offset, Fde* out) {
  if (*offset >= section.size || section.size > UINT32_MAX) return Entry::kEnd;
  Cursor in(section.bytes + *offset, section.bytes + section.size);
  Cursor entry = read_entry(in);
  if (in.bad() || entry.done()) return Entry::kEnd;  // A length of zero ends the section.
  *offset = static_cast<size_t>(in.at() - section.bytes);

  size_t id_offset = static_cast<size_t>(entry.at() - section.bytes);
  uint32_t back = entry.fixed<uint32_t>();
  if (entry.bad()) return Entry::kEnd;
  if (back == 0) return Entry::kOther;  // A CIE.
  Cie cie;
  if (back > id_offset || !read_cie(section, id_offset - back, &cie)) return Entry::kOther;
  if (cie.encoding & kIndirect) return Entry::kOther;
  out->section = section;
  out->start = read_pointer(entry, cie.encoding, section);
  out->end = out->start + read_format(entry, cie.encoding & 0x0f);
  if (cie.counted) entry.skip(entry.uleb());
  if (entry.bad() || out->end < out->start || entry.left() > kMaxProgram) return Entry::kOther;
  out->code_align = cie.code_align;
  out->data_align = cie.data_align;
  out->signal = cie.signal;
  auto place = [&](const uint8_t* at) { return static_cast<uint32_t>(at - section.bytes); };
  out->common = place(cie.program), out->common_end = place(cie.end);
  out->own = place(entry.at()), out->own_end = place(entry.end());
  return Entry::kFde;
}

// Offset of the pairs in the header, and how many there are; false if it has no
// table that we can search.
bool search_table(const Section& header, size_t* offset, size_t* count) {
  Cursor in(header.bytes, header.bytes + header.size);
  if (in.byte() != 1) return false;
  uint8_t frames_encoding = in.byte(), count_encoding = in.byte();
  if (in.byte() != kSortedTable || count_encoding == kOmit) return false;
  read_format(in, frames_encoding);
  uint64_t stated = read_format(in, count_encoding);
  if (in.bad()) return false;
  size_t room = in.left() / kPairBytes;
  *offset = static_cast<size_t>(in.at() - header.bytes);
  *count = stated < room ? stated : room;
  return *count > 0;
}

uintptr_t table_word(const Section& header, size_t at) {
  int32_t value;
  memcpy(&value, header.bytes + at, sizeof value);
  return header.address + static_cast<uintptr_t>(intptr_t{value});
}

}  // namespace

template <typename T>
T Cursor::fixed() {
  T value = 0;
  if (left() < sizeof(T)) {
    fail();
    return 0;
  }
  memcpy(&value, at_, sizeof(T));
  at_ += sizeof(T);
  return value;
}
template uint8_t Cursor::fixed();
template int8_t Cursor::fixed();
template uint16_t Cursor::fixed();
template int16_t Cursor::fixed();
template uint32_t Cursor::fixed();
template int32_t Cursor::fixed();
template uint64_t Cursor::fixed();

uint64_t Cursor::uleb() {
  uint64_t result = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    uint8_t next = byte();
    result |= static_cast<uint64_t>(next & 0x7f) << shift;
    if (!(next & 0x80)) return result;
  }
  fail();
  return 0;
}

int64_t Cursor::sleb() {
  uint64_t result = 0;
  for (unsigned shift = 0; shift < 64;) {
    uint8_t next = byte();
    result |= static_cast<uint64_t>(next & 0x7f) << shift;
    shift += 7;
    if (next & 0x80) continue;
    if (shift < 64 && (next & 0x40)) result |= ~uint64_t{0} << shift;
    return static_cast<int64_t>(result);
  }
  fail();
  return 0;
}

void Cursor::skip(uint64_t bytes) {
  if (bytes > left()) {
    fail();
  } else {
    at_ += bytes;
  }
}

uintptr_t frames_address(const Section& header) {
  Cursor in(header.bytes, header.bytes + header.size);
  if (in.byte() != 1) return 0;
  uint8_t encoding = in.byte();
  in.skip(2);
  if (encoding == kOmit || (encoding & kIndirect)) return 0;
  uintptr_t address = read_pointer(in, encoding, header);
  return in.bad() ? 0 : address;
}

bool find_fde(const Section& header, const Section& frames, uintptr_t pc, Fde* out) {
  size_t table, count;
  if (search_table(header, &table, &count)) {
    // The last pair whose function starts at or before pc.
    size_t low = 0;
    while (count > 1) {
      size_t half = count / 2;
      if (table_word(header, table + (low + half) * kPairBytes) <= pc) low += half;
      count -= half;
    }
    size_t offset = table_word(header, table + low * kPairBytes + 4) - frames.address;
    return read_fde(frames, &offset, out) == Entry::kFde && out->start <= pc && pc < out->end;
  }
  auto covers = [](const Fde& fde, void* context) {
    uintptr_t wanted = *static_cast<uintptr_t*>(context);
    return fde.start <= wanted && wanted < fde.end;
  };
  size_t offset = 0;
  for (;;) {
    Entry entry = read_fde(frames, &offset, out);
    if (entry == Entry::kEnd) return false;
    if (entry == Entry::kFde && covers(*out, &pc)) return true;
  }
}

size_t scan_fdes(const Section& frames, bool (*each)(const Fde&, void* context), void* context) {
  size_t offset = 0;
  for (Fde fde;;) {
    Entry entry = read_fde(frames, &offset, &fde);
    if (entry == Entry::kEnd || (entry == Entry::kFde && each(fde, context))) return offset;
  }
}

namespace {

constexpr bool fits(int64_t value) { return value == static_cast<int32_t>(value); }

// Runs one of the two programs of `fde` until it has described `pc`.
template <typename Row>
class Interpreter {
 public:
  Interpreter(const Fde& fde, uintptr_t pc, Rows<Row>* rows) : fde_(fde), pc_(pc), rows_(*rows) {}

  bool run() {
    rows_.now = Row{};
    location_ = fde_.start;
    if (!run(fde_.common, fde_.common_end)) return false;
    rows_.initial = rows_.now;
    return run(fde_.own, fde_.own_end);
  }

 private:
  bool run(uint32_t from, uint32_t to) {
    Cursor in(fde_.section.bytes + from, fde_.section.bytes + to);
    // Rows are in the order of their pcs: the first past ours ends it.
    while (!in.done() && location_ <= pc_) step(in);
    return !in.bad();
  }

  void step(Cursor& in) {
    uint8_t op = in.byte(), low = op & 0x3f;
    switch (op & 0xc0) {
      case 0x40:
        return advance(low);
      case 0x80:
        return put_offset(in, low, static_cast<int64_t>(in.uleb()), Place::kAtCfa);
      case 0xc0:
        return restore(in, low);
    }
    switch (op) {
      case 0x00:
        return;            // nop
      case 0x01:           // set_loc
        return in.fail();  // Compilers advance instead.
      case 0x02:
        return advance(in.byte());  // advance_loc1, 2, 4
      case 0x03:
        return advance(in.fixed<uint16_t>());
      case 0x04:
        return advance(in.fixed<uint32_t>());
      case 0x05: {  // offset_extended
        uint64_t reg = in.uleb();
        return put_offset(in, reg, static_cast<int64_t>(in.uleb()), Place::kAtCfa);
      }
      case 0x06:
        return restore(in, in.uleb());  // restore_extended
      case 0x07:
        return put(in, in.uleb(), {Place::kLost});  // undefined
      case 0x08:
        return put(in, in.uleb(), {Place::kSame});  // same_value
      case 0x09: {                                  // register
        uint64_t reg = in.uleb(), other = in.uleb();
        if (other >= arch::kRegisters) return in.fail();
        return put(in, reg, {Place::kRegister, static_cast<uint8_t>(other)});
      }
      case 0x0a:  // remember_state
        if (depth_ == Rows<Row>::kRemembered) return in.fail();
        rows_.remembered[depth_++] = rows_.now;
        return;
      case 0x0b:  // restore_state
        if (depth_ == 0) return in.fail();
        rows_.now = rows_.remembered[--depth_];
        return;
      case 0x0c: {  // def_cfa
        uint64_t reg = in.uleb();
        return put_cfa(in, reg, static_cast<int64_t>(in.uleb()));
      }
      case 0x0d:
        return put_cfa(in, in.uleb(), rows_.now.cfa.value);  // def_cfa_register
      case 0x0e:                                             // def_cfa_offset
        return put_cfa(in, rows_.now.cfa.reg, static_cast<int64_t>(in.uleb()));
      case 0x0f:  // def_cfa_expression
        rows_.now.cfa = read_expression(in, Place::kIsExpression);
        return;
      case 0x10: {  // expression
        uint64_t reg = in.uleb();
        return put(in, reg, read_expression(in, Place::kAtExpression));
      }
      case 0x11: {  // offset_extended_sf
        uint64_t reg = in.uleb();
        return put_offset(in, reg, in.sleb(), Place::kAtCfa);
      }
      case 0x12: {  // def_cfa_sf
        uint64_t reg = in.uleb();
        return put_cfa(in, reg, scaled(in, in.sleb()));
      }
      case 0x13:  // def_cfa_offset_sf
        return put_cfa(in, rows_.now.cfa.reg, scaled(in, in.sleb()));
      case 0x14: {  // val_offset
        uint64_t reg = in.uleb();
        return put_offset(in, reg, static_cast<int64_t>(in.uleb()), Place::kCfaPlus);
      }
      case 0x15: {  // val_offset_sf
        uint64_t reg = in.uleb();
        return put_offset(in, reg, in.sleb(), Place::kCfaPlus);
      }
      case 0x16: {  // val_expression
        uint64_t reg = in.uleb();
        return put(in, reg, read_expression(in, Place::kIsExpression));
      }
      case 0x2e:
        in.uleb();
        return;     // GNU_args_size
      case 0x2f: {  // GNU_negative_offset_extended
        uint64_t reg = in.uleb(), offset = in.uleb();
        return put_offset(in, reg, -static_cast<int64_t>(offset), Place::kAtCfa);
      }
    }
    in.fail();
  }

  void advance(uint64_t delta) {
    uintptr_t next;
    if (__builtin_mul_overflow(delta, fde_.code_align, &next) ||
        __builtin_add_overflow(next, location_, &next))
      next = UINTPTR_MAX;
    location_ = next;
  }

  int64_t scaled(Cursor& in, int64_t factor) {
    int64_t result;
    if (__builtin_mul_overflow(factor, fde_.data_align, &result) || !fits(result)) in.fail();
    return in.bad() ? 0 : result;
  }

  // A register that we do not unwind (a vector register, say) is not an error.
  void put(Cursor&, uint64_t reg, Place place) {
    if (Place* known = rows_.now.of(reg)) *known = place;
  }

  void put_offset(Cursor& in, uint64_t reg, int64_t factor, Place::Kind kind) {
    int64_t offset = scaled(in, factor);
    put(in, reg, {kind, 0, static_cast<int32_t>(offset)});
  }

  void put_cfa(Cursor& in, uint64_t reg, int64_t offset) {
    if (reg >= arch::kRegisters || !fits(offset)) return in.fail();
    rows_.now.cfa = {Place::kRegister, static_cast<uint8_t>(reg), static_cast<int32_t>(offset)};
  }

  void restore(Cursor&, uint64_t reg) {
    Place* known = rows_.now.of(reg);
    if (known) *known = *rows_.initial.of(reg);
  }

  Place read_expression(Cursor& in, Place::Kind kind) {
    auto offset = in.at() - fde_.section.bytes;
    in.skip(in.uleb());
    if (!fits(offset)) in.fail();
    return {kind, 0, static_cast<int32_t>(offset)};
  }

  const Fde& fde_;
  uintptr_t pc_, location_ = 0;
  Rows<Row>& rows_;
  unsigned depth_ = 0;
};

// Whether a place is given by an expression that is just `*(register + *offset)`,
// or `register + *offset` if not `loaded`.
[[gnu::noinline]] bool is_plain(const Fde& fde, const Place& place, unsigned reg, bool loaded,
                                int64_t* offset) {
  constexpr uint8_t kBreg0 = 0x70, kDeref = 0x06;
  Cursor in = expression(fde, place);
  if (in.byte() != kBreg0 + reg) return false;
  *offset = in.sleb();
  if (loaded && in.byte() != kDeref) return false;
  return !in.bad() && in.done();
}

}  // namespace

bool run(const Fde& fde, uintptr_t pc, Rows<SmallRow>* rows) {
  return Interpreter<SmallRow>(fde, pc, rows).run();
}
bool run(const Fde& fde, uintptr_t pc, Rows<FullRow>* rows) {
  return Interpreter<FullRow>(fde, pc, rows).run();
}

Cursor expression(const Fde& fde, const Place& place) {
  const uint8_t* end = fde.section.bytes + fde.section.size;
  Cursor in(fde.section.bytes + place.value, end);
  uint64_t size = in.uleb();
  if (in.bad() || size > in.left()) {
    in.fail();
    return in;
  }
  return Cursor(in.at(), in.at() + size);
}

Rule compile(const Fde& fde, const SmallRow& row, uintptr_t key) {
  const Place &cfa = row.cfa, &fp = row.fp, &pc = row.pc;
  if (pc.kind == Place::kLost) return Rule(Rule::kEnd);
  if (cfa.kind == Place::kUnset || pc.kind == Place::kUnset || pc.kind == Place::kSame)
    return Rule(Rule::kStop);

  int64_t offset = 0;
  if (fde.signal) {
    bool usual = cfa.kind == Place::kIsExpression && pc.kind == Place::kAtExpression &&
                 fp.kind == Place::kAtExpression && is_plain(fde, cfa, arch::kSp, true, &offset) &&
                 offset == arch::kSignalSp && is_plain(fde, pc, arch::kSp, false, &offset) &&
                 offset == arch::kSignalPc && is_plain(fde, fp, arch::kSp, false, &offset) &&
                 offset == arch::kSignalFp;
    return Rule(usual ? Rule::kSignal : Rule::kSlow);
  }

  if (pc.kind != Place::kAtCfa || pc.value != arch::kReturnSlot) return Rule(Rule::kSlow);
  // The caller's sp is the CFA, unless it says otherwise.
  if (row.sp.kind != Place::kUnset) return Rule(Rule::kSlow);

  if (cfa.kind == Place::kIsExpression && is_plain(fde, cfa, arch::kFp, true, &offset)) {
    int64_t saved = 0;
    bool usual = fp.kind == Place::kAtExpression && is_plain(fde, fp, arch::kFp, false, &saved) &&
                 saved == 0;
    return usual ? Rule::make(Rule::kFpDeref, offset, 0) : Rule(Rule::kSlow);
  }

  bool fp_kept = fp.kind == Place::kUnset || fp.kind == Place::kSame || fp.kind == Place::kLost;
  if (!fp_kept && (fp.kind != Place::kAtCfa || fp.value == 0)) return Rule(Rule::kSlow);
  int64_t fp_offset = fp_kept ? 0 : fp.value;

  if (cfa.kind == Place::kIsExpression) {
    Cursor bytes = expression(fde, cfa);
    if (!arch::plt_offset(bytes.at(), bytes.left(), pc_of(key), &offset)) return Rule(Rule::kSlow);
    return Rule::make(Rule::kSp, offset, fp_offset);
  }
  if (cfa.reg == arch::kSp) return Rule::make(Rule::kSp, cfa.value, fp_offset);
  if (cfa.reg == arch::kFp) return Rule::make(Rule::kFp, cfa.value, fp_offset);
  return Rule(Rule::kSlow);
}

// Apart from the search, so that the two do not need their room at the same time: all
// this may have to run on a small stack.
[[gnu::noinline]] static Rule compile_at(const Fde& fde, uintptr_t pc, uintptr_t key) {
  Rows<SmallRow> rows;
  return run(fde, pc, &rows) ? compile(fde, rows.now, key) : Rule(Rule::kStop);
}

Rule rule_from(const Section& header, const Section& frames, uintptr_t key) {
  Fde fde;
  uintptr_t pc = lookup_pc(key);
  if (!find_fde(header, frames, pc, &fde)) {
    // A function that nobody calls, yet others return to at its first byte: its
    // address was planted. Behind it is either a signal or, under a stack that
    // was made by hand (makecontext), nothing.
    if (pc == key || !find_fde(header, frames, key, &fde) || fde.start != key)
      return Rule(Rule::kStop);
    if (!fde.signal) return Rule(Rule::kEnd);
    pc = key;
  }
  return compile_at(fde, pc, key);
}

}  // namespace malloscope::unwind
