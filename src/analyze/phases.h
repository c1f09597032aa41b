// SPDX-License-Identifier: Apache-2.0
// Which phases are open, while the events of a trace go by: what strand a thread's next block is
// of. A forked child begins outside of all phases.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "analyze/strand.h"
#include "base/ids.h"
#include "wire/event.h"

namespace malloscope::analyze {

// The names of phases that were open together, in Tables::mark_names. The last is the innermost:
// that which began last, a thread's own behind those of its process. The others are in no order
// that tells anything.
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
  // More that are open at once are not told apart: of a program that forgets to end them.
  static constexpr size_t kMostTogether = 64;

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
  // Those that have begun and not yet ended, in the order in which they did.
  class Opens {
   public:
    void begin(uint32_t name);
    void end(uint32_t name);
    // Adds those that are not in it, up to kMostTogether in all.
    void add_to(PhasePath* path) const;
    size_t size() const { return names_.size(); }

   private:
    struct Open {
      uint64_t since = 0;  // Counts the begins.
      uint32_t times = 0;  // Begun and not yet ended.
    };
    std::unordered_map<uint32_t, Open> names_;
    std::map<uint64_t, uint32_t> order_;
    uint64_t begins_ = 0;
  };
  struct Known {
    uint64_t version = 0;
    StrandId strand = StrandId::kNone;
  };
  struct ImagePhases {
    Opens process;
    std::unordered_map<uint32_t, Opens> threads;
    uint64_t version = 1;                         // Counts the marks.
    std::unordered_map<uint32_t, Known> strands;  // By thread; good if they have the version.
  };

  StrandId strand_in(ImageId image, ThreadId thread);
  // Of as many of them, in the order in which they began, as have one.
  PhasesId number_of(PhasePath path);

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
