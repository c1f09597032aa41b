// SPDX-License-Identifier: Apache-2.0
// Every format with names as nasty as names get: it must still be what its readers expect, and
// add up. Real readers are in test/exports_add_up.sh.

#include "output/exports.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <zlib.h>

#include <nlohmann/json.hpp>
#include <protozero/pbf_reader.hpp>
#include <regex>
#include <sstream>

#include "output/reading_for_test.h"
#include "output/words.h"

namespace malloscope::output {
namespace {

using nlohmann::json;

const std::string kEvil = "=evil\",'\n\r;(7) #%s<b>\\ \x1b[31m\xff\xc3\xa9\xe2\x80\xae";

class EvilNaming : public MadeUpNaming {
 public:
  std::vector<symbols::SymbolFrame> frames(const symbols::ModuleFile& module,
                                           uint64_t offset) override {
    if (offset != 0x20) return MadeUpNaming::frames(module, offset);
    return {{"std::" + kEvil, kEvil, 3}, {kEvil, "/x/" + kEvil, 0}, {"caller " + kEvil, "", 0}};
  }
};

struct Exported {
  std::unique_ptr<analyze::HeapCurve> curve;
  std::unique_ptr<analyze::Reading> reading;

  explicit Exported(analyze::TallyOptions tally = {}) {
    MadeUp made_up;
    made_up.accounts =
        std::make_unique<analyze::Accounts>(analyze::Selection{}, analyze::Window{}, tally);
    curve = std::make_unique<analyze::HeapCurve>(made_up.accounts.get());
    for (const trace::Image& image : made_up.tables.images) made_up.accounts->image_started(image);
    made_up.tables.images[0].executable = kEvil;
    made_up.tables.images[0].command = {kEvil};
    made_up.tables.images[0].threads[0].name = kEvil;
    made_up.tables.images[0].modules[0].path = kEvil;
    made_up.play();
    made_up.accounts->finish();
    reading = std::make_unique<analyze::Reading>("evil.mscope", std::move(made_up.tables),
                                                 std::move(made_up.accounts),
                                                 std::make_unique<EvilNaming>());
  }

  std::string text(Result<void> (*write)(const Export&, Sink*), analyze::Query query = {},
                   bool fold = false) {
    StringSink sink;
    Result<void> done =
        write({reading.get(), &query, analyze::Metric::kPeak, fold, curve.get()}, &sink);
    EXPECT_TRUE(done) << done.error().sentence;
    return sink.text();
  }
};

bool is_plain(const std::string& text) {  // But for line ends.
  std::string without;
  for (char c : text)
    if (c != '\n') without += c;
  return printable(without) == without;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The made-up recording: see reading_for_test.h.
constexpr uint64_t kPeak = 5360, kAllocated = 5360, kLive = 350, kAllocations = 6, kLiveBlocks = 4;

TEST(Exports, SpeedscopeHasAProfileForEachMetric) {
  json file = json::parse(Exported().text(write_speedscope));
  std::map<std::string, uint64_t> sums;
  for (const json& profile : file["profiles"])
    for (size_t i = 0; i < profile["weights"].size(); ++i) {
      sums[profile["name"]] += profile["weights"][i].get<uint64_t>();
      EXPECT_FALSE(profile["samples"][i].empty());
    }
  EXPECT_EQ(sums["bytes at the peak"], kPeak);
  EXPECT_EQ(sums["bytes still live"], kLive);
  EXPECT_EQ(sums["bytes allocated"], kAllocated);
  EXPECT_EQ(sums["allocations"], kAllocations);
  EXPECT_EQ(file["activeProfileIndex"], 0);
}

TEST(Exports, TreeIsFlatAndWhole) {
  json file = json::parse(Exported().text(write_tree_json));
  uint64_t peak = 0;
  for (size_t i = 0; i < file["nodes"].size(); ++i) {
    const json& node = file["nodes"][i];
    EXPECT_TRUE(i == 0 || node["parent"].get<size_t>() < i);
    peak += node.value("peak_bytes", uint64_t{0});
  }
  EXPECT_EQ(peak, kPeak);
  EXPECT_EQ(file["totals"]["live_blocks"], kLiveBlocks);
}

TEST(Exports, DhatNamesEveryFrame) {
  json file = json::parse(Exported({.details = true}).text(write_dhat));
  uint64_t gb = 0, gbk = 0, eb = 0, mb = 0;
  for (const json& point : file["pps"]) {
    gb += point["gb"].get<uint64_t>();
    gbk += point["gbk"].get<uint64_t>();
    eb += point["eb"].get<uint64_t>();
    mb += point["mb"].get<uint64_t>();
    for (const json& frame : point["fs"]) EXPECT_LT(frame.get<size_t>(), file["ftbl"].size());
  }
  EXPECT_EQ(gb, kPeak);
  EXPECT_EQ(gbk, kAllocations);  // Nothing was freed before the peak.
  EXPECT_EQ(eb, kLive);
  EXPECT_EQ(mb, kPeak);
}

TEST(Exports, PerfettoHasThePeakAmongItsPoints) {
  json file = json::parse(Exported().text(write_perfetto));
  uint64_t highest = 0;
  for (const json& event : file["traceEvents"])
    if (event["ph"] == "C" && event["pid"] == 0 && event["name"] == "live bytes")
      highest = std::max(highest, event["args"]["value"].get<uint64_t>());
  EXPECT_EQ(highest, kPeak);
}

// Fields as RFC 4180 reads them; a row ends with CRLF.
std::vector<std::vector<std::string>> rows_of(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1);
  std::string field;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted) {
      if (text[i] != '"')
        field += text[i];
      else if (i + 1 < text.size() && text[i + 1] == '"')
        field += text[++i];
      else
        quoted = false;
    } else if (text[i] == '"') {
      EXPECT_TRUE(field.empty());
      quoted = true;
    } else if (text[i] == ',' || text[i] == '\r') {
      rows.back().push_back(field);
      field.clear();
      if (text[i] == '\r') {
        EXPECT_EQ(text[++i], '\n');
        rows.emplace_back();
      }
    } else {
      EXPECT_NE(text[i], '\n');
      field += text[i];
    }
  }
  EXPECT_FALSE(quoted);
  rows.pop_back();
  return rows;
}

