// SPDX-License-Identifier: Apache-2.0
#include "analyze/number_column.h"

#include <array>

namespace malloscope::analyze {

static void put_batch(std::span<const uint64_t> numbers, std::vector<uint8_t>* column) {
  auto varint_bytes = [](uint64_t value) {
    uint8_t bytes[kMaxVarintBytes];
    return static_cast<size_t>(put_varint(bytes, value) - bytes);
  };
  unsigned width = 0;
  size_t least = SIZE_MAX;
  for (unsigned w = 0; w <= kMostWidth; ++w) {
    size_t size = numbers.size() * w;
    for (uint64_t number : numbers)
      if (uint64_t rest = number >> 8 * w) size += 1 + varint_bytes(rest);
    if (size < least) least = size, width = w;
  }
  std::vector<uint8_t> long_ones;
  unsigned count = 0;
  column->push_back(static_cast<uint8_t>(width));
  size_t count_at = column->size();
  column->push_back(0);
  for (size_t i = 0; i < numbers.size(); ++i) {
    for (unsigned byte = 0; byte < width; ++byte)
      column->push_back(static_cast<uint8_t>(numbers[i] >> 8 * byte));
    uint64_t rest = numbers[i] >> 8 * width;
    if (rest == 0) continue;
    ++count;
    uint8_t bytes[kMaxVarintBytes];
    long_ones.push_back(static_cast<uint8_t>(i));
    long_ones.insert(long_ones.end(), bytes, put_varint(bytes, rest));
  }
  (*column)[count_at] = static_cast<uint8_t>(count);
  column->insert(column->end(), long_ones.begin(), long_ones.end());
}

void put_batches(std::span<const uint64_t> numbers, std::vector<uint8_t>* column) {
  for (; !numbers.empty(); numbers = numbers.subspan(std::min(numbers.size(), kBatch)))
    put_batch(numbers.first(std::min(numbers.size(), kBatch)), column);
}

template <typename Narrow>
static void widen(const uint8_t* __restrict from, size_t count, uint64_t* __restrict numbers) {
  auto widen_some = [=](size_t some) __attribute__((always_inline)) {
    for (size_t i = 0; i < some; ++i) {
      Narrow number;
      memcpy(&number, from + i * sizeof number, sizeof number);
      numbers[i] = number;
    }
  };
  // A compiler that knows how many there are takes several at once.
  if (count == kBatch) return widen_some(kBatch);
  widen_some(count);
}

bool next_batch(const uint8_t*& at, const uint8_t* end, size_t count, uint64_t* numbers) {
  if (end - at < 2) return false;
  unsigned width = at[0], long_ones = at[1];
  at += 2;
  if (width > kMostWidth || static_cast<size_t>(end - at) < count * width) return false;
  switch (width) {
    case 0:
      std::fill_n(numbers, count, 0);
      break;
    case 1:
      widen<uint8_t>(at, count, numbers);
      break;
    case 2:
      widen<uint16_t>(at, count, numbers);
      break;
    case 3:
      for (size_t i = 0; i < count; ++i) {
        uint32_t number;
        memcpy(&number, at + i * 3, sizeof number);
        numbers[i] = number & 0xffffff;
      }
      break;
    default:
      widen<uint32_t>(at, count, numbers);
  }
  at += count * width;
  for (; long_ones > 0; --long_ones) {
    if (at >= end) return false;
    size_t place = *at++;
    uint64_t rest = 0;
    at = get_varint(at, end, &rest);
    if (!at || place >= count || rest > UINT64_MAX >> 8 * width) return false;
    numbers[place] |= rest << 8 * width;
  }
  return true;
}

}  // namespace malloscope::analyze
