// SPDX-License-Identifier: Apache-2.0
// The live blocks of one image, by address.

#pragma once

#include <cstdint>

#include "analyze/strand.h"
#include "base/address_table.h"
#include "base/ids.h"

namespace malloscope::analyze {

struct Block {
  static constexpr unsigned kSizeBits = 58;
  static constexpr uint64_t kMostSize = (uint64_t{1} << kSizeBits) - 1;

  uint64_t address = 0;  // 0: no block.
  uint64_t size : kSizeBits = 0;
  uint64_t weight_log2 : 64 - kSizeBits = 0;  // Of wire/sampling.h; 0 unless it is of a sample.
  uint64_t born_tick = 0;
  StackId stack = StackId::kNone;     // Of the allocation, or of the last reallocation.
  StrandId strand = StrandId::kNone;  // The thread that made it, and its phases then.

  // What it adds to sums: so many blocks of its size. One, unless it is of a sample.
  uint64_t stands_for() const { return uint64_t{1} << weight_log2; }
  uint64_t bytes() const { return uint64_t{size} << weight_log2; }

  bool operator==(const Block&) const = default;
};

using BlockTable = AddressTable<Block>;

}  // namespace malloscope::analyze
