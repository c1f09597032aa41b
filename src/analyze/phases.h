// SPDX-License-Identifier: Apache-2.0
// Which phases are open, while the events of a trace go by: what strand a thread's next block is
// of. A forked child begins outside of all phases.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "analyze/strand.h"
#include "base/ids.h"
#include "wire/event.h"

namespace malloscope::analyze {

// The names of phases that were open together, in Tables::mark_names; those of the process first,
// each kind in the order in which they began. The last is the innermost.
using PhasePath = std::vector<uint32_t>;

// By PhasesId; that of kNone is empty.
struct PhasePaths {
  std::vector<PhasePath> paths = {{}};
  bool complete = true;  // False: some blocks are told to be in fewer phases than they are in.
};

// The name of the innermost phase of a strand; nothing: it is in none.
inline std::optional<uint32_t> innermost_phase(const PhasePaths& phases, StrandId strand) {
  uint32_t number = raw(phases_of(strand));
  if (number >= phases.paths.size() || phases.paths[number].empty()) return std::nullopt;
  return phases.paths[number].back();
}
inline constexpr const char* kNoPhase = "(no phase)";
inline constexpr const char* kPhasesNotTold =
    "there are more combinations of phases than are told apart; of some blocks it is not known "
    "which of them made them";

class Phases {
 public:
  // An event of Kind::kMark, with its name.
  void take(const wire::Event& mark);

  // Numbers are given to phases as they are met here: whoever shows it all events, in order, is
  // told the same.
  StrandId strand(ImageId image, ThreadId thread) {
    if (images_.empty()) [[likely]]
      return plain_strand(thread);
    if (image != last_.image || thread != last_.thread)
      last_ = {image, thread, strand_in(image, thread)};
    return last_.strand;
  }

  const PhasePaths& paths() const { return paths_; }
  void restore(PhasePaths paths) { paths_ = std::move(paths); }

 private:
  struct Open {
    uint32_t name = 0;
    uint32_t times = 0;  // Begun and not yet ended.
  };
  using Opens = std::vector<Open>;
  struct ImagePhases {
    Opens process;
    std::unordered_map<uint32_t, Opens> threads;
    std::unordered_map<uint32_t, StrandId> strands;  // By thread; those that were asked for.
  };

  StrandId strand_in(ImageId image, ThreadId thread);
  // Of as many of them as have one, the outermost first.
  PhasesId number_of(PhasePath path);
  static void begin(Opens* opens, uint32_t name);
  static void end(Opens* opens, uint32_t name);

  std::unordered_map<uint32_t, ImagePhases> images_;  // Of those that have named any.
  PhasePaths paths_;
  std::map<PhasePath, PhasesId> numbers_;
  struct Last {  // Most events are of the same thread as the one before.
    ImageId image = ImageId::kNone;
    ThreadId thread = ThreadId::kNone;
    StrandId strand = StrandId::kNone;
  };
  Last last_;
};

}  // namespace malloscope::analyze
