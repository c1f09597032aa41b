// SPDX-License-Identifier: Apache-2.0
#include "analyze/query.h"

#include <gtest/gtest.h>

#include <cmath>

#include "analyze/answer.h"

namespace malloscope::analyze {
namespace {

TEST(TimePoint, IsReadAsUsersWriteIt) {
  trace::Header header;
  header.start_tick = 1000;
  header.ns_per_tick = 100;
  auto tick = [&](const char* text) {
    auto point = TimePoint::parse(text, "--from");
    return point ? tick_of(*point, header, 21'000, 5'000) : 0;
  };
  EXPECT_EQ(tick("start"), 1000u);
  EXPECT_EQ(tick("1us"), 1010u);
  EXPECT_EQ(tick("1.5ms"), 16'000u);
  EXPECT_EQ(tick("0"), 1000u);
  EXPECT_EQ(tick("0.0015"), 16'000u);
  EXPECT_EQ(tick("50%"), 11'000u);
  EXPECT_EQ(tick("peak"), 5'000u);
  EXPECT_EQ(tick("end"), 21'000u);
  for (const char* wrong : {"", "x", "1x", "-1s", "101%", "1 s", "s", "1e300s", "nan", "inf"})
    EXPECT_FALSE(TimePoint::parse(wrong, "--from")) << wrong;
}

TEST(Pattern, IsSearchedForAnywhere) {
  EXPECT_TRUE(Pattern::make("sysExec", "--focus")->matches("Algorithm::sysExecute()"));
  EXPECT_FALSE(Pattern::make("^sys", "--focus")->matches("Algorithm::sysExecute()"));
  auto wrong = Pattern::make("(", "--focus");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().sentence.find("--focus '('"), std::string::npos);
  // Names of 30 kB, and patterns that make others take for ever.
  EXPECT_FALSE(Pattern::make("(a*)*b$", "--focus")->matches(std::string(30'000, 'a')));
}

Answer list() {
  Answer answer;
  Table table;
  table.key = "rows";
  table.columns = {{"n", "n", Column::Kind::kCount}, {"name", "name", Column::Kind::kText}};
  for (uint64_t n : {3, 1, 2}) table.rows.push_back({{n, "row " + std::to_string(n)}, 0, true});
  answer.tables.push_back(table);
  return answer;
}

TEST(Shape, SortsCutsAndArranges) {
  Answer answer = list();
  ASSERT_TRUE(shape(&answer, {{"name"}, "n", 2}));
  const Table& table = answer.tables[0];
  EXPECT_EQ(table.columns[0].key, "name");
  EXPECT_FALSE(table.columns[1].shown);
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(std::get<std::string>(table.rows[0].cells[0]), "row 3");
  EXPECT_EQ(std::get<std::string>(table.rows[1].cells[0]), "row 2");
  EXPECT_EQ(table.left_out, 1u);
}

TEST(Shape, NamesTheColumnsThereAre) {
  Answer answer = list();
  auto wrong = shape(&answer, {{"nope"}, "", 0});
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().sentence.find("there are n, name"), std::string::npos);
  EXPECT_FALSE(shape(&answer, {{}, "nope", 0}));
}

TEST(Shape, KnowsAFrameByItsFunction) {
  Answer answer = list();
  answer.tables[0].columns[1] = {"frame", "site", Column::Kind::kFrame};
  ASSERT_TRUE(shape(&answer, {{"function"}, "", 0}));
  EXPECT_EQ(answer.tables[0].columns[0].key, "frame");
}

TEST(Shape, GivesATitleToWhatIsAskedFor) {
  Answer answer = list();
  answer.tables[0].columns[1].title = "";
  ASSERT_TRUE(shape(&answer, {{"name"}, "", 0}));
  EXPECT_EQ(answer.tables[0].columns[0].title, "name");
}

TEST(Shape, KnowsAColumnByItsTitle) {
  Answer answer = list();
  answer.tables[0].columns[0].title = "itself";
  answer.tables[0].columns[1].title = "n";  // A name goes before a title.
  ASSERT_TRUE(shape(&answer, {{}, "itself", 1}));
  EXPECT_EQ(std::get<uint64_t>(answer.tables[0].rows[0].cells[0]), 3u);
  ASSERT_TRUE(shape(&answer, {{"n"}, "", 0}));
  EXPECT_EQ(answer.tables[0].columns[0].key, "n");
}

}  // namespace
}  // namespace malloscope::analyze
