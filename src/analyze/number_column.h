// SPDX-License-Identifier: Apache-2.0
// Columns of numbers, read fast. How many bytes a number has cannot be guessed, and a wrong guess
// takes longer than the number; so short ones are read without a branch. Where very many are read,
// those of a batch have as many bytes each, so that none has to wait to know where it begins.
//
// All read beyond `end`, by kBehindColumn bytes at most; where a column is too short, `at` is
// behind it afterwards, and its reader must see to that.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/attributes.h"
#include "base/varint.h"

namespace malloscope::analyze {

inline constexpr size_t kBehindColumn = 32;

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

// Numbers by the batch: how many bytes each has, how many there are that do not fit, the numbers'
// low bytes, and of those the place (a byte) and the rest.
inline constexpr size_t kBatch = 128;
inline constexpr unsigned kMostWidth = 4;
void put_batches(std::span<const uint64_t> numbers, std::vector<uint8_t>* column);

// The next batch, of `count` numbers; false: there are not as many, or it makes no sense.
bool next_batch(const uint8_t*& at, const uint8_t* end, size_t count, uint64_t* numbers);

}  // namespace malloscope::analyze
