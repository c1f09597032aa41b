// SPDX-License-Identifier: Apache-2.0
// What code is mapped where: the modules the loader knows, those met so far, and
// the frames that JIT compilers register. The idea is told in modules.cc.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/arena.h"
#include "base/attributes.h"
#include "unwind/eh_frame.h"
#include "unwind/rule.h"

namespace malloscope::unwind {

// --- The state of the process's code, in one word that every walk looks at.

struct Epoch {
  uint64_t bits;
  // Changes whenever a pc may have come to mean something else.
  uint32_t generation() const { return static_cast<uint32_t>(bits >> 32); }
  // A module is being unloaded: nothing remembered can be trusted.
  bool unloading() const { return static_cast<uint32_t>(bits) != 0; }
  // Meanwhile something was given the new generation, so that it cannot be taken back.
  static constexpr uint64_t kUsed = uint64_t{1} << 31;
  // A thread that has ended its unload meanwhile has found a module gone, or not to be trusted.
  static constexpr uint64_t kChanged = uint64_t{1} << 30;
  bool operator==(const Epoch&) const = default;
};
extern std::atomic<uint64_t> epoch_bits;
MSCOPE_FAST Epoch epoch() { return {epoch_bits.load(std::memory_order_acquire)}; }

// The same as the calling thread must take it: one that unloads code still runs what is going away.
Epoch epoch_here();

// Once per process image, before the first walk and again in a forked child:
// forgets everything and takes memory from `arena` from now on.
void start(Arena& arena);

// Around dlclose(). The generation stays changed if a module that had been met is gone, or if
// somebody has used it meanwhile; if both, it changes once more.
void begin_unload();
void end_unload();

// Changes the generation: every cached rule, memo and path hash becomes void.
void flush();

// --- Modules.

// A file that the loader has mapped and that a walk has met. Never changes or goes away
// once it is in the table. To find the module of a pc in a stack of generation
// g: the last in the table that contains it and whose generation is not above g.
struct Module {
  uintptr_t start, end;  // All its segments, and what lies between.
  uintptr_t bias;        // What to subtract from a pc to get an address in the file.
  const char* name;      // As the loader has it: "" for the program itself. Ends with a zero.
  uint32_t name_size;    // Without the zero.
  uint32_t generation;   // In which it was first met.
  uint8_t build_id[32];
  uint32_t build_id_size;  // 0 if it has none.
  Section header, frames;  // .eh_frame_hdr and .eh_frame; empty if it has none.
};

#ifdef MSCOPE_FEW_MODULES  // So few that a test can fill the table.
inline constexpr size_t kMaxModules = 1 << 10;
#else
inline constexpr size_t kMaxModules = 1 << 20;
#endif

// How many there are; it only grows. Those below it are there.
size_t module_count();
const Module* module_at(size_t index);

// --- Frames registered at run time (__register_frame and its kin).

// `section` is a whole .eh_frame section, ended by a zero length, that must stay
// as it is until removed. False if there was no room or it makes no sense.
bool add_frames(const void* section);
// False if it was not there (the real function must then still be called).
bool remove_frames(const void* section);

// --- What all this is for.

// Where a pc's CFI is. False if no module or registered section has it.
struct CfiSource {
  Section header, frames;
  const Module* module;  // nullptr: registered frames.
};
bool find_cfi(uintptr_t pc, CfiSource* out, Epoch now = epoch_here());

// Whether anything is known at `pc` now; for pcs at which there was nothing before.
bool is_known(uintptr_t pc);

// The rule for a key, found out from scratch. Slow, safe to call from anywhere.
Rule find_rule(uintptr_t key, Epoch now = epoch_here());

// The same, from the cache if there is one to be trusted.
Rule find_rule_cached(uintptr_t key, Epoch now);

}  // namespace malloscope::unwind
