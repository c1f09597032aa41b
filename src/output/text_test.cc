// SPDX-License-Identifier: Apache-2.0
// The pages that people read, and the folded stacks that flamegraph.pl reads.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <sstream>

#include "output/answer_json.h"
#include "output/answer_text.h"
#include "output/exports.h"
#include "output/info.h"
#include "output/page.h"
#include "output/reading_for_test.h"
#include "output/sink.h"
#include "output/words.h"

namespace malloscope::output {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string page(MadeUp* made_up, PageOptions options = {}) {
  auto reading = made_up->reading();
  StringSink sink;
  write_page(reading.get(), options, &sink);
  return sink.text();
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(Page, FitsTheTerminal) {
  for (size_t width : {20, 50, 60, 80, 100, 120, 200, 300}) {
    MadeUp made_up;
    made_up.play();
    std::vector<std::string> lines = lines_of(page(&made_up, {.width = width}));
    EXPECT_LE(lines.size(), width < 80 ? 50u : 40u);
    for (const std::string& line : lines) {
      if (has(line, "malloscope report") || line.starts_with("  malloscope"))
        continue;  // To be copied, not cut.
      EXPECT_LE(columns(line), std::clamp<size_t>(width, 50, 200)) << line;
    }
  }
}

TEST(Page, LetsNoNameReachTheTerminalAsACommand) {
  MadeUp made_up;
  made_up.play();
  for (char c : page(&made_up)) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << int{c};
}

TEST(Page, SaysHowMuchWhenWhichCodeAndWhatNext) {
  MadeUp made_up;
  made_up.play();
  std::string text = page(&made_up);
  EXPECT_TRUE(has(text, "exit code 3")) << text;
  EXPECT_TRUE(has(text, "5.2 KiB")) << text;
  EXPECT_TRUE(has(text, "6 allocations"));
  EXPECT_TRUE(has(text, "in 4 blocks"));
  EXPECT_TRUE(has(text, "load.cc:40"));
  EXPECT_TRUE(has(text, "1.0 MiB of it the recorder's own"));
  EXPECT_TRUE(has(text, "1 free was of a block not known to be live"));
  EXPECT_TRUE(has(text, "2 process images"));
  EXPECT_TRUE(has(text, "statically linked"));
  EXPECT_TRUE(has(text, "build it with -g"));
  EXPECT_TRUE(has(text, "one of them: malloscope report app.mscope --process 101"));
  EXPECT_TRUE(
      has(text, "malloscope export app.mscope --format folded --metric peak -o peak.folded\n"));
  EXPECT_TRUE(has(text, "malloscope info app.mscope\n"));
}

std::vector<std::string> suggested_views(MadeUp* made_up) {
  std::vector<std::string> views;
  for (const std::string& line : lines_of(page(made_up)))
    if (size_t at = line.find(" --view "); at != std::string::npos)
      views.push_back(line.substr(at + 8));
  return views;
}

TEST(Page, SuggestsTheViewsThatAnswerWhatItShows) {
  using Views = std::vector<std::string>;
  using wire::Kind, wire::Op;
  MadeUp growing;
  growing.play();
  for (trace::Image& image : growing.tables.images) image.peak_rss_bytes = 0;
  growing.show(Kind::kAlloc, Op::kNew, 112, 151, 1);
  EXPECT_EQ(suggested_views(&growing), Views{}) << "the smaller one is still there";
  growing = MadeUp();
  growing.play();
  for (trace::Image& image : growing.tables.images) image.peak_rss_bytes = 0;
  growing.show(Kind::kAlloc, Op::kNew, 112, 151, 1);
  growing.show(Kind::kFree, Op::kDelete, 16, 0, 0);
  EXPECT_EQ(suggested_views(&growing), Views{"growth"});

  MadeUp resident;
  resident.play();  // 10 MiB resident, 5 KiB of heap.
  EXPECT_EQ(suggested_views(&resident), Views{"rss"});

  MadeUp mapping;
  mapping.play();
  for (trace::Image& image : mapping.tables.images) image.peak_rss_bytes = 0;
  mapping.show(Kind::kMapping, Op::kMmap, 1 << 20, 1 << 20, 1);
  EXPECT_EQ(suggested_views(&mapping), Views{"mappings"});

  MadeUp threaded;
  threaded.play();
  for (trace::Image& image : threaded.tables.images) {
    image.peak_rss_bytes = 0;
    image.threads.push_back({ThreadId{2}, 102, "worker", 1000});
  }
  EXPECT_EQ(suggested_views(&threaded), Views{"threads"});
}

// A process may begin later than the recording; what is typed for --to counts from the latter.
TEST(Page, CountsTimesFromTheBeginningOfTheRecording) {
  MadeUp made_up({.pid = 102});
  made_up.tables.images[1].start_tick = 3500;  // The recording began 250 us before.
  made_up.tables.images[1].end_tick = 4500;
  made_up.play();
  std::string text = page(&made_up);
  EXPECT_TRUE(has(text, "ran 100 us")) << text;
  EXPECT_TRUE(has(text, "reached at 300 us of the recording's")) << text;
}

TEST(Page, OfAPartSaysWhichFiguresAreOfMore) {
  MadeUp made_up({}, {.from_tick = 3001, .to_tick = 6000});  // 200 us to 500 us.
  made_up.play();
  std::string text = page(&made_up);
  EXPECT_TRUE(has(text, "Only from 200 us to 500 us of the recording;")) << text;
  EXPECT_TRUE(has(text, "with what was there before")) << text;
  EXPECT_TRUE(has(text, "at 500 us, in 5 blocks, whenever they were allocated")) << text;
  EXPECT_TRUE(has(text, "Live at the end of that time")) << text;
  EXPECT_TRUE(has(text, "in the largest process, of the whole run")) << text;
  EXPECT_TRUE(has(text, "Recording  of the whole run: 9 events")) << text;
  MadeUp whole;
  whole.play();
  EXPECT_FALSE(has(page(&whole), "of the whole run"));
}

TEST(Page, SaysHowMoreCanBeLiveThanAtThePeak) {
  using wire::Kind, wire::Op;
  MadeUp one_by_one;
  one_by_one.show(Kind::kAlloc, Op::kMalloc, 16, 100, 1, 1);
  one_by_one.accounts->image_ended(one_by_one.tables.images[0]);
  one_by_one.show(Kind::kAlloc, Op::kMalloc, 16, 100, 1, 2);
  std::string text = page(&one_by_one);
  EXPECT_TRUE(has(text, "at the end, in 2 blocks; more than the peak, with")) << text;
  MadeUp together;
  together.play();
  EXPECT_FALSE(has(page(&together), "more than the peak"));
}

TEST(Page, OfAProcessIsCalledWhatItBecame) {
  MadeUp made_up({.pid = 102});
  trace::Image became = made_up.tables.images[1];
  became.id = ImageId{3};
  became.command = {"gzip", "-9"};
  became.start_tick = 1100;
  made_up.tables.images[1].ended_by_exec = true;
  made_up.tables.images.push_back(became);
  made_up.accounts->image_started(became);
  std::string text = page(&made_up);
  EXPECT_TRUE(has(text, "\ngzip -9   ran ")) << text;
}

TEST(Page, SaysThatMappingsAreAllThereEverWere) {
  using wire::Kind, wire::Op;
  MadeUp made_up;
  made_up.play();
  made_up.show(Kind::kMapping, Op::kMmap, 1 << 20, 3 << 20, 1);
  made_up.show(Kind::kMapping, Op::kMunmap, 1 << 20, 2 << 20, 1);
  std::string text = page(&made_up);
  EXPECT_TRUE(
      has(text, "3.0 MiB  by all of the program's own mmap calls together, 2.0 MiB unmapped"))
      << text;
}

TEST(Page, RemarksNothingTwice) {
  MadeUp made_up;
  made_up.tables.images[1].modules[0].path = "/opt/app";  // Of the same name as the other.
  made_up.play();
  std::string text = page(&made_up);
  size_t first = text.find("build it with -g");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("build it with -g", first + 1), std::string::npos) << text;
}

TEST(Page, SaysHowManyProcessesItDoesNotList) {
  MadeUp made_up;
  for (uint32_t i = 3; i <= 9; ++i) {
    trace::Image image;
    image.id = ImageId{i};
    image.pid = 100 + static_cast<int>(i);
    image.executable = "/usr/bin/some-program-of-the-pipeline";
    image.command = {image.executable};
    made_up.tables.images.push_back(std::move(image));
    made_up.accounts->image_started(made_up.tables.images.back());
  }
  made_up.play();
  std::string text = page(&made_up, {.width = 80});
  EXPECT_TRUE(has(text, "9 process images together")) << text;
  size_t listed = 0;
  for (size_t at = text.find("(pid "); at != text.npos; at = text.find("(pid ", at + 1)) ++listed;
  EXPECT_LT(listed, 9u);
  EXPECT_TRUE(has(text, "and " + std::to_string(9 - listed) + " more")) << text;

  MadeUp two;
  two.play();
  EXPECT_FALSE(has(page(&two), " more\n"));
}

TEST(Page, SaysSoIfNothingWasAllocatedOrLost) {
  MadeUp made_up;
  made_up.tables.notes.clear();
  std::string text = page(&made_up);
  EXPECT_TRUE(has(text, "No allocation was recorded."));
  EXPECT_TRUE(has(text, "nothing was lost"));
  MadeUp nobody;
  nobody.tables.images.clear();
  EXPECT_TRUE(has(page(&nobody), "No process was recorded."));
}

TEST(Page, TellsWhatIsMissing) {
  MadeUp made_up;
  made_up.play();
  made_up.tables.complete = false;
  made_up.tables.incomplete_because = "the disk was full";
  made_up.tables.images[0].lost = 1234;
  std::string text = page(&made_up);
  EXPECT_TRUE(has(text, "not complete: the disk was full"));
  EXPECT_TRUE(has(text, "1,234 events were lost"));
  EXPECT_FALSE(has(text, "nothing was lost"));
}

TEST(Page, IsColouredOnlyIfAsked) {
  MadeUp plain, coloured;
  plain.play();
  coloured.play();
  EXPECT_FALSE(has(page(&plain), "\033["));
  EXPECT_TRUE(has(page(&coloured, {.color = true}), "\033["));
}

TEST(Info, ShowsWhatIsInTheTraceAndEscapesIt) {
  MadeUp made_up;
  made_up.play();
  auto reading = made_up.reading();
  StringSink sink;
  write_info(*reading, {}, &sink);
  for (char c : sink.text()) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << int{c};
  for (const char* part : {"complete", "follow=yes", "abcd", "killed by SIGKILL (signal 9)",
                           "main\\x1b[2J", "statically linked", "Threads (2)", "Modules (1)"})
    EXPECT_TRUE(has(sink.text(), part)) << part << "\n" << sink.text();
}

TEST(Info, FitsTheTerminal) {
  MadeUp made_up;
  made_up.play();
  for (trace::Image& image : made_up.tables.images) {
    image.command = {"a-program-of-some-length", "with", "many", "words", "to", "be", "cut"};
    image.modules[0].path = "/home/someone/somewhere/deep/down/in/a/tree/of/folders/lib/libapp.so";
    image.modules[0].build_id = std::string(40, 'e');
  }
  auto reading = made_up.reading();
  for (size_t width : {80, 100, 140}) {
    StringSink sink;
    write_info(*reading, {.width = width}, &sink);
    for (const std::string& line : lines_of(sink.text())) {
      if (has(line, "statically linked") || has(line, "  lost  ")) continue;  // Sentences.
      EXPECT_LE(columns(line), width) << line;
    }
    EXPECT_TRUE(
        has(sink.text(), std::string(width < 100 ? 13 : 40, 'e') + (width < 100 ? "..." : "  /")))
        << sink.text();
    EXPECT_TRUE(has(sink.text(), "  (gone since)")) << sink.text();
    EXPECT_TRUE(has(sink.text(), ", exit code 3\n")) << sink.text();
  }
}

TEST(Info, CountsNoThreadThatIsNone) {
  MadeUp made_up;
  made_up.tables.images[0].threads.push_back({ThreadId{2}, 0, "", 1000});
  made_up.play();
  auto reading = made_up.reading();
  StringSink sink;
  write_info(*reading, {}, &sink);
  EXPECT_TRUE(has(sink.text(), "Threads (2, and what they did after their end)")) << sink.text();
  EXPECT_FALSE(has(sink.text(), "tid 0")) << sink.text();
  EXPECT_TRUE(has(sink.text(), "no thread    what threads did after their end")) << sink.text();
}

std::vector<std::string> folded(analyze::Metric metric, analyze::Selection selection = {}) {
  MadeUp made_up(selection);
  made_up.play();
  auto reading = made_up.reading();
  StringSink sink;
  analyze::Query query;
  EXPECT_TRUE(write_folded({reading.get(), &query, metric, false}, &sink));
  return lines_of(sink.text());
}

uint64_t sum(const std::vector<std::string>& lines) {
  uint64_t total = 0;
  for (const std::string& line : lines) total += std::stoull(line.substr(line.rfind(' ') + 1));
  return total;
}

TEST(Folded, HasALineForEveryStackOfNames) {
  std::vector<std::string> lines = folded(analyze::Metric::kPeak);
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines,
            (std::vector<std::string>{
                "[cut];load(std::map<int, int> const&) 30", "[unknown] 10",
                "[unknown];load(std::map<int, int> const&) 20",
                "main;load(std::map<int, int> const&) 300",  // Of both images.
                "main;parse\\x3b\\n\\x1b[31mevil\\xff;std::vector<int>::reserve(unsigned long) "
                "5000"}));
}

