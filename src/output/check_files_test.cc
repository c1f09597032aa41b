// SPDX-License-Identifier: Apache-2.0
// Budgets and their verdicts, as text, JUnit and SARIF, of the made-up recording with its nasty
// names.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "analyze/budget.h"
#include "output/junit.h"
#include "output/reading_for_test.h"
#include "output/sarif.h"

namespace malloscope::output {
namespace {

using analyze::Limit;
using analyze::Verdict;

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::vector<Verdict> verdicts(const std::vector<std::pair<std::string, std::string>>& lines) {
  std::vector<Limit> limits;
  for (const auto& [name, value] : lines) {
    Result<Limit> limit = analyze::limit_of(name, value, "--" + name);
    EXPECT_TRUE(limit) << limit.error().sentence;
    limits.push_back(std::move(*limit));
  }
  MadeUp made_up;
  made_up.play();
  auto reading = made_up.reading();
  return judge(reading.get(), {}, limits, {});
}

TEST(Budget, IsExactToTheByte) {
  EXPECT_TRUE(verdicts({{"max-peak", "5360"}})[0].kept());
  Verdict over = verdicts({{"max-peak", "5359"}})[0];
  EXPECT_FALSE(over.kept());
  EXPECT_EQ(over.sentence, "5,360 B at the peak, 1 B more than 5,359 B");
  ASSERT_EQ(over.sites.size(), 3u);
  EXPECT_EQ(over.sites[0].amount, 5000u);
  EXPECT_TRUE(over.sites[0].site.function.starts_with("parse"));
  EXPECT_TRUE(verdicts({{"max-live", "350"}})[0].kept());
  EXPECT_FALSE(verdicts({{"max-live", "349"}})[0].kept());
  EXPECT_TRUE(verdicts({{"max-allocations", "6"}})[0].kept());
  EXPECT_FALSE(verdicts({{"max-allocations", "5"}})[0].kept());
  EXPECT_FALSE(verdicts({{"max-allocated", "5K"}})[0].kept());
  EXPECT_EQ(verdicts({{"max-temporary", "0"}})[0].value, 1u);
}

TEST(Budget, ForbidsLeaksWhereItSays) {
  EXPECT_TRUE(verdicts({{"no-leaks-within", "^parse"}})[0].kept());
  Verdict found = verdicts({{"no-leaks-within", "^main$"}})[0];
  EXPECT_EQ(found.value, 2u);
  EXPECT_TRUE(has(found.sentence, "2 leaks, 1 unique, 300 B, within `^main$`")) << found.sentence;
  EXPECT_TRUE(has(found.sentence, "(1 cut stack could not be judged)")) << found.sentence;
  ASSERT_EQ(found.sites.size(), 1u);
  EXPECT_EQ(found.sites[0].site.line, 40);
}

TEST(Budget, ReadsAFileAndSaysWhatIsWrongInIt) {
  std::string path = ::testing::TempDir() + "budget.txt";
  auto read = [&](const std::string& text) {
    std::ofstream(path) << text;
    return analyze::limits_of_file(path);
  };
  auto limits =
      read("# nightly\n\n  max-peak   512M\r\nno-leaks-within a b\nmax-allocations 1e6\n");
  ASSERT_TRUE(limits) << limits.error().sentence;
  ASSERT_EQ(limits->size(), 3u);
  EXPECT_EQ((*limits)[0].most, 512u << 20);
  EXPECT_EQ((*limits)[1].text, "no-leaks-within a b");
  EXPECT_EQ((*limits)[2].most, 1'000'000u);
  for (const char* bad : {"# x\nmax-peak\n", "# x\nmax-peak much\n", "# x\nmax-speed 3\n",
                          "# x\nno-leaks-within (\n", "# x\nmax-allocations 1.5\n"}) {
    auto refused = read(bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_TRUE(has(refused.error().sentence, "budget.txt:2: ")) << refused.error().sentence;
  }
  EXPECT_FALSE(read("# nothing\n"));
  EXPECT_FALSE(analyze::limits_of_file("/no/such/budget"));
}

TEST(Junit, HasACaseForEachLimitAndNothingThatXmlCannotSay) {
  StringSink sink;
  write_junit(verdicts({{"max-peak", "1"}, {"max-live", "1M"}, {"no-leaks-within", "<&\">"}}),
              "a\x1b<app>", &sink);
  const std::string& xml = sink.text();
  EXPECT_TRUE(has(xml, "tests=\"3\" failures=\"1\" errors=\"1\"")) << xml;
  EXPECT_TRUE(has(xml, "name=\"no-leaks-within &lt;&amp;&quot;&gt;\" time=\"0\">\n      <error "))
      << xml;
  EXPECT_TRUE(has(xml, "<failure message=\"5.2 KiB at the peak")) << xml;
  EXPECT_TRUE(has(xml, "load(std::map&lt;int, int&gt; const&amp;)  /home/me/app/src/load.cc:40"))
      << xml;
  for (char c : xml) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << int{c};
}

TEST(Sarif, HasAResultForEachSiteOfAnExceededLimit) {
  StringSink sink;
  write_sarif(verdicts({{"max-live", "1M"}, {"max-peak", "1"}, {"max-peak", "2"}}), &sink);
  const std::string& text = sink.text();
  size_t results = 0;
  for (size_t at = 0; (at = text.find("\"ruleId\": \"max-peak\"", at)) != text.npos; ++at)
    ++results;
  EXPECT_EQ(results, 6u) << text;
  EXPECT_FALSE(has(text, "\"ruleId\": \"max-live\"")) << text;
  EXPECT_TRUE(has(text, "\"uri\": \"file:///home/me/app/src/load.cc\"")) << text;
  EXPECT_TRUE(has(text, "\"startLine\": 40")) << text;
  EXPECT_EQ(text.find("\x1b"), text.npos);
}

TEST(Sarif, EscapesPaths) {
  EXPECT_EQ(uri_of("/a b/%c#.cc"), "file:///a%20b/%25c%23.cc");
  EXPECT_EQ(uri_of("src/x.cc"), "src/x.cc");
  EXPECT_EQ(uri_of("\xc3\xa9.cc"), "%C3%A9.cc");
}

}  // namespace
}  // namespace malloscope::output
