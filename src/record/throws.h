// SPDX-License-Identifier: Apache-2.0
// Random throws for the sampler: a congruential generator, of which the upper bits are good ones,
// for each thread.

#pragma once

#include <cstdint>

#include "base/attributes.h"

namespace malloscope::record {

// Where throws begin; never 0. What threads and forked children differ by is little, and such a
// generator would keep it so: the bits are mixed well first (the finish of splitmix64).
constexpr uint64_t first_throw(uint64_t place, uint64_t stamp) {
  uint64_t seed = place + stamp * 0x9e3779b97f4a7c15;
  seed = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9;
  seed = (seed ^ seed >> 27) * 0x94d049bb133111eb;
  return (seed ^ seed >> 31) | 1;
}

// True once in 2^log2 times; log2 is at least 1.
MSCOPE_FAST bool throw_hits(uint64_t* state, unsigned log2) {
  *state = *state * 6364136223846793005 + 1442695040888963407;
  return *state >> (64 - log2) == 0;
}

}  // namespace malloscope::record
