// SPDX-License-Identifier: Apache-2.0
// What the verbs that read a trace share: progress, warnings, complaints, colours.

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>

#include "analyze/row_selector.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "output/answer_json.h"
#include "output/answer_text.h"
#include "output/json.h"
#include "output/json_writer.h"
#include "output/sink.h"
#include "output/words.h"

namespace malloscope::cli {
namespace {

// "reading 42 %" on a terminal, after the first half second, and wiped away at the end.
class Progress {
 public:
  explicit Progress(std::string_view what) : what_(what) {}
  ~Progress() { wipe(); }

  void wipe() {
    if (std::exchange(shown_, -1) >= 0) fmt::print(stderr, "\r\033[K");
  }

  void show(double share) {
    using namespace std::chrono_literals;
    int percent = static_cast<int>(share * 100);
    if (percent == shown_ || std::chrono::steady_clock::now() - begin_ < 500ms) return;
    shown_ = percent;
    fmt::print(stderr, "\rmalloscope: {} {} %", what_, percent);
    std::fflush(stderr);
  }

 private:
  std::string_view what_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  int shown_ = -1;
};

std::string pids_of(const trace::Tables& tables) {
  std::set<int> pids;
  for (const trace::Image& image : tables.images) pids.insert(image.pid);
  std::string text;
  size_t listed = 0;
  for (int pid : pids) {
    if (++listed > 20) return text + fmt::format(" and {} more", pids.size() - 20);
    text += fmt::format("{}{}", text.empty() ? "" : ", ", pid);
  }
  return text;
}

bool has_thread(const analyze::Reading& reading, const std::vector<analyze::Pattern>& patterns) {
  for (const trace::Image* image : reading.selected())
    for (const trace::Thread& thread : image->threads)
      if (is_meant(thread, patterns)) return true;
  return false;
}

bool has_phase(const trace::Tables& tables, const std::vector<analyze::Pattern>& patterns) {
  return std::ranges::any_of(tables.mark_names,
                             [&](const std::string& name) { return matches_any(patterns, name); });
}

}  // namespace

std::function<void(double)> progress_of(std::string_view what) {
  if (!isatty(STDERR_FILENO)) return {};
  return [what, progress = std::shared_ptr<Progress>()](double share) mutable {
    if (!progress) progress = std::make_shared<Progress>(what);
    share < 1 ? progress->show(share) : progress->wipe();
  };
}

std::string names_nobody(const analyze::Reading& reading, const analyze::Query& query) {
  if (!query.threads.empty() && !has_thread(reading, query.threads))
    return fmt::format("no thread of {} has a name or number that matches --thread {}",
                       reading.path(), query.threads[0].text());
  if (!query.phases.empty() && !has_phase(reading.tables(), query.phases))
    return fmt::format("no phase of {} has a name that matches --phase {}; {}", reading.path(),
                       query.phases[0].text(),
                       reading.tables().mark_names.empty()
                           ? "the program names none (docs/phases.md tells how it can)"
                           : "malloscope info lists them");
  return "";
}

int complain(int exit_code, std::string_view sentence) {
  // What was typed may be of any length and is in the sentence; its ends say enough.
  constexpr size_t kMost = 2000;
  // Not by fmt::print, which throws if nobody can read it: the exit code says enough then.
  std::string text =
      fmt::format("malloscope: {}\n", output::cut_middle(output::printable(sentence), kMost));
  std::fwrite(text.data(), 1, text.size(), stderr);
  return exit_code;
}

int finish_stdout() {
  if (std::fflush(stdout) == 0) return kOk;
  return complain(kUnreadable,
                  fmt::format("stdout could not be written: {}", std::strerror(errno)));
}

std::unique_ptr<analyze::Reading> read_trace(const std::string& path, const analyze::Query& query,
                                             int* exit_code,
                                             std::function<void(analyze::Heap*)> attach,
                                             bool says_losses) {
  if (path.empty()) {
    *exit_code = complain(kUsage, "the trace has no name; give the file to read");
    return nullptr;
  }
  Result<std::unique_ptr<analyze::Reading>> reading = [&] {
    Progress progress("reading");
    std::function<void(double)> show;
    if (isatty(STDERR_FILENO)) show = [&progress](double share) { progress.show(share); };
    return analyze::Reading::open(path, query,
                                  {show, std::move(attach), progress_of("looking up names:")});
  }();
  if (!reading) {
    *exit_code = complain(reading.error().usage ? kUsage : kUnreadable, reading.error().sentence);
    return nullptr;
  }
  const trace::Tables& tables = (*reading)->tables();
  if (!query.selection.is_all() && (*reading)->selected().empty()) {
    *exit_code = complain(
        kUsage, fmt::format("{} is not in {}, which has {}", selection_text(query.selection), path,
                            tables.images.empty()   ? "none"
                            : query.selection.image ? fmt::format("1 to {}", tables.images.size())
                                                    : pids_of(tables)));
    return nullptr;
  }
  // No mistake in a diff, where a thread may be new.
  if (std::string sentence = names_nobody(**reading, query); !sentence.empty())
    complain(kOk, sentence);
  if (!query.phases.empty() && !(*reading)->accounts().phases().complete)
    complain(kOk, fmt::format("warning: {}: {}", path, analyze::kPhasesNotTold));
  if (!(*reading)->past_end().empty()) complain(kOk, (*reading)->past_end());
  if (!tables.complete && !says_losses)
    complain(kOk, fmt::format("warning: {} is not complete: {}", path,
                              tables.incomplete_because.empty() ? "its end is missing"
                                                                : tables.incomplete_because));
  return std::move(*reading);
}

namespace {

// `preamble` writes what stands before the answer in JSON.
int print(analyze::Answer answer, const analyze::Shape& shape, bool json,
          output::TextOptions options, const std::function<void(output::JsonWriter*)>& preamble) {
  if (Result<void> shaped = analyze::shape(&answer, shape); !shaped)
    return complain(kUsage, shaped.error().sentence);
  output::FileSink sink(fileno(stdout), "stdout");
  if (json) {
    output::JsonWriter writer(&sink);
    writer.begin_object();
    preamble(&writer);
    output::write_answer_members(answer, &writer);
    writer.end();
  } else {
    output::write_answer(answer, options, &sink);
  }
  if (Result<void> done = sink.finish(); !done) return complain(kUnreadable, done.error().sentence);
  return kOk;
}

}  // namespace

// Why some of what is listed has addresses for names.
static void add_remarks(analyze::Reading* reading, analyze::Answer* answer) {
  constexpr size_t kMost = 3;
  std::set<std::string> asked;
  for (const analyze::Table& table : answer->tables)
    for (const analyze::TableRow& row : table.rows)
      for (const analyze::Cell& cell : row.cells) {
        const auto* frame = std::get_if<analyze::NamedFrame>(&cell);
        if (!frame || frame->function.find("+0x") == std::string::npos || asked.size() >= kMost ||
            !asked.insert(frame->module).second)
          continue;
        std::string why = reading->remark(frame->module);
        if (!why.empty() && std::ranges::find(answer->notes, why) == answer->notes.end())
          answer->notes.push_back(std::move(why));
      }
}

int print_answer(analyze::Reading* reading, analyze::Answer answer, const analyze::Shape& shape,
                 bool json, Color color, bool full_names) {
  auto said = [](const std::string& note) { return note.find("Only a sample") != note.npos; };
  if (std::string sample = reading->sample_sentence();
      !sample.empty() && std::ranges::none_of(answer.notes, said))
    answer.notes.push_back(sample + ".");
  for (std::string& sentence : reading->missing_names())
    answer.notes.push_back(std::move(sentence));
  add_remarks(reading, &answer);
  // On the terminal it has been said already.
  if (json && !reading->past_end().empty()) answer.notes.push_back(reading->past_end());
  return print(
      std::move(answer), shape, json,
      {wants_color(color, stdout), terminal_width(stdout), full_names, isatty(STDOUT_FILENO) != 0},
      [&](output::JsonWriter* writer) { output::write_json_preamble(*reading, writer); });
}

int print_answer(analyze::Answer answer, const analyze::Shape& shape, bool json, Color color) {
  return print(
      std::move(answer), shape, json,
      {wants_color(color, stdout), terminal_width(stdout), false, isatty(STDOUT_FILENO) != 0},
      [](output::JsonWriter* writer) { writer->member("malloscope", output::kJsonSchema); });
}

bool wants_color(Color color, std::FILE* stream) {
  if (color != Color::kAuto) return color == Color::kAlways;
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return isatty(fileno(stream)) && (!no_color || !*no_color) &&
         !(term && std::string_view(term) == "dumb");
}

size_t terminal_width(std::FILE* stream) {
  winsize size = {};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 100;
}

}  // namespace malloscope::cli
