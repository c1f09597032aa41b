// SPDX-License-Identifier: Apache-2.0
#include "serve/columns.h"

#include <gtest/gtest.h>

#include <cstring>

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

}  // namespace
}  // namespace malloscope::serve
