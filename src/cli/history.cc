// SPDX-License-Identifier: Apache-2.0
#include "analyze/history.h"

#include <fmt/format.h>

#include <cmath>
#include <csignal>
#include <filesystem>

#include "cli/arguments.h"
#include "cli/commands.h"

namespace malloscope::cli {
namespace {

struct HistoryOptions {
  std::vector<std::string> paths;
  bool json = false;
  Color color = Color::kAuto;
  ShapeWords shape;
  std::string metric = "peak";
  std::optional<double> max_growth;
};

// A folder may hold anything; a trace that was named must be readable.
Result<std::vector<analyze::Run>> read_all(const std::vector<std::string>& paths,
                                           std::vector<std::string>* notes) {
  std::vector<analyze::Run> runs;
  for (const std::string& path : paths) {
    std::error_code unknown;
    bool folder = std::filesystem::is_directory(path, unknown);
    Result<std::vector<std::string>> traces = analyze::traces_at(path);
    if (!traces) return std::unexpected(traces.error());
    for (const std::string& trace : *traces) {
      Result<analyze::Run> run = analyze::run_of(trace);
      if (run && run->merged > 0)
        notes->push_back(
            fmt::format("{} is {} recordings merged, and one row here.", trace, run->merged));
      if (run)
        runs.push_back(std::move(*run));
      else if (folder)
        notes->push_back(fmt::format("Left out: {}.", run.error().sentence));
      else
        return std::unexpected(run.error());
    }
  }
  if (runs.empty()) {
    std::string why = notes->empty() ? "" : " that can be read";
    return fail(fmt::format("there is no trace (*.mscope){} in {}", why, fmt::join(paths, ", ")));
  }
  analyze::sort_by_time(&runs);
  return runs;
}

}  // namespace

int main_history(const Words& words) {
  std::signal(SIGPIPE, SIG_IGN);  // A closed pipe is told by write(), with a sentence.
  HistoryOptions options;
  CLI::App app("The same figures of many recordings, one row each, oldest first.",
               "malloscope history");
  app.add_option("path", options.paths, "Folders of traces (*.mscope), or traces")
      ->required()
      ->type_name("DIR|TRACE...");
  app.add_option("--max-growth", options.max_growth,
                 "Exit code 1 if the last run of a program has more than so many percent\n"
                 "more than the median of its runs before")
      ->check(CLI::Range(0.0, 1e9).description(""))
      ->type_name("PERCENT");
  std::string metrics = fmt::format("{}", fmt::join(analyze::history_metrics(), ", "));
  app.add_option("--metric", options.metric, "Of what: " + metrics + " [peak]")
      ->check(one_of(analyze::history_metrics()))
      ->type_name("METRIC");
  add_json(app, &options.json);
  add_shape(app, &options.shape, "Rows to show [all]");
  add_color(app, &options.color);
  if (auto code = parse(app, words, "malloscope history nightly/ --max-growth 10 --metric peak"))
    return *code;
  if (options.max_growth && std::isnan(*options.max_growth))
    return complain(kUsage, "--max-growth is no number");

  std::vector<std::string> notes;
  Result<std::vector<analyze::Run>> runs = read_all(options.paths, &notes);
  if (!runs) return complain(kUnreadable, runs.error().sentence);
  analyze::Answer answer = history_answer(*runs);
  std::vector<std::string> findings;
  if (options.max_growth)
    for (const analyze::Growth& growth : analyze::growth(*runs, options.metric)) {
      if (growth.runs_before == 0) {
        notes.push_back(fmt::format("{}: a single run, nothing to compare with.", growth.program));
        continue;
      }
      std::string text = growth_text(growth, options.metric);
      notes.push_back(text + ".");
      if (growth.percent() > *options.max_growth)
        findings.push_back(fmt::format("{}; --max-growth is {:g} %", text, *options.max_growth));
    }
  answer.notes.insert(answer.notes.end(), notes.begin(), notes.end());
  int exit_code =
      print_answer(std::move(answer), shape_of(options.shape), options.json, options.color);
  if (exit_code != kOk) return exit_code;
  for (const std::string& finding : findings) exit_code = complain(kFinding, finding);
  return exit_code;
}

}  // namespace malloscope::cli
