// SPDX-License-Identifier: Apache-2.0
// The command line. Each verb has its own parser, so that `malloscope ./app -o x`
// never takes the program's options for ours: what follows the program's name
// is not parsed at all.

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <map>
#include <stdexcept>

#include "cli/commands.h"

namespace malloscope::cli {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kHelp =
    R"(Malloscope records every allocation of a program and says where its memory goes.

  malloscope ./app args...      record a program; one page at its end says what it found
  malloscope report TRACE       the same page again, for any process of the recording

Verbs:
  run       record a program and its children (the default)
  report    the one-page answer, or all of it as JSON
  info      what is in a trace, whether it is complete, what it lost
  export    flame graph input (folded stacks)

`malloscope VERB --help` tells the options of each. `malloscope --version` the version.
)";

// Parses `words`; an exit code if there is nothing more to do.
std::optional<int> parse(CLI::App& app, Words words, std::string_view example) {
  app.footer(fmt::format("Example:\n  {}", example));
  std::reverse(words.begin(), words.end());
  try {
    app.parse(words);
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return std::fflush(stdout) == 0 ? kOk : kUnreadable;
  } catch (const CLI::ParseError& error) {
    return complain(kUsage, fmt::format("{} (see {} --help)", error.what(), app.get_name()));
  }
}

// One of `words`; the help says so in its own way.
CLI::Validator one_of(Words words) { return CLI::IsMember(std::move(words)).description(""); }

CLI::Option* add_color(CLI::App& app, Color* color) {
  static const std::map<std::string, Color> kColors = {
      {"auto", Color::kAuto}, {"always", Color::kAlways}, {"never", Color::kNever}};
  return app
      .add_option_function<std::string>(
          "--color", [color](const std::string& word) { *color = kColors.at(word); },
          "auto (on a terminal, unless NO_COLOR is set), always or never")
      ->check(one_of({"auto", "always", "never"}))
      ->type_name("WHEN");
}

// Our own options end where the program's name is, or at "--".
size_t options_end(CLI::App& app, const Words& words) {
  size_t i = 0;
  while (i < words.size() && words[i].size() > 1 && words[i][0] == '-' && words[i] != "--") {
    const CLI::Option* option = app.get_option_no_throw(words[i]);
    bool takes_next = option && option->get_items_expected_max() > 0;
    i += takes_next ? 2 : 1;
  }
  return std::min(i, words.size());
}

int main_run(const Words& words) {
  RunOptions options;
  CLI::App app(
      "Records a program and its children; at its end one page says what was found.\n"
      "The program runs as if alone and its exit code is passed on.",
      "malloscope run");
  app.add_option("-o,--output", options.output,
                 "Trace to write [malloscope.<program>.<pid>.mscope]")
      ->type_name("FILE");
  app.add_flag("-f,--force", options.force, "Overwrite the trace if it exists");
  app.add_flag("-q,--quiet", options.quiet, "No page at the end");
  app.add_flag_callback(
      "--no-follow", [&options] { options.follow = false; },
      "Do not record the children of the program");
  app.add_option("--only", options.only, "Record only programs whose name matches")
      ->type_name("REGEX");
  std::string on_full = "wait";
  app.add_option("--on-full", on_full,
                 "If the collector falls behind: wait for it, or drop and count [wait]")
      ->check(one_of({"wait", "drop"}))
      ->type_name("wait|drop");
  add_color(app, &options.color);
  Words only_for_help;
  app.add_option("program", only_for_help, "The program and its arguments; -- may stand before it");

  size_t end = options_end(app, words);
  Words own(words.begin(), words.begin() + static_cast<ptrdiff_t>(end));
  if (auto code = parse(app, own, "malloscope run -o app.mscope ./app --its-own-option"))
    return *code;
  if (end < words.size() && words[end] == "--") ++end;
  options.command.assign(words.begin() + static_cast<ptrdiff_t>(end), words.end());
  options.drop_when_full = on_full == "drop";
  if (options.output == "-")
    return complain(kUsage, "a trace cannot go to standard output; name a file with -o");
  if (options.command.empty() || options.command[0].empty())
    return complain(kUsage, "no program to run (see malloscope run --help)");
  return run_command(options);
}

