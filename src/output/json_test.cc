// SPDX-License-Identifier: Apache-2.0
#include "output/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "output/json_writer.h"
#include "output/page.h"
#include "output/reading_for_test.h"

namespace malloscope::output {
namespace {

using nlohmann::json;

json report(MadeUp* made_up, size_t most = 0) {
  auto reading = made_up->reading();
  StringSink sink;
  write_report_json(reading.get(), most, &sink);
  return json::parse(sink.text());
}

TEST(Json, HasEveryKeyOfTheContract) {
  MadeUp made_up;
  made_up.play();
  json all = report(&made_up);
  EXPECT_EQ(all["malloscope"], 1);
  EXPECT_EQ(all["trace"]["complete"], true);
  for (const char* key : {"image", "pid", "parent", "command", "exit"})
    EXPECT_TRUE(all["processes"][0].contains(key)) << key;
  for (const char* key :
       {"allocations", "reallocations", "frees", "inherited_frees", "allocated_bytes",
        "freed_bytes", "live_bytes", "live_blocks", "peak_bytes", "peak_time_ns", "temporary",
        "failed", "unmatched_frees", "order_violations"})
    EXPECT_TRUE(all["totals"][key].is_number_unsigned()) << key;
  for (const char* key : {"malloc",
                          "calloc",
                          "realloc",
                          "reallocarray",
                          "memalign",
                          "aligned_alloc",
                          "posix_memalign",
                          "valloc",
                          "pvalloc",
                          "new",
                          "new_array",
                          "new_aligned",
                          "new_array_aligned",
                          "free",
                          "free_sized",
                          "free_aligned_sized",
                          "cfree",
                          "delete",
                          "delete_array",
                          "delete_aligned",
                          "delete_array_aligned",
                          "mmap",
                          "munmap",
                          "mremap",
                          "brk",
                          "sbrk"})
    EXPECT_TRUE(all["calls"][key].is_number_unsigned()) << key;
  EXPECT_EQ(all["calls"].size(), 26u);
  EXPECT_TRUE(all["rss"]["peak_bytes"].is_number_unsigned());
  for (const char* key : {"events", "lost", "truncated_stacks", "unwind_failures", "threads",
                          "stacks", "modules", "trace_bytes", "bytes_per_event"})
    EXPECT_TRUE(all["recorder"][key].is_number()) << key;
  for (const char* key : {"function", "file", "line", "module", "allocations", "allocated_bytes",
                          "peak_bytes", "live_bytes", "live_blocks", "temporary", "stack"})
    EXPECT_TRUE(all["sites"][0].contains(key)) << key;
}

// Whoever reads the JSON alone is told as much as whoever reads the page.
TEST(Json, NotesAreThoseOfThePage) {
  MadeUp made_up, same;
  for (MadeUp* one : {&made_up, &same}) {
    one->tables.images[0].lost = 1234;
    one->tables.images[0].truncated_stacks = 2;
    one->play();
  }
  json all = report(&made_up);
  auto reading = same.reading();
  StringSink page;
  write_page(reading.get(), {.width = 200}, &page);
  auto said = [](std::string_view text, std::string_view part) {
    return text.find(part) != text.npos;
  };
  for (const char* note : {"statically linked", "1,234 events were lost", "1 free was of a block",
                           "2 stacks are cut", "app has no debug information"}) {
    EXPECT_TRUE(said(page.text(), note)) << note << page.text();
    EXPECT_TRUE(said(all["notes"].dump(), note)) << note << all["notes"].dump(1);
  }
  std::set<json> different(all["notes"].begin(), all["notes"].end());
  EXPECT_EQ(different.size(), all["notes"].size());
}

TEST(Json, TellsTheMadeUpStory) {
  MadeUp made_up;
  made_up.play();
  json all = report(&made_up);
  EXPECT_EQ(all["processes"][0]["command"][0], "./app");
  EXPECT_EQ(all["processes"][0]["parent_image"], nullptr);
  EXPECT_EQ(all["processes"][0]["exit"], json({{"code", 3}}));
  EXPECT_EQ(all["processes"][0]["parent"], nullptr);
  EXPECT_EQ(all["processes"][1]["parent_image"], 1);
  EXPECT_EQ(all["processes"][1]["parent"], 101);
  EXPECT_EQ(all["processes"][1]["exit"], json({{"signal", 9}}));
  EXPECT_EQ(all["totals"]["allocations"], 6);
  EXPECT_EQ(all["totals"]["peak_bytes"], 5360);
  EXPECT_EQ(all["totals"]["peak_time_ns"], 600'000);
  EXPECT_EQ(all["totals"]["live_bytes"], 350);
  EXPECT_EQ(all["totals"]["temporary"], 1);
  EXPECT_EQ(all["totals"]["unmatched_frees"], 1);
  EXPECT_EQ(all["calls"]["malloc"], 5);
  EXPECT_EQ(all["calls"]["new"], 1);
  EXPECT_EQ(all["calls"]["delete"], 1);

  json& sites = all["sites"];
  ASSERT_EQ(sites.size(), 3u);
  EXPECT_EQ(sites[0]["function"], "parse;\n\x1b[31mevil\xef\xbf\xbd");  // And no invalid byte.
  EXPECT_EQ(sites[0]["line"], nullptr);
  EXPECT_EQ(sites[0]["file"], "parse.cc");
  EXPECT_EQ(sites[0]["stack"].size(), 3u);
  EXPECT_EQ(sites[0]["stack"][0]["function"], "std::vector<int>::reserve(unsigned long)");
  EXPECT_EQ(sites[0]["stack"][2]["function"], "main");
  EXPECT_EQ(sites[1]["function"], "load(std::map<int, int> const&)");
  EXPECT_EQ(sites[1]["line"], 40);
  EXPECT_EQ(sites[1]["peak_bytes"], 350);
  EXPECT_EQ(sites[2]["function"], "[unknown]");
  EXPECT_EQ(sites[2]["module"], nullptr);
  uint64_t peak = 0;
  for (auto& site : sites) peak += site["peak_bytes"].get<uint64_t>();
  EXPECT_EQ(peak, 5360u);
}

TEST(Json, IsOfOneProcessIfAsked) {
  MadeUp made_up({.pid = 102});
  made_up.play();
  json all = report(&made_up, 1);
  EXPECT_EQ(all["processes"].size(), 1u);
  EXPECT_EQ(all["totals"]["peak_bytes"], 200);
  EXPECT_EQ(all["sites"].size(), 1u);
}

TEST(Json, OfAnEmptyRecordingIsWhole) {
  MadeUp made_up;
  made_up.tables.images.clear();
  made_up.tables.complete = false;
  made_up.tables.incomplete_because = "it was \"cut\"";
  json all = report(&made_up);
  EXPECT_EQ(all["trace"]["incomplete_because"], "it was \"cut\"");
  EXPECT_EQ(all["totals"]["peak_time_ns"], 0);
  EXPECT_TRUE(all["sites"].empty());
  EXPECT_TRUE(all["processes"].empty());
}

TEST(Json, InfoSaysEverythingThatReportSays) {
  MadeUp made_up;
  made_up.play();
  auto reading = made_up.reading();
  StringSink report_sink, info_sink;
  write_report_json(reading.get(), 0, &report_sink);
  write_info_json(reading.get(), &info_sink);
  json report_all = json::parse(report_sink.text()), info = json::parse(info_sink.text());
  for (auto& [key, value] : report_all.items()) {
    if (key == "processes") continue;  // There it says more.
    EXPECT_EQ(info[key], value) << key;
  }
  EXPECT_EQ(info["processes"][0]["threads"][0]["tid"], 100);
  EXPECT_EQ(info["processes"][1]["modules"][0]["build_id"], "abcd");
  EXPECT_EQ(info["settings"][0], "follow=yes");
}

TEST(JsonWriter, EscapesWhatJsonForbidsAndReplacesWhatIsNoUtf8) {
  auto written = [](std::string_view text) {
    StringSink sink;
    JsonWriter writer(&sink);
    writer.value(text);
    return json::parse(sink.text()).get<std::string>();
  };
  for (int c = 0; c < 0x80; ++c) {
    std::string one(1, static_cast<char>(c));
    EXPECT_EQ(written(one), one) << c;
  }
  EXPECT_EQ(written("h\xc3\xa9 \xf0\x9f\x98\x80"), "h\xc3\xa9 \xf0\x9f\x98\x80");
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(written("a\x80z"), "a" + bad + "z");
  EXPECT_EQ(written("\xc3"), bad);                      // Cut short.
  EXPECT_EQ(written("\xc0\xaf"), bad + bad);            // Longer than need be.
  EXPECT_EQ(written("\xed\xa0\x80"), bad + bad + bad);  // Half of a surrogate pair.
  EXPECT_EQ(written("\xf5\x80\x80\x80"), bad + bad + bad + bad);
}

TEST(JsonWriter, WritesNumbersInFull) {
  StringSink sink;
  JsonWriter writer(&sink);
  writer.begin_object();
  writer.member("most", ~uint64_t{0});
  writer.member("least", int64_t{-5});
  writer.member("part", 2.5);
  writer.member("none", std::optional<int>{});
  writer.key("empty").begin_array();
  writer.end();
  writer.end();
  json all = json::parse(sink.text());
  EXPECT_EQ(all["most"], ~uint64_t{0});
  EXPECT_EQ(all["least"], -5);
  EXPECT_EQ(all["part"], 2.5);
  EXPECT_EQ(all["none"], nullptr);
}

}  // namespace
}  // namespace malloscope::output
