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
