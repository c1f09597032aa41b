// SPDX-License-Identifier: Apache-2.0
// What a workload asks for: how large, how often, when.

#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "base/error.h"
#include "replay/reader.h"

namespace malloscope::replay {

// Requests for memory: calls that make a block, and reallocations.
struct Requests {
  uint64_t count = 0;
  uint64_t bytes = 0;
  uint64_t smallest = UINT64_MAX;
  uint64_t largest = 0;

  void add(uint64_t size);
  double average() const {
    return count == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(count);
  }
};

struct Statistics {
  Requests all;
  std::map<uint64_t, uint64_t> sizes;    // Calls by exact size.
  std::array<uint64_t, 65> powers = {};  // By power of two: class k from 2^(k-1) to 2^k - 1.
  std::vector<Requests> slices;          // Equal parts of the time: smallest, mean and largest
                                         // of each are kept.
};

// Reads the whole workload, so it also checks it.
Result<Statistics> statistics(const WorkloadReader& workload, size_t slices);

}  // namespace malloscope::replay
