// SPDX-License-Identifier: Apache-2.0
// What one event is, and the words it becomes on its way out of the target.
//
// A lane carries 64-bit words. Nearly every event is one word (a free, the begin
// of a realloc) or two (an allocation, the end of a realloc):
//
//     first word   63          21 20          4 3   0
//                 | address / 16 | ticks since | tag |
//                 |      43      | previous 17 |  4  |
//
//     second word  63        36 35   32 31          0
//                 | stack id   | entry |    size     |
//                 |     28     | point |     32      |
//
// What does not fit (a block not aligned to 16, a size of 4 GiB, a pause of more
// than 13 ms, a stack id beyond 2^28) and everything rare is an extended record:
//
//     first word   63      24 23          12 11    4 3   0
//                 | payload  | words in all | kind  |  0  |
//                 |    40    |      12      |   8   |  4  |
//
// Addresses of 0 are meaningful: free(NULL), and an allocation that failed.

#pragma once

#include <cstdint>

#include "base/attributes.h"
#include "base/ids.h"

namespace malloscope::wire {

// The function that the program called. The numbers are part of the formats.
enum class Op : uint8_t {
  kMalloc = 0,
  kCalloc,
  kRealloc,
  kReallocarray,
  kMemalign,
  kAlignedAlloc,
  kPosixMemalign,
  kValloc,
  kPvalloc,
  kNew,
  kNewArray,
  kNewAligned,
  kNewArrayAligned,
  kFree = 16,
  kFreeSized,
  kFreeAlignedSized,
  kCfree,
  kDelete,
  kDeleteArray,
  kDeleteAligned,
  kDeleteArrayAligned,
  kMmap = 24,
  kMunmap,
  kMremap,
  kBrk,
  kSbrk,
};
inline constexpr int kOps = 29;

// The names of the report's `calls`; empty for the numbers that are not in use.
inline constexpr const char* kOpNames[kOps] = {
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "new",
    "new_array",
    "new_aligned",
    "new_array_aligned",
    "",
    "",
    "",
    "free",
    "free_sized",
    "free_aligned_sized",
    "cfree",
    "delete",
    "delete_array",
    "delete_aligned",
    "delete_array_aligned",
    "mmap",
    "munmap",
    "mremap",
    "brk",
    "sbrk",
};

// Whether the call says which alignment it wants. valloc and pvalloc always want a page's.
MSCOPE_FAST constexpr bool is_aligned(Op op) {
  return (op >= Op::kMemalign && op <= Op::kPosixMemalign) || op == Op::kNewAligned ||
         op == Op::kNewArrayAligned;
}

inline constexpr int kMaxAlignmentLog2 = 63;

// The base-2 logarithm of an alignment, rounded up as memalign does. At least 1, since 0 is for
// those that were not recorded: no allocator's blocks lie at odd addresses.
MSCOPE_FAST constexpr uint8_t alignment_log2(uint64_t alignment) {
  if (alignment <= 2) return 1;
  int log2 = 64 - __builtin_clzll(alignment - 1);
  return static_cast<uint8_t>(log2 <= kMaxAlignmentLog2 ? log2 : kMaxAlignmentLog2);
}

enum class Kind : uint8_t {
  kAlloc,         // Stamped after the real call. Address 0: it failed.
  kFree,          // Stamped before the real call.
  kReallocBegin,  // Before the real call: the old block dies here ...
  kReallocEnd,    // ... and the new one is born here, on the same thread. Address 0 with size 0:
                  // it was a free. Address 0 with another size: it failed, the old block lives on.
  kMapping,       // mmap and its like; not part of the heap.
  kCallTime,      // `size` cycles is what the thread's last call took. With --time-calls only.
  kMark,    // The program named this moment. In a file `size` is the number of the image's mark;
            // shown by trace::stream, `flags` is its MarkKind and `size` its name.
  kPassed,  // The thread has made a block that is not in the sample; told once after each that is.
            // With --sample only, where a block might look temporary otherwise that is not.
};

// What a program says by malloscope.h. The numbers are part of the formats, and of what programs
// were compiled with. A phase is open from its begin to the end of the same name: for all threads,
// or for the thread that began it alone.
enum class MarkKind : uint8_t {
  kUnknown = 0,
  kMark = 1,
  kPhaseBegin = 2,
  kPhaseEnd = 3,
  kThreadPhaseBegin = 4,
  kThreadPhaseEnd = 5,
};
inline constexpr unsigned kMarkKinds = 6;
inline constexpr uint64_t kMostMarkBytes = 256;  // Of a name; what is longer is cut.

inline constexpr uint64_t kCpuOfRecorder = 1;  // A flag of a sample: the recorder was at work.

// Of one sample: a month. Sums of as many samples as a trace can hold fit into 64 bits.
inline constexpr uint64_t kMostCpuNanoseconds = uint64_t{30} * 24 * 3600 * 1'000'000'000;

inline constexpr uint8_t kInsideAllocator = 1;  // A mapping made by the allocator itself.
inline constexpr uint8_t kFailed = 2;           // A mapping call that failed.

// Whether an event is one of those that are counted as a call, a realloc once.
constexpr bool is_call(Kind kind) { return kind <= Kind::kReallocBegin; }

struct Event {
  uint64_t tick = 0;
  uint64_t address = 0;
  uint64_t size = 0;
  uint64_t other = 0;  // mremap: the old address. An allocation by an aligned entry point: log2 of
                       // the alignment it asked for, or 0 if that was not recorded.
  StackId stack = StackId::kNone;  // Of a free only with --free-stacks.
  ThreadId thread = ThreadId::kNone;
  ImageId image = ImageId::kNone;
  Kind kind = Kind::kAlloc;
  Op op = Op::kMalloc;
  uint8_t flags = 0;
};

// Tags of the first word.
enum Tag : uint64_t {
  kTagExtended = 0,
  kTagAlloc = 1,
  kTagReallocEnd = 2,
  kTagReallocBegin = 3,
  kTagFirstFree = 4,  // 4 + (op - Op::kFree), eight of them.
  kTagLastFree = 11,
};

inline constexpr uint64_t kMaxShortTicks = (1 << 17) - 1;
inline constexpr uint64_t kMaxShortAddress = uint64_t{1} << 47;
inline constexpr uint64_t kMaxShortSize = (uint64_t{1} << 32) - 1;
inline constexpr uint32_t kMaxShortStack = (1 << 28) - 1;

MSCOPE_FAST bool fits_short(uint64_t address, uint64_t ticks) {
  return ((address & 15) | (address >> 47)) == 0 && ticks <= kMaxShortTicks;
}

MSCOPE_FAST uint64_t short_word(uint64_t tag, uint64_t address, uint64_t ticks) {
  return address << 17 | ticks << 4 | tag;
}
MSCOPE_FAST uint64_t word_tag(uint64_t word) { return word & 15; }
MSCOPE_FAST uint64_t word_ticks(uint64_t word) { return word >> 4 & kMaxShortTicks; }
MSCOPE_FAST uint64_t word_address(uint64_t word) { return word >> 21 << 4; }

MSCOPE_FAST uint64_t block_word(StackId stack, Op op, uint64_t size) {
  return static_cast<uint64_t>(raw(stack)) << 36 | static_cast<uint64_t>(op) << 32 | size;
}
MSCOPE_FAST StackId block_stack(uint64_t word) {
  return StackId{static_cast<uint32_t>(word >> 36)};
}
MSCOPE_FAST Op block_op(uint64_t word) { return static_cast<Op>(word >> 32 & 15); }
MSCOPE_FAST uint64_t block_size(uint64_t word) { return word & 0xffffffff; }

// Kinds of extended records. Words after the first:
enum Extended : uint64_t {
  kTime = 1,          // tick: the absolute time that the next short record counts from.
  kWide = 2,          // tick, address, size, stack; payload: kind << 8 | op.
  kMappingEvent = 3,  // tick, address, size, stack, other; payload: flags << 8 | op.
  kStack = 4,         // id << 32 | owner, generation << 32 | frames kept of the owner's stack,
                      // then the new return addresses, outermost first. payload: flags.
  kModule = 5,       // start, end, load bias, generation << 32 | build-id bytes << 16 | path bytes,
                     // then the build-id and the path, each padded to a word.
  kThreadName = 6,   // 16 bytes of name.
  kNotFollowed = 7,  // The name of a program that was exec'd without the recorder, padded with
                     // zeros; payload: the Obstacle of base/elf.h, or one of those below.
  kFreeStack = 8,    // payload: the stack of the free that follows.
  kCallCycles = 9,   // payload: how many cycles the call took whose event came last.
  kAlignment = 10,   // payload: log2 of the alignment that the very next event asked for, which is
                     // an allocation by an aligned entry point, committed together with this.
  kMarkEvent = 11,   // tick, then the name, padded; payload: bytes of the name << 8 | MarkKind.
  kPassedOver = 12,  // See Kind::kPassed.
  kCpuSample = 13,   // tick, nanoseconds; payload: flags << 32 | stack. See CpuRecord in records.h.
};
inline constexpr uint64_t kMaxPayload = (uint64_t{1} << 40) - 1;
inline constexpr uint64_t kMaxExtendedWords = (1 << 12) - 1;

inline constexpr uint64_t kGainsRights = 255;
inline constexpr uint64_t kUnreachable = 254;  // The recorder's file cannot be seen from there.
inline constexpr uint64_t kSandboxed = 253;    // What the recorder does to join may be forbidden.

// Flags of a stack.
inline constexpr uint64_t kStackCut = 1;      // Deeper than we follow: the outer end is missing.
inline constexpr uint64_t kStackStopped = 2;  // The unwinder could not go on.

// In a stack, the top bit of a return address says that it is the very
// instruction a signal interrupted, not the one after a call.
inline constexpr uint64_t kInterrupted = uint64_t{1} << 63;

MSCOPE_FAST uint64_t extended_word(Extended kind, uint64_t words, uint64_t payload = 0) {
  return payload << 24 | words << 12 | static_cast<uint64_t>(kind) << 4;
}
MSCOPE_FAST Extended extended_kind(uint64_t word) {
  return static_cast<Extended>(word >> 4 & 0xff);
}
MSCOPE_FAST uint64_t extended_words(uint64_t word) { return word >> 12 & kMaxExtendedWords; }
MSCOPE_FAST uint64_t extended_payload(uint64_t word) { return word >> 24; }

}  // namespace malloscope::wire
