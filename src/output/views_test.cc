// SPDX-License-Identifier: Apache-2.0
// Every view over made-up recordings, as JSON: what programs see, and what text is made of.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "analyze/view.h"
#include "output/answer_json.h"
#include "output/answer_text.h"
#include "output/json_writer.h"
#include "output/reading_for_test.h"

namespace malloscope::output {
namespace {

using nlohmann::json;
using wire::Kind;
using wire::Op;

// A recording as it is read for a view. One tick is 100 ns; an event comes every 1,000 ticks.
struct Watched {
  analyze::Query query;
  std::unique_ptr<analyze::View> view;
  std::unique_ptr<MadeUp> made_up;

  explicit Watched(const char* name, analyze::Query asked = {}, analyze::Window window = {},
                   bool at = false)
      : query(std::move(asked)) {
    view = analyze::find_view(name)->make(query, {at, 0});
    view->prepare(&query);
    if (!query.threads.empty()) query.tally.by_thread = true;
    made_up = std::make_unique<MadeUp>(query.selection, window, query.tally);
    made_up->tables.images[0].threads.push_back({ThreadId{2}, 102, "worker", 1000});
    view->attach(made_up->accounts.get(), {made_up->tables.header, *made_up->tables.end_tick});
  }
  void make(uint64_t address, uint64_t size, uint32_t stack = 1, uint32_t thread = 1) {
    made_up->show(Kind::kAlloc, Op::kMalloc, address, size, stack, 1, thread);
  }
  void free(uint64_t address, uint32_t thread = 1) {
    made_up->show(Kind::kFree, Op::kFree, address, 0, 0, 1, thread);
  }
  void change(uint64_t from, uint64_t to, uint64_t size, uint32_t stack = 1) {
    made_up->show(Kind::kReallocBegin, Op::kRealloc, from, 0, stack);
    made_up->show(Kind::kReallocEnd, Op::kRealloc, to, size, stack);
  }
  void map(Op op, uint64_t address, uint64_t size, uint32_t stack, uint8_t flags = 0) {
    made_up->show(Kind::kMapping, op, address, size, stack, 1, 1, 0, flags);
  }
  // As a terminal of 80 columns shows it.
  std::string text() {
    made_up->accounts->finish();
    auto reading = made_up->reading();
    StringSink sink;
    write_answer(view->answer(reading.get(), query), {.width = 80, .wrap = true}, &sink);
    for (size_t at = 0; at < sink.text().size(); at = sink.text().find('\n', at) + 1)
      EXPECT_LE(sink.text().find('\n', at) - at, 80u) << sink.text();
    return sink.text();
  }
  json result() {
    made_up->accounts->finish();
    auto reading = made_up->reading();
    analyze::Answer answer = view->answer(reading.get(), query);
    EXPECT_FALSE(answer.headline.empty());
    StringSink text;
    write_answer(answer, {}, &text);  // Must not fail on any cell.
    StringSink sink;
    JsonWriter writer(&sink);
    writer.begin_object();
    write_answer_members(answer, &writer);
    writer.end();
    return json::parse(sink.text());
  }
};

analyze::Query focused(const char* pattern) {
  analyze::Query query;
  query.frames.focus.push_back(*analyze::Pattern::make(pattern, "--focus"));
  return query;
}

uint64_t sum(const json& rows, const char* key) {
  uint64_t total = 0;
  for (const json& row : rows) total += row[key].get<uint64_t>();
  return total;
}

json row_of(const json& rows, const char* key, const std::string& value) {
  for (const json& row : rows)
    if (row[key].get<std::string>().starts_with(value)) return row;
  ADD_FAILURE() << "no row with " << key << " " << value << " in " << rows;
  return {};
}

TEST(Views, AllAnswerAnEmptyRecordingAndTheMadeUpOne) {
  for (const analyze::ViewKind& kind : analyze::views())
    for (bool play : {false, true}) {
      SCOPED_TRACE(std::string(kind.name));
      Watched w(kind.name.data());
      if (play) w.made_up->play();
      json all = w.result();
      EXPECT_EQ(all["totals"]["allocations"], play ? 6 : 0);
      EXPECT_EQ(all["totals"]["peak_bytes"], play ? 5360 : 0);
      EXPECT_EQ(all["totals"]["unmatched_frees"], play ? 1 : 0);
      for (const char* key : {"inherited_frees", "failed", "order_violations"})
        EXPECT_EQ(all["totals"][key], 0) << key;
    }
}

TEST(Views, AnswerTheirQuestionIn80Columns) {
  auto has = [](const std::string& text, const char* words) {
    EXPECT_NE(text.find(words), std::string::npos) << words << " is not in\n" << text;
  };
  Watched sizes("sizes");
  for (uint64_t i = 0; i < 1200; ++i) sizes.make(0x1000 * (i + 1), i % 3 == 0 ? 100'000 : 9);
  std::string text = sizes.text();
  has(text, "  64 - 128 KiB ");
  has(text, "  8 - 15 B ");
  has(text, "live at end");

  Watched threads("threads");
  threads.made_up->tables.images[0].threads[1].name = "fifteen-letters";
  for (uint64_t i = 1; i <= 10; ++i) threads.make(0x1000 * i, 100, 1, 2);
  for (uint64_t i = 1; i <= 9; ++i) threads.free(0x1000 * i, i % 3 == 0 ? 2 : 1);
  text = threads.text();
  for (const char* words : {"frees own", "of others", "by others", "fifteen-letters (102)"})
    has(text, words);

  Watched growth("growth");
  growth.make(0x1000, 100'001);
  growth.change(0x1000, 0x2'000'000, 400'004);
  growth.change(0x2'000'000, 0x3'000'000, 700'000);
  text = growth.text();
  for (const char* words : {" malloc 683.6 KiB ", "copied", "growths", "site"}) has(text, words);
}

TEST(Views, PeakAddsUpAndKnowsTheStack) {
  Watched w("peak");
  w.made_up->play();
  json all = w.result();
  EXPECT_EQ(sum(all["sites"], "peak_bytes"), 5360u);
  EXPECT_EQ(all["bytes"], 5360);
  EXPECT_EQ(all["sites"][0]["peak_bytes"], 5000);
  EXPECT_EQ(all["sites"][0]["stack"].back()["function"], "main");
}

TEST(Views, PeakAtAnInstantIsWhatIsLiveThen) {
  analyze::Query query;
  query.to = analyze::TimePoint{analyze::TimePoint::Kind::kEnd};
  Watched w("peak", query, {}, true);
  w.made_up->play();
  json all = w.result();
  EXPECT_EQ(sum(all["sites"], "live_bytes"), all["totals"]["live_bytes"]);
  EXPECT_EQ(sum(all["sites"], "live_bytes"), 350u);
  EXPECT_EQ(sum(all["sites"], "live_blocks"), all["totals"]["live_blocks"]);
}

TEST(Views, LifetimesGoOnThroughRealloc) {
  Watched w("lifetimes");
  w.make(16, 10, 1);        // Tick 2000.
  w.change(16, 32, 20, 2);  // 4000.
  w.free(32);               // 5000: it lived 3000 ticks, and is of stack 1.
  w.make(48, 10, 2);        // Never freed.
  w.make(64, 10, 1);
  w.free(64);  // 1000 ticks.
  json all = w.result();
  EXPECT_EQ(sum(all["sites"], "blocks"), all["totals"]["allocations"]);
  json load = row_of(all["sites"], "function", "load");
  EXPECT_EQ(load["blocks"], 2);
  EXPECT_EQ(load["longest_ns"], 300'000);
  EXPECT_EQ(load["never_freed"], 0);
  json parse = row_of(all["sites"], "function", "parse");
  EXPECT_EQ(parse["never_freed"], 1);
  EXPECT_EQ(parse["median_ns"], nullptr);
  EXPECT_EQ(sum(all["histogram"], "blocks"), 3u);
  EXPECT_EQ(all["histogram"].back()["lived"], "never freed");
  for (const json& row : all["histogram"])
    EXPECT_EQ(row["blocks"].get<int>() > 0,
              row["from_ns"] == 65'536 || row["from_ns"] == 262'144 || row["from_ns"].is_null())
        << row;
}

TEST(Views, LifetimesCountBlocksOfTheWindowOnly) {
  Watched w("lifetimes", {}, {3500, UINT64_MAX});
  w.make(16, 10);  // 2000: before.
  w.make(32, 10);  // 3000: before.
  w.make(48, 10);  // 4000.
  w.free(16);
  w.free(48);
  json all = w.result();
  EXPECT_EQ(all["blocks"], 1);
  EXPECT_EQ(all["totals"]["allocations"], 1);
  EXPECT_EQ(all["longest_ns"], 200'000);
  EXPECT_EQ(all["never_freed"], 0);
}

TEST(Views, SizesAddUpHoweverTheyAreCut) {
  Watched w("sizes");
  w.make(16, 100, 1);
  w.make(32, 100, 2);
  w.make(48, 0, 2);
  w.change(16, 64, 130, 1);
  w.free(32);
  json all = w.result();
  for (const char* table : {"sizes", "classes"}) {
    for (const char* key : {"allocations", "allocated_bytes", "live_bytes", "live_blocks",
                            "reallocations", "peak_bytes"})
      EXPECT_EQ(sum(all[table], key), all["totals"][key]) << table << " " << key;
  }
  for (const char* key : {"allocations", "allocated_bytes", "reallocations"})
    EXPECT_EQ(sum(all["slices"], key), all["totals"][key]) << key;
  EXPECT_EQ(all["slices"].size(), 10u);
  EXPECT_EQ(all["slices"].back()["live_bytes"], 130);
  EXPECT_EQ(all["different_sizes"], 3);
  json hundred;
  for (const json& row : all["sizes"])
    if (row["size"] == 100) hundred = row;
  EXPECT_EQ(hundred["allocations"], 2);
  EXPECT_EQ(hundred["peak_bytes"], 100);
  EXPECT_EQ(row_of(all["classes"], "range", "128 - 255 B")["allocated_bytes"], 30);
}

TEST(Views, SizeClassesDoNotOverlap) {
  EXPECT_EQ(analyze::size_range(0), "0 B");
  EXPECT_EQ(analyze::size_range(1), "1 B");
  EXPECT_EQ(analyze::size_range(10), "512 - 1023 B");
  EXPECT_EQ(analyze::size_range(11), "1 - 2 KiB");
  EXPECT_EQ(analyze::size_range(12), "2 - 4 KiB");
  EXPECT_EQ(analyze::size_range(20), "512 KiB - 1 MiB");
  EXPECT_EQ(analyze::size_range(21), "1 - 2 MiB");
  EXPECT_EQ(analyze::size_range(60), "512 PiB - 1 EiB");
  EXPECT_EQ(analyze::size_range(63), "4 - 8 EiB");
  EXPECT_EQ(analyze::size_range(64), "8 EiB and more");
}

TEST(Views, SizesObeyAFilter) {
  Watched w("sizes", focused("^parse"));
  w.make(16, 100, 1);
  w.make(32, 100, 2);
  json all = w.result();
  EXPECT_EQ(sum(all["sizes"], "allocations"), 1u);
  EXPECT_EQ(sum(all["slices"], "allocations"), 1u);
  EXPECT_EQ(all["totals"]["allocations"], 2);
}

TEST(Views, ThreadsFreeTheirOwnAndOthersBlocks) {
  Watched w("threads");
  w.make(16, 100, 1, 1);
  w.make(32, 10, 1, 1);
  w.make(48, 1, 1, 2);
  w.free(16, 2);
  w.free(32, 1);
  w.free(48, 2);
  w.make(64, 7, 2, 2);
  w.free(64, 1);
  json all = w.result();
  EXPECT_EQ(all["frees"], all["totals"]["frees"]);
  EXPECT_EQ(all["frees_of_others"], 2);
  EXPECT_EQ(all["freed_of_others_bytes"], 107);
  json worker = row_of(all["threads"], "thread", "worker (102)");
  EXPECT_EQ(worker["allocations"], 2);
  EXPECT_EQ(worker["own_frees"], 1);
  EXPECT_EQ(worker["frees_of_others"], 1);
  EXPECT_EQ(worker["freed_by_others"], 1);
  EXPECT_EQ(row_of(all["threads"], "thread", "main")["freed_by_others"], 1);
  EXPECT_EQ(row_of(all["threads"], "thread", "main")["function"],
            "load(std::map<int, int> const&)");
  EXPECT_NE(all["notes"].dump().find("malloscope run --free-stacks"), std::string::npos);
  EXPECT_EQ(sum(all["matrix"], "frees"), 4u);
  EXPECT_EQ(all["matrix"][0]["freed_by"], "worker (102)");
  EXPECT_EQ(all["matrix"][0]["freed_bytes"], 100);
}

TEST(Views, GrowthSaysWhatToReserve) {
  Watched w("growth");
  w.make(16, 8, 1);
  w.make(32, 16, 1);
  w.free(16);
  w.make(64, 32, 1);
  w.free(32);
  json all = w.result();
  EXPECT_EQ(all["growths"], 2);
  EXPECT_EQ(all["copied_bytes"], 24);
  EXPECT_EQ(all["sites"][0]["instead"], "reserve(4)");
  EXPECT_EQ(all["sites"][0]["reserve_elements"], 4);
  EXPECT_EQ(all["sites"][0]["element_bytes"], 8);
  EXPECT_DOUBLE_EQ(all["sites"][0]["factor"].get<double>(), 2.0);
  EXPECT_FALSE(all["notes"].empty());
}

TEST(Views, ChurnTellsTemporaryFromShortLived) {
  Watched w("churn");
  w.make(16, 10);  // Temporary, 100 us.
  w.free(16);
  w.make(32, 10);
  w.make(48, 10, 2);
  w.free(32);                 // Short-lived.
  w.made_up->tick += 20'000;  // 2 ms.
  w.free(48);                 // Lived too long, but temporary: nothing came after it.
  json all = w.result();
  EXPECT_EQ(all["allocations"], all["totals"]["allocations"]);
  EXPECT_EQ(all["temporary"], all["totals"]["temporary"]);
  EXPECT_EQ(all["temporary"], 2);
  EXPECT_EQ(all["short_lived"], 2);
  EXPECT_EQ(all["short_lived_bytes"], 20);
  EXPECT_EQ(all["one_call"], 2);  // 200 us is too long for the other.
}

TEST(Views, RssIsExplainedToTheLastByte) {
  Watched w("rss");
  w.made_up->tables.images[0].rss = {{2500, 1 << 20}, {5500, 20 << 20}};
  w.made_up->tables.images[0].peak_rss_bytes = 20 << 20;
  w.make(16, 5 << 20);  // 2000.
  w.free(16);
  w.map(Op::kMmap, 1 << 20, 8 << 20, 1);  // 4000.
  w.make(16, 1 << 20);                    // 5000.
  json all = w.result();
  const json& peak = all["peak_rss"];
  EXPECT_EQ(peak["bytes"], 20 << 20);
  EXPECT_EQ(peak["recorder_bytes"], 1 << 20);
  uint64_t parts = 0;
  for (const auto& [key, bytes] : peak.items())
    if (key != "bytes") parts += bytes.get<uint64_t>();
  EXPECT_EQ(parts, 20u << 20);
  EXPECT_EQ(sum(all["parts"], "bytes"), 20u << 20);
  EXPECT_EQ(peak["mapped_bytes"], 8 << 20);
  EXPECT_GE(peak["live_bytes"], 1 << 20);
  uint64_t highest = 0;
  for (const json& row : all["slots"])
    highest = std::max(highest, row["requested_bytes"].get<uint64_t>());
  EXPECT_EQ(highest, all["totals"]["peak_bytes"]);
}

TEST(Views, RssOverTimeIsWhatWasLastSeenAndSaysWhatNobodySaw) {
  Watched w("rss");
  w.made_up->tables.images[0].rss = {
      {5'000'000, 30 << 20}, {5'300'000, 20 << 20}, {19'000'000, 40 << 20}};
  w.made_up->tables.images[0].peak_rss_bytes = (40 << 20) + 4096;
  w.make(16, 1000);
  w.made_up->tick += 20'000'000;
  w.make(32, 1);
  json all = w.result();
  std::vector<json> resident;
  for (const json& row : all["slots"])
    if (resident.empty() || resident.back() != row["resident_bytes"])
      resident.push_back(row["resident_bytes"]);
  EXPECT_EQ(resident, (std::vector<json>{nullptr, 30 << 20, 20 << 20, 40 << 20}));
  std::string notes = all["notes"].dump();
  EXPECT_NE(notes.find("empty before the first sample"), notes.npos) << notes;
  EXPECT_NE(notes.find("that of the one before"), notes.npos) << notes;
  EXPECT_NE(notes.find("The kernel saw more between two samples"), notes.npos) << notes;
}

TEST(Views, RssShowsAHeapThatNobodyTouches) {
  Watched w("rss");
  w.make(16, 1000);
  w.made_up->tick += 20'000'000;
  w.make(32, 1);
  json all = w.result();
  ASSERT_EQ(all["slots"].size(), 20u);
  EXPECT_EQ(all["slots"][4]["requested_bytes"], 1000);
  EXPECT_EQ(all["slots"].back()["requested_bytes"], 1001);
}

TEST(Views, MappingsAreBySiteAndTheAllocatorsApart) {
  Watched w("mappings");
  w.map(Op::kMmap, 0x10000, 0x4000, 1);
  w.map(Op::kMmap, 0x20000, 0x2000, 2, wire::kInsideAllocator);
  w.map(Op::kMmap, 0x30000, 0x1000, 2, wire::kFailed);
  w.map(Op::kMunmap, 0x11000, 0x1000, 2);
  json all = w.result();
  EXPECT_EQ(all["mapped_bytes"], 0x4000);
  EXPECT_EQ(all["still_mapped_bytes"], 0x3000);
  EXPECT_EQ(all["allocator_still_mapped_bytes"], 0x2000);
  EXPECT_EQ(all["sites"].size(), 1u);
  EXPECT_EQ(all["sites"][0]["ranges"], 2);
  EXPECT_EQ(sum(all["sites"], "still_mapped_bytes"), 0x3000u);
  EXPECT_EQ(sum(all["allocator_sites"], "still_mapped_bytes"), 0x2000u);
}

TEST(Views, PagesAgreeWithSetsOfPages) {
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    Watched w("pages");
    std::map<uint32_t, std::set<uint64_t>> pages;  // By stack; 0 is all.
    uint64_t bytes = 0;
    uint64_t address = 16;
    for (int i = 0; i < 60; ++i) {
      uint32_t stack = 1 + random() % 2;
      uint64_t size = random() % 4 == 0 ? random() % 20'000 : random() % 100;
      w.make(address, size, stack);
      bytes += size;
      for (uint64_t byte = address; byte < address + std::max<uint64_t>(size, 1); ++byte)
        pages[stack].insert(byte / 4096), pages[0].insert(byte / 4096);
      address += size + 16 * (1 + random() % 1000);
    }
    json all = w.result();
    auto ranges = [](const std::set<uint64_t>& set) {
      uint64_t n = 0;
      for (uint64_t page : set) n += !set.contains(page - 1);
      return n;
    };
    EXPECT_EQ(all["pages"], pages[0].size());
    EXPECT_EQ(all["ranges"], ranges(pages[0]));
    EXPECT_EQ(all["live_bytes"], bytes);
    EXPECT_NEAR(all["spread"].get<double>(),
                4096.0 * static_cast<double>(pages[0].size()) / static_cast<double>(bytes), 1e-4);
    EXPECT_EQ(sum(all["sites"], "live_bytes"), bytes);
    json load = row_of(all["sites"], "function", "load"),
         parse = row_of(all["sites"], "function", "parse");
    EXPECT_EQ(load["pages"], pages[1].size());
    EXPECT_EQ(load["ranges"], ranges(pages[1]));
    EXPECT_EQ(parse["pages"], pages[2].size());
    EXPECT_EQ(parse["ranges"], ranges(pages[2]));
  }
}

TEST(Views, SayWhatHasNoMeaning) {
  auto refuses = [](const char* view, const analyze::Query& query, bool at) {
    return !suits(*analyze::find_view(view), query, at).has_value();
  };
  EXPECT_TRUE(refuses("rss", focused("x"), false));
  EXPECT_TRUE(refuses("sizes", {}, true));
  EXPECT_FALSE(refuses("peak", focused("x"), true));
  analyze::Query large;
  large.tally.min_size = 1;
  EXPECT_TRUE(refuses("mappings", large, false));
  EXPECT_FALSE(refuses("churn", large, false));
}

TEST(Metrics, LifetimeAndOverheadAreOfEveryRow) {
  analyze::TallyOptions options;
  options.details = options.overhead = true;
  MadeUp made_up({}, {}, options);
  made_up.show(Kind::kAlloc, Op::kMalloc, 16, 100, 1);  // 2000; usable 104.
  made_up.show(Kind::kReallocBegin, Op::kRealloc, 16, 0, 2);
  made_up.show(Kind::kReallocEnd, Op::kRealloc, 32, 10, 2);  // 4000; usable 24.
  made_up.show(Kind::kFree, Op::kFree, 32, 0, 0);            // 5000.
  made_up.accounts->finish();
  auto reading = made_up.reading();
  std::map<uint32_t, analyze::Amounts> rows;
  reading->for_each_row([&](const analyze::Row& row) { rows[raw(row.stack)] = row.amounts; });
  EXPECT_EQ(rows[1].lifetime_ns, 200'000u);
  EXPECT_EQ(rows[2].lifetime_ns, 100'000u);
  EXPECT_EQ(rows[1].overhead_bytes, 4u);
  EXPECT_EQ(rows[2].overhead_bytes, 14u);
}

TEST(Metrics, LifetimeBeginsWithTheWindowAlsoBeforeARealloc) {
  analyze::TallyOptions options;
  options.details = true;
  MadeUp made_up({}, {2501, UINT64_MAX}, options);      // From 2500 on.
  made_up.show(Kind::kAlloc, Op::kMalloc, 16, 100, 1);  // 2000.
  made_up.show(Kind::kReallocBegin, Op::kRealloc, 16, 0, 2);
  made_up.show(Kind::kReallocEnd, Op::kRealloc, 32, 10, 2);  // 4000.
  made_up.accounts->finish();
  auto reading = made_up.reading();
  uint64_t lived = 0;
  reading->accounts().tally().for_each_row(
      [&](const analyze::Row& row) { lived += row.details.lifetime_ticks; });
  EXPECT_EQ(lived, 1500u);  // Of stack 1, although it did nothing in the window.
}

}  // namespace
}  // namespace malloscope::output
