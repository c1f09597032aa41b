// SPDX-License-Identifier: Apache-2.0
// A number for each cell of an index, in as few bits as they fit into. Whoever goes through very
// many blocks looks up the cell of each; that is a wait, and a short one if all cells are in a
// cache.

#pragma once

#include <cstdint>
#include <vector>

namespace malloscope::analyze {

template <unsigned kBits>
class SmallNumbers {
 public:
  static constexpr uint32_t kNobody = static_cast<uint32_t>((uint64_t{1} << kBits) - 1);

  explicit SmallNumbers(const std::vector<uint32_t>& numbers)
      : words_(numbers.size() / kInWord + 1) {
    for (size_t i = 0; i < numbers.size(); ++i)
      words_[i / kInWord] |= uint64_t{numbers[i] & kNobody} << i % kInWord * kBits;
  }
  uint32_t operator[](size_t cell) const {
    return static_cast<uint32_t>(words_[cell / kInWord] >> cell % kInWord * kBits) & kNobody;
  }

 private:
  static constexpr size_t kInWord = 64 / kBits;
  std::vector<uint64_t> words_;
};

// Returns visit(const SmallNumbers<...>&). All `numbers` are below `count`, or UINT32_MAX: nobody.
template <typename Visit>
auto with_small_numbers(const std::vector<uint32_t>& numbers, size_t count, Visit&& visit) {
  if (count <= SmallNumbers<1>::kNobody) return visit(SmallNumbers<1>(numbers));
  if (count <= SmallNumbers<2>::kNobody) return visit(SmallNumbers<2>(numbers));
  if (count <= SmallNumbers<4>::kNobody) return visit(SmallNumbers<4>(numbers));
  if (count <= SmallNumbers<8>::kNobody) return visit(SmallNumbers<8>(numbers));
  if (count <= SmallNumbers<16>::kNobody) return visit(SmallNumbers<16>(numbers));
  return visit(SmallNumbers<32>(numbers));
}

}  // namespace malloscope::analyze
