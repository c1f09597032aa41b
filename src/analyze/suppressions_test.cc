// SPDX-License-Identifier: Apache-2.0
#include "analyze/suppressions.h"

#include <gtest/gtest.h>

#include "trace/event_stream.h"

namespace malloscope::analyze {
namespace {

// Whether LeakSanitizer's pattern is found in the name.
bool leak_matches(const std::string& pattern, const std::string& name) {
  Suppressions suppressions;
  EXPECT_TRUE(suppressions.add("leak:" + pattern, "t"));
  return suppressions.list().at(0).pattern.matches(name);
}

TEST(Suppressions, MatchAsLeakSanitizerDoes) {
  struct {
    const char* pattern;
    const char* name;
    bool matches;
  } cases[] = {
      {"foo", "a::foo(int)", true},
      {"foo", "a::fo", false},
      {"f*o", "xfxxo", true},
      {"^foo", "foobar", true},
      {"^foo", "xfoo", false},
      {"foo$", "xfoo", true},
      {"foo$", "foox", false},
      {"^foo$", "foo", true},
      {"^*foo", "xfoo", true},
      {"a*b$", "a-b-b", true},
      {"/ld-*.so*", "/lib64/ld-linux-x86-64.so.2", true},
      {"/ld-*.so*", "/lib64/ld-linux-x86-64xso", false},  // A dot is a dot.
      {"operator()(int) const", "f::operator()(int) const", true},
      {"a|b", "a", false},
      {"[x]", "x", false},
      {"a*b", "a\nb", true},
      {"a*b",
       "a\xff"
       "b",
       true},
  };
  for (const auto& c : cases)
    EXPECT_EQ(leak_matches(c.pattern, c.name), c.matches) << c.pattern << " in " << c.name;
}

TEST(Suppressions, ReadCommentsSpacesAndEveryKind) {
  Suppressions suppressions;
  ASSERT_TRUE(suppressions.add(
      "# a comment\n\n  leak:one two \r\noriginator:^f$\nany:x\nmodule:libz\n#leak:no\n",
      "a.supp"));
  const auto& list = suppressions.list();
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[0].line, "leak:one two");
  EXPECT_EQ(list[0].where, "a.supp:3");
  EXPECT_EQ(list[3].kind, Suppression::Kind::kModule);
}

TEST(Suppressions, SayWhatIsWrongAndWhere) {
  for (const char* text : {"leak:a\nrace:b\n", "leak:a\nleak:\n", "leak:a\nany:(\n"}) {
    Suppressions suppressions;
    Result<void> added = suppressions.add(text, "a.supp");
    ASSERT_FALSE(added) << text;
    EXPECT_TRUE(added.error().sentence.starts_with("a.supp:2:")) << added.error().sentence;
  }
  Suppressions suppressions;
  EXPECT_FALSE(suppressions.add_file("/no/such/file"));
}

TEST(Suppressions, ThatAreShippedAreAllInOrder) {
  size_t lines = 0;
  for (const ShippedSuppressions& file : shipped_suppressions()) {
    Suppressions suppressions;
    Result<void> added = suppressions.add(file.text, file.name);
    EXPECT_TRUE(added) << added.error().sentence;
    lines += suppressions.list().size();
    // Each must say why.
    EXPECT_TRUE(std::string_view(file.text).starts_with("#")) << file.name;
  }
  EXPECT_GT(lines, 20u);
  Suppressions all;
  all.add_shipped();
  EXPECT_EQ(all.list().size(), lines);
}

class ThreeNaming : public Naming {
 public:
  std::vector<symbols::SymbolFrame> frames(const symbols::ModuleFile&, uint64_t offset) override {
    return {{"f" + std::to_string(offset), "dir/file" + std::to_string(offset) + ".cc", 1}};
  }
  bool is_plumbing(const std::string&, const std::string&) override { return false; }
};

TEST(SuppressionMatcher, AsksFramesOrTheSiteAsTheKindSays) {
  trace::Tables tables;
  trace::Image image;
  image.id = ImageId{1};
  image.modules = {{0x1000, 0x2000, 0x1000, 0, "/lib/libone.so", "a"},
                   {0x3000, 0x4000, 0x3000, 0, "/bin/two", "b"}};
  uint64_t outer_first[] = {0x3003, 0x1002};  // f2 in two, which calls f1 in libone.
  image.stacks.define(StackId{1}, StackId::kNone, 0, 0, 0, outer_first, 2);
  tables.images.push_back(image);
  ThreeNaming naming;
  FrameTable frames(tables, naming);
  std::vector<FrameId> stack;
  frames.stack(ImageId{1}, StackId{1}, &stack);
  ASSERT_EQ(stack.size(), 2u);

  auto suppressed_by = [&](const char* text) {
    Suppressions suppressions;
    EXPECT_TRUE(suppressions.add(text, "t"));
    return SuppressionMatcher(suppressions, frames).match(stack, stack[0]);
  };
  constexpr size_t kNone = SuppressionMatcher::kNone;
  EXPECT_EQ(suppressed_by("leak:^f2$"), 0u);
  EXPECT_EQ(suppressed_by("leak:dir/file2"), 0u);
  EXPECT_EQ(suppressed_by("leak:bin/two"), 0u);
  EXPECT_EQ(suppressed_by("any:^f2$"), 0u);
  EXPECT_EQ(suppressed_by("any:file2"), kNone);  // Functions only.
  EXPECT_EQ(suppressed_by("originator:^f1$"), 0u);
  EXPECT_EQ(suppressed_by("originator:^f2$"), kNone);
  EXPECT_EQ(suppressed_by("module:libone"), 0u);
  EXPECT_EQ(suppressed_by("module:two"), kNone);
  EXPECT_EQ(suppressed_by("any:nothing\noriginator:f1\nleak:f2"), 1u);  // The first that does.
  EXPECT_EQ(suppressed_by("leak:f2\noriginator:f1"), 0u);
  EXPECT_EQ(suppressed_by(""), kNone);
}

}  // namespace
}  // namespace malloscope::analyze
