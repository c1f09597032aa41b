// SPDX-License-Identifier: Apache-2.0
// Columns of numbers, read fast. How many bytes a number has cannot be guessed, and a wrong guess
// takes longer than the number; so short ones are read without a branch.
//
// All read beyond `end`, by kBehindColumn bytes at most; where a column is too short, `at` is
// behind it afterwards, and its reader must see to that.

#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/attributes.h"
#include "base/varint.h"

namespace malloscope::analyze {

inline constexpr size_t kBehindColumn = 16;

inline uint64_t next_of_any_length(const uint8_t*& at, const uint8_t* end) {
  uint64_t value = 0;
  const uint8_t* next = get_varint(at, end, &value);
  at = next ? next : end + 1;
  return value;
}

// How many cells are left out between two that are told of: mostly few, so that each is one byte. A
// byte of kLongGap has the rest behind it.
inline constexpr uint8_t kLongGap = 255;
inline void put_gap(uint64_t gap, std::vector<uint8_t>* column) {
  if (gap < kLongGap) return column->push_back(static_cast<uint8_t>(gap));
  uint8_t bytes[kMaxVarintBytes];
  column->push_back(kLongGap);
  column->insert(column->end(), bytes, put_varint(bytes, gap - kLongGap));
}
MSCOPE_FAST uint64_t next_gap(const uint8_t*& at, const uint8_t* end) {
  uint64_t gap = *at++;
  if (gap == kLongGap) [[unlikely]]
    gap += next_of_any_length(at, end);
  return gap;
}

// Of mostly one byte or two.
MSCOPE_FAST uint64_t next_number(const uint8_t*& at, const uint8_t* end) {
  uint64_t first = at[0], second = at[1], more = first >> 7;
  if (more & second >> 7) [[unlikely]]
    return next_of_any_length(at, end);
  at += 1 + more;
  return (first & 0x7f) | (second << 7 & (0 - more));
}

// Of mostly up to four.
MSCOPE_FAST uint64_t next_long_number(const uint8_t*& at, const uint8_t* end) {
  uint32_t bytes;
  memcpy(&bytes, at, sizeof bytes);
  uint32_t last = ~bytes & 0x80808080;  // The lowest bit is of the last byte.
  if (last == 0) [[unlikely]]
    return next_of_any_length(at, end);
  at += static_cast<unsigned>(std::countr_zero(last)) / 8 + 1;
  bytes &= last ^ (last - 1);
  return (bytes & 0x7f) | (bytes >> 1 & 0x3f80) | (bytes >> 2 & 0x1fc000) |
         (bytes >> 3 & 0xfe00000);
}

}  // namespace malloscope::analyze
