// SPDX-License-Identifier: Apache-2.0
#include "serve/columns.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace malloscope::serve {
namespace {

TEST(Columns, AreTypedArraysBehindAHead) {
  Columns columns;
  columns.add("amount", std::vector<double>{1.5, -2});
  columns.add("kind", std::vector<uint8_t>{1, 2, 3});
  columns.add("parent", std::vector<uint32_t>{7, 0xffffffff, 9});
  columns.add("change", std::vector<int32_t>{-1});
  std::string bytes =
      columns.finish([](output::JsonWriter* json) { json->member("metric", "peak"); });
  ASSERT_EQ(bytes.substr(0, 4), "MSC1");
  uint32_t length = 0;
  memcpy(&length, bytes.data() + 4, 4);
  EXPECT_EQ(length % 8, 0u);
  std::string head = bytes.substr(8, length);
  EXPECT_NE(head.find(R"("metric": "peak")"), std::string::npos) << head;
  EXPECT_NE(head.find(R"({"name": "kind", "type": "u8", "length": 3})"), std::string::npos) << head;
  ASSERT_EQ(bytes.size(), 8 + length + 16 + 8 + 16 + 8);  // Each at a multiple of 8.
  const char* at = bytes.data() + 8 + length;
  double amount = 0;
  memcpy(&amount, at + 8, 8);
  EXPECT_EQ(amount, -2);
  EXPECT_EQ(at[16], 1);
  EXPECT_EQ(at[18], 3);
  uint32_t parent = 0;
  memcpy(&parent, at + 24 + 4, 4);
  EXPECT_EQ(parent, 0xffffffff);
  int32_t change = 0;
  memcpy(&change, at + 40, 4);
  EXPECT_EQ(change, -1);
}

TEST(Columns, NumbersTakeAsFewBytesAsHoldThem) {
  auto type_of = [](std::vector<int64_t> values) {
    Columns columns;
    columns.add_numbers("n", values);
    std::string bytes = columns.finish([](output::JsonWriter*) {});
    return bytes.substr(bytes.find("\"type\""), 14);
  };
  EXPECT_NE(type_of({0, UINT32_MAX}).find("u32"), std::string::npos);
  EXPECT_NE(type_of({-1, INT32_MAX}).find("i32"), std::string::npos);
  EXPECT_NE(type_of({0, int64_t{UINT32_MAX} + 1}).find("f64"), std::string::npos);
  EXPECT_NE(type_of({-1, int64_t{INT32_MAX} + 1}).find("f64"), std::string::npos);
}

}  // namespace
}  // namespace malloscope::serve
