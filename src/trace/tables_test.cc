// SPDX-License-Identifier: Apache-2.0
// However stacks are told, by whichever older ones, their frames come out as they were, and
// there is one node for each outer end.

#include "trace/tables.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace malloscope::trace {
namespace {

TEST(StackTable, HasOneNodeForEachOuterEnd) {
  std::mt19937 random(1);
  StackTable table;
  std::vector<std::vector<uint64_t>> stacks = {{}};  // Outermost first, by id.
  std::set<std::vector<uint64_t>> outer_ends;
  for (uint32_t id = 1; id < 3000; ++id) {
    auto owner = static_cast<uint32_t>(random() % id);
    const std::vector<uint64_t>& old = stacks[owner];
    auto kept = static_cast<uint32_t>(random() % (old.size() + 1));
    std::vector<uint64_t> stack(old.begin(), old.begin() + kept), fresh;
    for (size_t n = 1 + random() % 6; n-- > 0;) fresh.push_back(0x1000 + random() % 3);
    stack.insert(stack.end(), fresh.begin(), fresh.end());
    ASSERT_TRUE(table.define(StackId{id}, StackId{owner}, kept, 0, 0, fresh.data(), fresh.size()));
    stacks.push_back(stack);
    for (; !stack.empty(); stack.pop_back()) outer_ends.insert(stack);
    if (id == 1500) table.all_defined();  // Not a promise that nothing comes.
  }
  for (uint32_t id = 1; id < stacks.size(); ++id) {
    std::vector<uint64_t> inner_first;
    table.frames(StackId{id}, &inner_first);
    ASSERT_EQ(inner_first, std::vector<uint64_t>(stacks[id].rbegin(), stacks[id].rend()));
    for (StackNode n = table.node(StackId{id}); n != StackNode::kRoot; n = table.outer(n))
      ASSERT_LT(table.outer(n), n);
  }
  EXPECT_EQ(table.node_count(), outer_ends.size() + 1);
}

TEST(StackTable, KeepsApartWhatALibraryWasBefore) {
  StackTable table;
  uint64_t frames[] = {1, 2};
  ASSERT_TRUE(table.define(StackId{1}, StackId::kNone, 0, 0, 0, frames, 2));
  ASSERT_TRUE(table.define(StackId{2}, StackId::kNone, 0, 1, 0, frames, 2));
  EXPECT_NE(table.node(StackId{1}), table.node(StackId{2}));
  EXPECT_EQ(table.generation(table.node(StackId{2})), 1u);
}

TEST(Header, KnowsWhatASampleIs) {
  auto setting = [](std::string text) {
    Header header;
    header.settings = {"follow=true", std::move(text)};
    return header.sample_setting();
  };
  EXPECT_EQ(setting("on-full=wait"), 0u);
  EXPECT_EQ(setting("sample=2"), 1u);
  EXPECT_EQ(setting("sample=524288"), 19u);
  EXPECT_EQ(setting("sample=1099511627776"), 40u);
  for (const char* bad : {"sample=", "sample=0", "sample=1", "sample=3", "sample=-2",
                          "sample=4096x", "sample=2199023255552", "sample=18446744073709551616"})
    EXPECT_EQ(setting(bad), std::nullopt) << bad;
}

}  // namespace
}  // namespace malloscope::trace