TEST(Folded, AddsUpToTheTotals) {
  EXPECT_EQ(sum(folded(analyze::Metric::kPeak)), 5360u);
  EXPECT_EQ(sum(folded(analyze::Metric::kAllocated)), 5360u);
  EXPECT_EQ(sum(folded(analyze::Metric::kAllocations)), 6u);
  EXPECT_EQ(sum(folded(analyze::Metric::kLive)), 350u);
  EXPECT_EQ(folded(analyze::Metric::kTemporary), std::vector<std::string>{"[unknown] 1"});
  EXPECT_EQ(sum(folded(analyze::Metric::kPeak, {.pid = 102})), 200u);
}

TEST(Words, AreWhatPeopleRead) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(bytes_text(~uint64_t{0}), "16.0 EiB");
  EXPECT_EQ(duration_text(850'000), "850 us");
  EXPECT_EQ(duration_text(12'340'000), "12.3 ms");
  EXPECT_EQ(duration_text(4'560'000'000), "4.56 s");
  EXPECT_EQ(duration_text(200'000'000'000), "3 min 20 s");
  EXPECT_EQ(duration_text(7'500'000'000'000), "2 h 05 min");
  EXPECT_EQ(percent_text(0, 10), "0 %");
  EXPECT_EQ(percent_text(1, 10'000), "< 0.1 %");
  EXPECT_EQ(percent_text(9'999'998, 10'000'000), "> 99 %");
  EXPECT_EQ(percent_text(98'999, 100'000), "99 %");
  EXPECT_EQ(percent_text(10, 10), "100 %");
}

TEST(Words, AreCutToWidthBetweenCharacters) {
  EXPECT_EQ(cut_end("abcdefgh", 6), "abc...");
  EXPECT_EQ(cut_end("abcdef", 6), "abcdef");
  EXPECT_EQ(cut_beginning("abcdefgh", 6), "...fgh");
  EXPECT_EQ(cut_end("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 4), "\xc3\xa9...");
  EXPECT_EQ(cut_middle("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(cut_middle("abcdefghi", 8), "abc...hi");
  EXPECT_EQ(cut_middle("abcdefghi", 2), "..");
  EXPECT_EQ(columns("h\xc3\xa9"), 2u);
}

TEST(Words, TakeAsManyColumnsAsATerminalGivesThem) {
  EXPECT_EQ(columns("漢字"), 4u);
  EXPECT_EQ(columns("かな한"), 6u);
  EXPECT_EQ(columns("🚀x"), 3u);
  EXPECT_EQ(columns("e\u0301tude"), 5u);  // A mark of its own.
  EXPECT_EQ(columns("naïve Ω ж"), 9u);
  EXPECT_EQ(columns("\xff\xfe"), 2u);
  EXPECT_EQ(cut_end("漢字漢字", 7), "漢字...");
  EXPECT_EQ(cut_end("漢字漢字", 6), "漢...");  // No half of one.
  EXPECT_EQ(cut_end("e\u0301e\u0301e\u0301e\u0301e\u0301", 4), "e\u0301...");
  EXPECT_EQ(cut_beginning("漢字漢字", 6), "...字");
  EXPECT_EQ(cut_beginning("aae\u0301bbb", 5), "...bb");
  EXPECT_EQ(cut_beginning("abce\u0301", 3), "...");
  EXPECT_EQ(cut_middle("漢字漢字漢字", 9), "漢...字");
  for (size_t width : {1, 2, 3, 5, 8})
    for (std::string_view text : {"漢字漢字漢字", "a漢b字", "🚀 🚀 e\u0301 🚀"}) {
      EXPECT_LE(columns(cut_end(text, width)), width) << text;
      EXPECT_LE(columns(cut_beginning(text, width)), width) << text;
      EXPECT_LE(columns(cut_middle(text, width)), width) << text;
      std::string all;
      for (const std::string& line : wrapped_lines(std::string(text), width)) {
        EXPECT_LE(columns(line), std::max<size_t>(width, 2)) << text;
        all += line;
      }
      std::string words(text);
      std::erase(all, ' ');
      std::erase(words, ' ');
      EXPECT_EQ(all, words);
    }
}

TEST(Words, ShowEveryControlCharacterAsText) {
  EXPECT_EQ(printable("a\tb\n"), "a\\tb\\n");
  EXPECT_EQ(printable("\x1b[31m"), "\\x1b[31m");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\x9b31m");  // CSI as one character.
  EXPECT_EQ(printable("\xe2\x80\xae"
                      "txt"),
            "\\u202etxt");  // Right to left from here on.
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("h\xc3\xa9"), "h\xc3\xa9");
}

TEST(Words, AreQuotedAsTheShellReadsThem) {
  EXPECT_EQ(shell_quoted("a.mscope"), "a.mscope");
  EXPECT_EQ(shell_quoted("a b"), "'a b'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("a\nb'"), "$'a\\nb\\''");
  EXPECT_EQ(shell_quoted("$(rm)"), "'$(rm)'");
}

TEST(FileSink, SaysWhatCouldNotBeWritten) {
  int full = open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  FileSink sink(full, "out.folded");
  sink.write("x");
  Result<void> done = sink.finish();
  ASSERT_FALSE(done);
  EXPECT_TRUE(has(done.error().sentence, "out.folded could not be written"));
  close(full);

  std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  FileSink closed(ends[1], "stdout");
  closed.write("x");
  done = closed.finish();
  ASSERT_FALSE(done);
  EXPECT_TRUE(has(done.error().sentence, "closed by its reader"));
  close(ends[1]);
}

// What answer_text.cc and answer_json.cc promise to every view.
analyze::Answer wide_answer() {
  using Kind = analyze::Column::Kind;
  analyze::Answer answer;
  answer.facts = {{"one", uint64_t{1}},
                  {"totals.blocks", uint64_t{2}},
                  {"totals.before.bytes", uint64_t{3}},
                  {"totals.before.calls", uint64_t{4}},
                  {"totals.after.bytes", uint64_t{5}},
                  {"two", uint64_t{6}}};
  analyze::Table table;
  table.key = "rows";
  table.columns = {{"name", "name", Kind::kText},
                   {"first", "first", Kind::kText, true, true},
                   {"second", "second", Kind::kText, true, true},
                   {"stack", "", Kind::kStack, false}};
  analyze::TableRow row;
  std::vector<analyze::NamedFrame> stack = {{"inner", "", 0, ""}, {"outer", "", 0, ""}};
  row.cells = {std::string(20, 'n'), std::string(20, 'f'), std::string(20, 's'),
               analyze::named_stack(stack)};
  table.rows.push_back(row);
  answer.tables.push_back(table);
  return answer;
}

std::string as_text(const analyze::Answer& answer, size_t width) {
  StringSink sink;
  write_answer(answer, {false, width, false}, &sink);
  return sink.text();
}

TEST(AnswerText, LeavesOutTheLastColumnsThatMayGoAndSaysSo) {
  analyze::Answer answer = wide_answer();
  EXPECT_TRUE(has(as_text(answer, 100), "ssss"));
  EXPECT_FALSE(has(as_text(answer, 100), "no room"));
  std::string narrow = as_text(answer, 50);
  EXPECT_TRUE(has(narrow, "ffff")) << narrow;
  EXPECT_FALSE(has(narrow, "ssss")) << narrow;
  EXPECT_TRUE(has(narrow, "no room for second: see --columns")) << narrow;
  ASSERT_TRUE(analyze::shape(&answer, {{"second"}, "", 0}));
  EXPECT_TRUE(has(as_text(answer, 25), "s")) << "what was asked for stays";
  EXPECT_FALSE(has(as_text(answer, 25), "no room"));
}

analyze::Answer answer_of(std::vector<analyze::NamedFrame> frames) {
  analyze::Answer answer;
  analyze::Table table;
  table.columns = {{"frame", "function", analyze::Column::Kind::kFrame}};
  for (analyze::NamedFrame& frame : frames) table.rows.push_back({{std::move(frame)}});
  answer.tables.push_back(std::move(table));
  return answer;
}

TEST(AnswerText, CutsNoTwoRowsToTheSame) {
  std::string name = "libwith_a_rather_long_name_indeed.so.6", library = "/usr/lib/" + name;
  std::string text = as_text(answer_of({{name + "+0xa57b9", "", 0, library},
                                        {name + "+0xa57c0", "", 0, library},
                                        {"load", "load.c", 4, "/usr/bin/git"},
                                        {"load", "load.c", 4, "/usr/lib/git-core/git"}}),
                             40);
  EXPECT_TRUE(has(text, "+0xa57b9\n")) << text;  // And the library no second time.
  EXPECT_TRUE(has(text, "+0xa57c0\n")) << text;
  EXPECT_TRUE(has(text, "load  load.c:4 [bin/git]")) << text;
  EXPECT_TRUE(has(text, "load  load.c:4 [git-core/git]")) << text;
}

TEST(AnswerText, KeepsTheTemplateArgumentsThatNamesDifferIn) {
  std::string front = "a_library::Container<a_library::detail::";
  std::string text = as_text(answer_of({{front + "Node>::grow_to", "", 0, ""},
                                        {front + "Leaf>::grow_to", "", 0, ""},
                                        {"another::Thing<std::pair<long, short>>::go", "", 0, ""}}),
                             42);
  EXPECT_TRUE(has(text, "Node>::grow_to\n")) << text;
  EXPECT_TRUE(has(text, "Leaf>::grow_to\n")) << text;
  EXPECT_TRUE(has(text, "  another::Thing<std::pair<...>>::go\n")) << text;
  for (const std::string& line : lines_of(text)) EXPECT_LE(line.size(), 42u);
}

TEST(AnswerText, LeavesALineBetweenBlocks) {
  analyze::Answer answer = answer_of({{"a", "", 0, ""}, {"b", "", 0, ""}, {"c", "", 0, ""}});
  for (size_t row : {0, 2}) answer.tables[0].rows[row].begins_block = true;
  EXPECT_TRUE(has(as_text(answer, 80), "function\n  a\n  b\n\n  c\n")) << as_text(answer, 80);
}

TEST(AnswerText, CutsNoWordsThatThereIsRoomFor) {
  analyze::Answer answer = wide_answer();
  answer.tables[0].columns.resize(1);
  answer.tables[0].rows[0].cells = {std::string(70, 'n')};
  EXPECT_TRUE(has(as_text(answer, 100), std::string(70, 'n')));
  for (const std::string& line : lines_of(as_text(answer, 50))) EXPECT_LE(line.size(), 50u);
}

TEST(AnswerText, CutsShortWordsLastAndLeavesNoRoomUnused) {
  using Kind = analyze::Column::Kind;
  analyze::Answer answer;
  analyze::Table table;
  table.columns = {
      {"range", "range", Kind::kText},      {"a", "column a", Kind::kCount},
      {"b", "b", Kind::kCount, true, true}, {"c", "c", Kind::kCount},
      {"d", "", Kind::kText, true, true},   {"frame", "most in", Kind::kFrame, true, true}};
  table.rows.push_back({{"512 KiB - 1 MiB", uint64_t{1'000'000}, uint64_t{22}, uint64_t{333},
                         std::string(12, 'd'), analyze::NamedFrame{"function", "", 0, ""}}});
  answer.tables.push_back(table);
  std::string text = as_text(answer, 80);
  EXPECT_TRUE(has(text, "function\n")) << text;
  // First what may go goes, the last one first; what has no title is not told by its inner name.
  text = as_text(answer, 64);
  EXPECT_FALSE(has(text, "dddd") || has(text, "no room")) << text;
  EXPECT_TRUE(has(text, "  22  333  function\n")) << text;
  // Then the frames become narrower, and go; what there is then room for comes back.
  text = as_text(answer, 52);
  EXPECT_TRUE(has(text, "  1,000,000  333  function\n")) << text;
  text = as_text(answer, 42);
  EXPECT_TRUE(has(text, "  512 KiB - 1 MiB  1,000,000  22  333\n")) << text;
  EXPECT_TRUE(has(text, "no room for most in: see --columns")) << text;
  // Then others, and words only in the end.
  text = as_text(answer, 30);
  EXPECT_TRUE(has(text, "  512 KiB - 1 MiB  1,000,000\n")) << text;
  text = as_text(answer, 14);
  EXPECT_TRUE(has(text, "  512 K... MiB\n")) << text;
}

TEST(AnswerText, AlignsWhatComesAfterAFrame) {
  analyze::Answer answer = answer_of({{"a", "", 0, ""}, {"longer_name", "load.c", 4, ""}});
  analyze::Table& table = answer.tables[0];
  table.columns.push_back({"peak", "peak", analyze::Column::Kind::kCount});
  for (uint64_t i = 0; i < 2; ++i) table.rows[i].cells.emplace_back(100 * i + 5);
  EXPECT_TRUE(has(as_text(answer, 80),
                  "  function               peak\n"
                  "  a                         5\n"
                  "  longer_name  load.c:4   105\n"))
      << as_text(answer, 80);
  for (const std::string& line : lines_of(as_text(answer, 31))) EXPECT_LE(line.size(), 31u) << line;
}

TEST(AnswerText, ShowsStacksOnlyWhereTheyAreShown) {
  analyze::Answer answer = wide_answer();
  EXPECT_FALSE(has(as_text(answer, 100), "outer"));
  answer.tables[0].columns.back().shown = true;
  EXPECT_TRUE(has(as_text(answer, 100), "outer"));
}

TEST(AnswerJson, FactsWithDotsAreObjectsInObjects) {
  StringSink sink;
  JsonWriter json(&sink);
  json.begin_object(JsonWriter::Layout::kLine);
  write_answer_members(wide_answer(), &json);
  json.end();
  EXPECT_TRUE(sink.text().starts_with(
      R"({"one": 1, "totals": {"blocks": 2, "before": {"bytes": 3, "calls": 4}, )"
      R"("after": {"bytes": 5}}, "two": 6, "rows": [)"))
      << sink.text();
}

}  // namespace
}  // namespace malloscope::output
