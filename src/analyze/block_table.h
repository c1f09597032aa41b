// SPDX-License-Identifier: Apache-2.0
// The live blocks of one image, by address.

#pragma once

#include <cstdint>

#include "analyze/strand.h"
#include "base/address_table.h"
#include "base/ids.h"

namespace malloscope::analyze {

struct Block {
  uint64_t address = 0;  // 0: no block.
  uint64_t size = 0;
  uint64_t born_tick = 0;
  StackId stack = StackId::kNone;     // Of the allocation, or of the last reallocation.
  StrandId strand = StrandId::kNone;  // The thread that made it, and its phases then.

  bool operator==(const Block&) const = default;
};

using BlockTable = AddressTable<Block>;

}  // namespace malloscope::analyze
