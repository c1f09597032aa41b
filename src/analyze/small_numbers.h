// SPDX-License-Identifier: Apache-2.0
// A number for each cell of an index, in as few bytes as they fit into. Whoever goes through very
// many blocks looks up the cell of each; that is a wait, and a short one if many cells are in a
// cache line.

#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace malloscope::analyze {

template <typename Number>
class SmallNumbers {
 public:
  static constexpr Number kNobody = std::numeric_limits<Number>::max();

  explicit SmallNumbers(const std::vector<uint32_t>& numbers)
      : numbers_(numbers.begin(), numbers.end()) {}
  Number operator[](size_t cell) const { return numbers_[cell]; }

 private:
  std::vector<Number> numbers_;
};

// Returns visit(const SmallNumbers<...>&). All `numbers` are below `count`, or UINT32_MAX: nobody.
template <typename Visit>
auto with_small_numbers(const std::vector<uint32_t>& numbers, size_t count, Visit&& visit) {
  if (count <= UINT8_MAX) return visit(SmallNumbers<uint8_t>(numbers));
  if (count <= UINT16_MAX) return visit(SmallNumbers<uint16_t>(numbers));
  return visit(SmallNumbers<uint32_t>(numbers));
}

}  // namespace malloscope::analyze
