// SPDX-License-Identifier: Apache-2.0
// The walk without a memory: one rule and one or two loads a frame.

#include "unwind/walk.h"

namespace malloscope::unwind {

Captured walk_plain(Start start, StackReader& reader, Epoch now, std::span<uintptr_t> room) {
  Captured result;
  result.generation = now.generation();
  uintptr_t* keys = room.data();
  size_t count_now = 0;
  State at = first_state(start);
  while (at.key != 0) {
    if (count_now == room.size()) {
      result.cut = true;
      break;
    }
    keys[count_now++] = at.key;
    Rule rule = find_rule_cached(at.key, now);
    if (rule.kind() == Rule::kEnd) break;
    if (rule.kind() > Rule::kEnd || !step(&at, rule, reader)) {
      result.stopped = true;
      break;
    }
  }
  for (size_t i = 0; i < count_now / 2; ++i) {
    uintptr_t inner = keys[i];
    keys[i] = keys[count_now - 1 - i];
    keys[count_now - 1 - i] = inner;
  }
  uint64_t hash = path_seed(result.generation, result.cut, result.stopped);
  for (size_t i = 0; i < count_now; ++i) hash = extended(hash, keys[i]);
  result.hash = named(hash);
  result.fresh = {keys, count_now};
  return result;
}

Captured walk_plain(Start start, StackBounds bounds, std::span<uintptr_t> room) {
  StackReader reader = {};
  reader.set_bounds(bounds);
  reader.enter(start.slot);
  return walk_plain(start, reader, epoch(), room);
}

}  // namespace malloscope::unwind