TEST(Exports, CsvQuotesWhatItMust) {
  auto rows = rows_of(Exported().text(write_csv));
  uint64_t peak = 0;
  bool found = false;
  for (size_t i = 1; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i].size(), rows[0].size());
    peak += std::stoull(rows[i][5]);
    // To blame is the innermost that is not the standard library's. No formula.
    found |= rows[i][7] == "'" + printable(kEvil);
  }
  EXPECT_EQ(peak, kPeak);
  EXPECT_TRUE(found);
}

TEST(Exports, CallgrindHasOnlyLinesOfItsFormat) {
  std::string text = Exported().text(write_callgrind);
  EXPECT_TRUE(is_plain(text));
  static const std::regex kLine(
      "|# callgrind format|(version|creator|cmd|positions|event|events): .*|"
      "(ob|fl|fn|cob|cfi|cfn)=\\(\\d+\\)( .+)?|calls=\\d+ \\d+|\\d+( \\d+){7}|"
      "(summary|totals):( \\d+){7}");
  uint64_t peak = 0;
  bool call = false;
  for (const std::string& line : lines_of(text)) {
    EXPECT_TRUE(std::regex_match(line, kLine)) << line;
    if (!line.empty() && isdigit(line[0]) && !call)
      peak += std::stoull(line.substr(line.find(' ')));
    call = line.starts_with("calls=");
  }
  EXPECT_EQ(peak, kPeak);
}

TEST(Exports, MassifTreesAreWhole) {
  std::string text = Exported().text(write_massif);
  EXPECT_TRUE(is_plain(text));
  std::smatch peak;
  ASSERT_TRUE(std::regex_search(
      text, peak, std::regex("mem_heap_B=(\\d+)\n.*\n.*\nheap_tree=peak\nn(\\d+): (\\d+) ")));
  EXPECT_EQ(std::stoull(peak[1]), kPeak);
  EXPECT_EQ(std::stoull(peak[3]), kPeak);
  uint64_t below = 0, trees = 0;
  for (const std::string& line : lines_of(text)) {
    std::smatch node;
    if (std::regex_match(line, node, std::regex("( *)n\\d+: (\\d+) .*"))) {
      trees += node[1].length() == 0;
      if (trees == 1 && node[1].length() == 1) below += std::stoull(node[2]);
    }
  }
  EXPECT_EQ(trees, 2u);
  EXPECT_EQ(below, kPeak);
}

TEST(Exports, IgprofIsForATerminal) {
  std::string text = Exported().text(write_igprof);
  EXPECT_TRUE(is_plain(text));
  EXPECT_TRUE(text.starts_with("Counter: MEM_LIVE_PEAK\n"));
  static const std::regex kFunction("\\[\\d+\\] +[\\d.]+ +[\\d']+ +([\\d']+) / .*");
  uint64_t self = 0;
  for (const std::string& line : lines_of(text)) {
    std::smatch function;
    if (!std::regex_match(line, function, kFunction)) continue;
    std::string number = function[1];
    std::erase(number, '\'');
    self += std::stoull(number);
  }
  EXPECT_EQ(self, kPeak);
}

