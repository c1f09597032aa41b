// SPDX-License-Identifier: Apache-2.0
#include "analyze/stack_text.h"

#include <gtest/gtest.h>

namespace malloscope::analyze {
namespace {

bool finds(std::string_view text, std::initializer_list<std::string_view> functions) {
  Result<StackText> parsed = StackText::parse(text, "--where");
  EXPECT_TRUE(parsed) << text << ": " << parsed.error().sentence;
  if (!parsed) return false;
  uint64_t words = 0;
  for (std::string_view function : functions) words |= parsed->words_in(function);
  return parsed->holds(words);
}

std::string complaint(std::string_view text) {
  Result<StackText> parsed = StackText::parse(text, "--where");
  return parsed ? "" : parsed.error().sentence;
}

TEST(StackText, FindsAWordInAnyFunction) {
  EXPECT_TRUE(finds("parse", {"main", "json::Parser::run"}));
  EXPECT_FALSE(finds("parse", {"main", "json::run"}));
  EXPECT_FALSE(finds("parse", {}));
}

TEST(StackText, MeansACapitalLetterAsOne) {
  EXPECT_TRUE(finds("Parse", {"json::Parser"}));
  EXPECT_FALSE(finds("Parse", {"json::parser"}));
}

TEST(StackText, JoinsWords) {
  EXPECT_TRUE(finds("main json", {"main", "json::run"}));
  EXPECT_TRUE(finds("main and json", {"main", "json::run"}));
  EXPECT_FALSE(finds("main xml", {"main", "json::run"}));
  EXPECT_TRUE(finds("xml or json", {"main", "json::run"}));
  EXPECT_TRUE(finds("xml | json", {"main", "json::run"}));
  EXPECT_FALSE(finds("-json", {"main", "json::run"}));
  EXPECT_FALSE(finds("main and not json", {"main", "json::run"}));
  EXPECT_TRUE(finds("main -xml", {"main", "json::run"}));
  EXPECT_TRUE(finds("NOT xml", {"main"}));
}

TEST(StackText, JoinsByAndBeforeOr) {
  EXPECT_TRUE(finds("main or xml json", {"main"}));
  EXPECT_FALSE(finds("(main or xml) json", {"main"}));
  EXPECT_TRUE(finds("not (xml or json)", {"main"}));
  EXPECT_TRUE(finds("not not main", {"main"}));
}

TEST(StackText, TakesNamesAsTheyAre) {
  EXPECT_TRUE(finds("f(int)", {"f(int)"}));
  EXPECT_TRUE(finds("(f(int) or g)", {"f(int)"}));
  EXPECT_FALSE(finds("f(int)", {"fint"}));
  EXPECT_TRUE(finds("operator->", {"Pointer::operator->()"}));
  EXPECT_TRUE(finds("vector<int>", {"std::vector<int>::push_back"}));
  EXPECT_TRUE(finds("\"operator new\"", {"operator new(unsigned long)"}));
  EXPECT_TRUE(finds("order", {"order"}));  // Begins as "or" does.
  EXPECT_TRUE(finds("android notes", {"android", "notes"}));
}

TEST(StackText, TakesRegularExpressions) {
  EXPECT_TRUE(finds("/^json::.*n$/", {"json::run"}));
  EXPECT_FALSE(finds("/^run/", {"json::run"}));
  EXPECT_TRUE(finds("/a\\/b/", {"a/b"}));
}

TEST(StackText, SaysWhatIsWrong) {
  EXPECT_EQ(complaint("(a"), "--where '(a': a '(' has no ')'");
  EXPECT_EQ(complaint("a)"), "--where 'a)': a ')' has no '('");
  EXPECT_EQ(complaint("a and"), "--where 'a and': a word is missing");
  EXPECT_EQ(complaint(""), "--where '': a word is missing");
  EXPECT_EQ(complaint("/a"), "--where '/a': a / is missing at the end");
  EXPECT_NE(complaint("/a(/"), "");
  EXPECT_NE(complaint(std::string(10'000, '(')), "");
  EXPECT_NE(complaint(std::string(10'000, '!') + "a"), "");
  std::string many;
  for (int i = 0; i < 65; ++i) many += "w ";
  EXPECT_NE(complaint(many).find("more than 64 words"), std::string::npos);
}

}  // namespace
}  // namespace malloscope::analyze
