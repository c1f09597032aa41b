// SPDX-License-Identifier: Apache-2.0

#include "trace/tables.h"

#include <algorithm>

namespace malloscope::trace {

// No recorder follows stacks deeper than this; a file that claims more is lying.
static constexpr uint32_t kDeepest = 1 << 20;

bool StackTable::define(StackId id, StackId owner, uint32_t kept, uint32_t generation,
                        uint32_t flags, const uint64_t* frames_outermost_first, size_t count) {
  uint32_t number = raw(id);
  // Ids are handed out in order; a few may be missing, but not millions.
  constexpr uint32_t kGap = 1 << 20;
  if (number == 0 || raw(owner) >= number || number > defs_.size() + kGap) return false;
  if (kept > 0 && kept > depth(owner)) return false;
  if (count + kept > kDeepest || count + kept == 0) return false;
  if (number >= defs_.size()) defs_.resize(number + 1);
  if (defs_[number].depth == 0) ++count_;
  defs_[number] = {.owner = raw(owner),
                   .kept = kept,
                   .depth = kept + static_cast<uint32_t>(count),
                   .added = static_cast<uint32_t>(count),
                   .generation = generation,
                   .flags = flags,
                   .first = addresses_.size()};
  addresses_.insert(addresses_.end(), frames_outermost_first, frames_outermost_first + count);
  return true;
}

void StackTable::frames(StackId id, std::vector<uint64_t>* innermost_first) const {
  innermost_first->clear();
  if (!defined(id)) return;
  uint32_t wanted = defs_[raw(id)].depth;
  // `wanted` frames, counted from the root, of the stack `number`.
  for (uint32_t number = raw(id); wanted > 0;) {
    const Def& def = defs_[number];
    while (wanted > def.kept)
      innermost_first->push_back(addresses_[def.first + --wanted - def.kept]);
    number = def.owner;
  }
}

const Module* Image::module_of(uint64_t address, uint32_t generation) const {
  const Module* found = nullptr;
  for (const Module& module : modules)
    if (address >= module.start && address < module.end && module.generation <= generation &&
        (!found || module.generation >= found->generation))
      found = &module;
  return found;
}

}  // namespace malloscope::trace