TEST(Exports, SqliteHoldsTheNamesAndTheSums) {
  std::string text = Exported().text(write_sqlite);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(":memory:", &db), SQLITE_OK);
  ASSERT_EQ(
      sqlite3_deserialize(db, "main", reinterpret_cast<unsigned char*>(text.data()),
                          static_cast<sqlite3_int64>(text.size()),
                          static_cast<sqlite3_int64>(text.size()), SQLITE_DESERIALIZE_READONLY),
      SQLITE_OK);
  auto ask = [&](const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr), SQLITE_OK) << sql;
    EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW) << sql;
    const auto* answer = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
    std::string result = answer ? answer : "";
    sqlite3_finalize(statement);
    return result;
  };
  EXPECT_EQ(ask("SELECT sum(self_count) FROM mainrows"), std::to_string(kPeak));
  EXPECT_EQ(ask("SELECT sum(self_live_bytes) FROM amounts"), std::to_string(kLive));
  EXPECT_EQ(ask("SELECT total_count FROM summary"), std::to_string(kPeak));
  EXPECT_EQ(ask("SELECT name FROM symbols WHERE name LIKE '=evil%'"), valid_utf8(kEvil));
  sqlite3_close(db);
}

std::string unpacked(const std::string& gzip) {
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
  std::string out(1 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(gzip.data()));
  stream.avail_in = static_cast<uInt>(gzip.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

struct Pprof {
  std::vector<std::string> strings;
  std::vector<uint64_t> sums = std::vector<uint64_t>(5);
  std::map<uint64_t, uint64_t> lines_of_location;
  std::vector<std::vector<uint64_t>> stacks;

  explicit Pprof(const std::string& packed) {
    std::string text = unpacked(packed);
    protozero::pbf_reader profile(text);
    while (profile.next()) {
      if (profile.tag() == 6) {
        strings.push_back(profile.get_string());
      } else if (profile.tag() == 2) {
        protozero::pbf_reader sample = profile.get_message();
        while (sample.next()) {
          if (sample.tag() == 2) {
            size_t i = 0;
            for (int64_t v : sample.get_packed_int64()) sums.at(i++) += static_cast<uint64_t>(v);
          } else if (sample.tag() == 1) {
            auto ids = sample.get_packed_uint64();
            stacks.emplace_back(ids.begin(), ids.end());
          } else {
            sample.skip();
          }
        }
      } else if (profile.tag() == 4) {
        protozero::pbf_reader location = profile.get_message();
        uint64_t id = 0, lines = 0;
        while (location.next()) {
          if (location.tag() == 1) {
            id = location.get_uint64();
          } else {
            lines += location.tag() == 4;
            location.skip();
          }
        }
        EXPECT_TRUE(lines_of_location.emplace(id, lines).second) << "twice: " << id;
      } else {
        profile.skip();
      }
    }
  }
};

TEST(Exports, PprofHasValidTextAndInlinedFunctionsInOneLocation) {
  Pprof profile(Exported({.by_thread = true, .by_size = true}).text(write_pprof));
  EXPECT_EQ(profile.sums,
            (std::vector<uint64_t>{kAllocations, kAllocated, kLiveBlocks, kLive, kPeak}));
  EXPECT_EQ(profile.strings[0], "");
  for (const std::string& text : profile.strings) EXPECT_EQ(valid_utf8(text), text);
  EXPECT_NE(std::find(profile.strings.begin(), profile.strings.end(), valid_utf8(kEvil)),
            profile.strings.end());
  uint64_t most = 0;
  for (const auto& stack : profile.stacks)
    for (uint64_t id : stack) {
      ASSERT_TRUE(profile.lines_of_location.contains(id));
      most = std::max(most, profile.lines_of_location[id]);
    }
  EXPECT_EQ(most, 3u);
}

TEST(Exports, PprofShowsTheFramesThatTheQueryLeaves) {
  analyze::Query query;
  query.frames.hide.push_back(*analyze::Pattern::make("^=evil", "--hide"));
  Pprof profile(Exported({.by_thread = true, .by_size = true}).text(write_pprof, query, true));
  EXPECT_EQ(profile.sums[4], kPeak);
  uint64_t most = 0;
  for (const auto& [id, lines] : profile.lines_of_location) most = std::max(most, lines);
  EXPECT_EQ(most, 1u);  // The caller alone: one is hidden, one is the standard library's.
}

TEST(Exports, HoldWhatIsHiddenToo) {
  analyze::Query query;
  query.frames.hide.push_back(*analyze::Pattern::make("", "--hide"));
  std::string text = Exported().text(write_folded, query);
  uint64_t sum = 0;
  for (const std::string& line : lines_of(text)) {
    EXPECT_NE(line.find("[hidden] "), std::string::npos) << line;
    sum += std::stoull(line.substr(line.rfind(' ')));
  }
  EXPECT_EQ(sum, kPeak);
  EXPECT_EQ(Pprof(Exported().text(write_pprof, query)).sums[4], kPeak);
}

}  // namespace
}  // namespace malloscope::output
