// SPDX-License-Identifier: Apache-2.0
#include "analyze/number_column.h"

#include <gtest/gtest.h>

#include <random>

namespace malloscope::analyze {
namespace {

// Of `count` numbers, each with as many bits as `bits()` says.
template <typename Bits>
std::vector<uint64_t> numbers_of(size_t count, Bits&& bits) {
  std::mt19937_64 random(count);
  std::vector<uint64_t> numbers;
  for (size_t i = 0; i < count; ++i) {
    uint64_t width = bits(random());
    numbers.push_back(width == 0 ? 0 : random() >> (64 - width));
  }
  return numbers;
}

// What `column` tells of `count` numbers; empty: it makes no sense.
std::vector<uint64_t> read(std::span<const uint8_t> column, size_t count) {
  // In memory of its own, so that the address sanitizer sees a look beyond what is allowed.
  std::vector<uint8_t> bytes(column.begin(), column.end());
  bytes.resize(bytes.size() + kBehindColumn);
  bytes.shrink_to_fit();
  const uint8_t *at = bytes.data(), *end = at + column.size();
  std::vector<uint64_t> numbers;
  while (numbers.size() < count) {
    uint64_t batch[kBatch];
    size_t here = std::min(count - numbers.size(), kBatch);
    if (!next_batch(at, end, here, batch)) return {};
    numbers.insert(numbers.end(), batch, batch + here);
  }
  return at == end ? numbers : std::vector<uint64_t>();
}

std::vector<uint8_t> written(std::span<const uint64_t> numbers) {
  std::vector<uint8_t> column;
  put_batches(numbers, &column);
  return column;
}

TEST(NumberColumn, BatchesKeepNumbersOfAnyLength) {
  for (unsigned bits = 0; bits <= 64; ++bits)
    for (size_t count : {size_t{1}, kBatch - 1, kBatch, kBatch + 1, 5 * kBatch + 77}) {
      auto numbers = numbers_of(count, [&](uint64_t) { return uint64_t{bits}; });
      EXPECT_EQ(read(written(numbers), count), numbers) << bits << " bits, " << count;
    }
}

TEST(NumberColumn, BatchesKeepTheFewThatAreLonger) {
  auto numbers = numbers_of(2000, [](uint64_t random) { return random % 16 ? 8 : random % 65; });
  std::vector<uint8_t> column = written(numbers);
  EXPECT_EQ(read(column, numbers.size()), numbers);
  EXPECT_LT(column.size(), 2000 * 2);  // They cost the others nothing.
}

TEST(NumberColumn, BatchesTakeNoMoreThanTheyNeed) {
  EXPECT_EQ(written(std::vector<uint64_t>(kBatch, 0)).size(), 2u);
  EXPECT_EQ(written(std::vector<uint64_t>(kBatch, 200)).size(), 2 + kBatch);
  EXPECT_EQ(written(std::vector<uint64_t>(kBatch, 70'000)).size(), 2 + kBatch * 3);
}

TEST(NumberColumn, BatchesThatAreCutMakeNoSense) {
  auto numbers = numbers_of(300, [](uint64_t random) { return random % 40; });
  std::vector<uint8_t> column = written(numbers);
  for (size_t size = 0; size < column.size(); ++size)
    EXPECT_TRUE(read(std::span(column).first(size), numbers.size()).empty()) << size;
}

TEST(NumberColumn, BatchesThatAreForgedMakeNoSense) {
  std::vector<uint8_t> column(2 + 3 * 5, 1);
  column[0] = kMostWidth + 1, column[1] = 0;
  EXPECT_TRUE(read(column, 3).empty());  // A width that there is not.
  EXPECT_EQ(read(std::vector<uint8_t>{1, 1, 7, 8, 9, 2, 1}, 3), (std::vector<uint64_t>{7, 8, 265}));
  EXPECT_TRUE(read(std::vector<uint8_t>{1, 1, 7, 8, 9, 3, 1}, 3).empty());  // No such place.
  std::vector<uint8_t> beyond = {1, 1, 7, 0};
  uint8_t rest[kMaxVarintBytes];
  beyond.insert(beyond.end(), rest, put_varint(rest, UINT64_MAX >> 7));
  EXPECT_TRUE(read(beyond, 1).empty());  // More than 64 bits.
}

}  // namespace
}  // namespace malloscope::analyze
