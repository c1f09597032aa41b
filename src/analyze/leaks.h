// SPDX-License-Identifier: Apache-2.0
// What was allocated in the window and is still live at its end: unique by stack,
// without what is known (suppressions.h), what leaks again and again first.

#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "analyze/answer.h"
#include "analyze/bad_frees.h"
#include "analyze/query.h"
#include "analyze/reading.h"
#include "analyze/suppressions.h"

namespace malloscope::analyze {

// When the blocks of a leak were made, in periods of the process's time in the window.
enum class Recurrence {
  kGrowing,   // In at least half of them, and again towards the end.
  kRepeated,  // In several.
  kOnce,      // In one.
};
Recurrence recurrence(uint32_t periods);  // As Details::live_periods.

// Stacks in few pieces of memory: there may be very many.
class StackPool {
 public:
  StackPool() = default;
  StackPool(StackPool&&) = default;  // Not a copy: stacks point into it.
  StackPool& operator=(StackPool&&) = default;

  // Stays where it is.
  std::span<const FrameId> keep(std::span<const FrameId> stack);

 private:
  std::vector<std::vector<FrameId>> pieces_;
};

// The blocks of all stacks that look the same.
struct Leak {
  // Innermost first, from the frame to blame on; none if hidden. In Leaks::stacks.
  std::span<const FrameId> stack;
  uint64_t blocks = 0;
  uint64_t bytes = 0;
  uint64_t first_tick = UINT64_MAX;
  uint64_t last_tick = 0;
  uint32_t periods = 0;                            // Of the process in which it came back most.
  size_t suppression = SuppressionMatcher::kNone;  // Of the list.
};

struct LeakSums {
  uint64_t unique = 0;
  uint64_t blocks = 0;
  uint64_t bytes = 0;

  void add(const Leak& leak) { ++unique, blocks += leak.blocks, bytes += leak.bytes; }
};

struct Leaks {
  StackPool stacks;
  std::vector<Leak> found;       // Growing ones first, those made once last; then by bytes.
  std::vector<Leak> suppressed;  // By bytes.
  LeakSums total, ignored, growing;
  size_t filters = 0;  // Suppressions that met something.
  // `within` matches no frame of any stack, as far as they were recorded: a typing error?
  bool nothing_within = false;
  // Not within, as far as can be told: their outer frames were not recorded.
  LeakSums undecided;
  // The same, of those that go through functions without names.
  LeakSums nameless;

  // Whether nothing was found, and that is no proof.
  bool proves_nothing() const {
    return total.unique == 0 && (nothing_within || nameless.unique > 0);
  }
};

// Why it proves nothing, as a sentence without a full stop.
std::string no_proof_text(const Leaks& leaks, const std::vector<Pattern>& within);

// For Query::tally, before the trace is read.
void ask_for_leaks(Query* query);

// `within`: only stacks with a frame that matches one of them; all if empty.
Leaks find_leaks(Reading* reading, const Query& query, const std::vector<Pattern>& within,
                 const Suppressions& suppressions);

// The functions of a leak's stack, whatever their lines and addresses: equal in two builds of a
// program. Their hash, since names are long and stacks deep.
using FunctionsHash = std::array<uint64_t, 2>;
FunctionsHash functions_of(const Leak& leak, const FrameTable& frames);

// What __lsan_default_suppressions() of the recorded programs and libraries say. Files in
// which it cannot be read are noted.
void add_embedded_suppressions(const Reading& reading, Suppressions* suppressions,
                               std::vector<std::string>* notes);

struct LeakView {
  std::vector<Pattern> within;
  bool stacks = false;           // As text too.
  bool show_suppressed = false;  // Each of them.
  size_t top = 0;                // Leaks that the reader will see; 0: all.
  bool for_programs = false;     // Full names, and which line suppressed how much.
  // functions_of() each leak of the trace that is compared with; null if there is none.
  const std::set<FunctionsHash>* known = nullptr;
  const BadFrees* bad_frees = nullptr;
};
// `reading` and `leaks` must outlive the answer.
Answer leaks_answer(Reading* reading, const Query& query, const Leaks& leaks,
                    const Suppressions& suppressions, const LeakView& view);
// Those that `known` does not have.
LeakSums new_leaks(const Leaks& leaks, const FrameTable& frames,
                   const std::set<FunctionsHash>& known);

}  // namespace malloscope::analyze
