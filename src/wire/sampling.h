// SPDX-License-Identifier: Apache-2.0
// Which blocks a sampled recording has (`run --sample`), and how many each stands for.
//
// With a period of P bytes, a block of s bytes is recorded with probability 1 / w, by a throw of
// its own, and then stands for w blocks of its size. w is the power of two next below P / s, where
// both are rounded down to powers of two, and 1 for all that are not smaller than P. So
//
//     the expectation of a block's part in any sum, w * 1/w, is the block: sums of blocks and of
//       bytes are right on average, for every stack, thread and moment alike;
//     about one block is recorded for each P bytes, large ones all;
//     w is a whole number, and the size tells it: events carry no weights, and sums stay whole.

#pragma once

#include <cstdint>

#include "base/attributes.h"

namespace malloscope::wire {

inline constexpr unsigned kMostSampleLog2 = 40;

// log2 of w. `period_log2`: of P; 0 where every block is recorded.
MSCOPE_FAST constexpr unsigned sample_weight_log2(uint64_t size, unsigned period_log2) {
  unsigned log2 = 63 - static_cast<unsigned>(__builtin_clzll(size | 1));
  return period_log2 > log2 ? period_log2 - log2 : 0;
}

}  // namespace malloscope::wire