int main_report(const Words& words) {
  ReportOptions options;
  CLI::App app("Where the memory went: one page, or everything as JSON.", "malloscope report");
  app.add_option("trace", options.trace, "The recording")->required()->type_name("TRACE");
  app.add_flag("--json", options.json, "One JSON object with all totals and sites");
  app.add_option("--process", options.pid, "Only this process [all]")->type_name("PID");
  app.add_option("--top", options.top, "Sites to list [5 on the page, all in JSON]")
      ->check(CLI::Range(1, 1'000'000'000).description(""))
      ->type_name("N");
  add_color(app, &options.color);
  if (auto code = parse(app, words, "malloscope report app.mscope --process 4711")) return *code;
  return report_command(options);
}

int main_info(const Words& words) {
  InfoOptions options;
  CLI::App app("What is in a trace: processes, threads, modules, losses, settings.",
               "malloscope info");
  app.add_option("trace", options.trace, "The recording")->required()->type_name("TRACE");
  app.add_flag("--json", options.json, "What report --json prints, and threads and modules");
  add_color(app, &options.color);
  if (auto code = parse(app, words, "malloscope info app.mscope")) return *code;
  return info_command(options);
}

int main_export(const Words& words) {
  ExportOptions options;
  CLI::App app("Writes what other tools read. folded: for flamegraph.pl and speedscope.",
               "malloscope export");
  app.add_option("trace", options.trace, "The recording")->required()->type_name("TRACE");
  app.add_option("--format", options.format, "folded")
      ->required()
      ->check(one_of({"folded"}))
      ->type_name("FORMAT");
  app.add_option("--metric", options.metric,
                 "allocations, allocated, live, peak or temporary [peak]")
      ->check(one_of({"allocations", "allocated", "live", "peak", "temporary"}))
      ->type_name("METRIC");
  app.add_option("-o,--output", options.output, "File to write; - is standard output")
      ->required()
      ->type_name("FILE");
  app.add_flag("-f,--force", options.force, "Overwrite the file if it exists");
  app.add_option("--process", options.pid, "Only this process [all]")->type_name("PID");
  if (auto code = parse(
          app, words, "malloscope export app.mscope --format folded --metric peak -o peak.folded"))
    return *code;
  return export_command(options);
}

bool is_executable(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

bool in_path(const std::string& name) {
  const char* variable = std::getenv("PATH");
  std::string_view path = variable ? variable : "/usr/local/bin:/bin:/usr/bin";
  for (;;) {
    size_t colon = path.find(':');
    std::string folder(path.substr(0, colon));
    if (is_executable((folder.empty() ? "." : folder) + "/" + name)) return true;
    if (colon == std::string_view::npos) return false;
    path.remove_prefix(colon + 1);
  }
}

int dispatch(const Words& words) {
  if (words.empty()) {
    std::fwrite(kHelp.data(), 1, kHelp.size(), stderr);
    return kUsage;
  }
  const std::string& first = words[0];
  Words rest(words.begin() + 1, words.end());
  if (first == "--help" || first == "-h" || first == "help") {
    fmt::print("{}", kHelp);
    return std::fflush(stdout) == 0 ? kOk : kUnreadable;
  }
  if (first == "--version") {
    fmt::print("malloscope {}\n", kVersion);
    return std::fflush(stdout) == 0 ? kOk : kUnreadable;
  }
  if (first == "run") return main_run(rest);
  if (first == "collect" && rest.size() == 1) return collect_command(rest[0]);
  if (first == "report") return main_report(rest);
  if (first == "info") return main_info(rest);
  if (first == "export") return main_export(rest);

  // A name with a slash can only be meant as a program; if it is not there, `run` says so.
  bool program = first.starts_with('-') || first.find('/') != std::string::npos || in_path(first);
  if (program &&
      !(first.ends_with(".mscope") && access(first.c_str(), R_OK) == 0 && !is_executable(first)))
    return main_run(words);
  if (first.ends_with(".mscope"))
    return complain(kUsage, fmt::format("to look at a trace, type: malloscope report {}", first));
  return complain(kUsage, fmt::format("'{}' is neither a verb (run, report, info, export) nor a "
                                      "program in PATH; see malloscope --help",
                                      first));
}

}  // namespace
}  // namespace malloscope::cli

int main(int argc, char** argv) {
  try {
    return malloscope::cli::dispatch({argv + 1, argv + argc});
  } catch (const std::bad_alloc&) {
    return malloscope::cli::complain(malloscope::cli::kUnreadable, "out of memory");
  } catch (const std::exception& error) {
    return malloscope::cli::complain(malloscope::cli::kUnreadable, error.what());
  }
}
