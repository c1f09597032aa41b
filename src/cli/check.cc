// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "analyze/budget.h"
#include "analyze/leaks.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/output_file.h"
#include "output/junit.h"
#include "output/sarif.h"
#include "output/sink.h"
#include "output/words.h"

namespace malloscope::cli {
namespace {

struct CheckOptions {
  std::string trace;
  bool json = false;
  Color color = Color::kAuto;
  analyze::Selection selection;
  SuppressionWords suppressions;
  // Of each limit the values typed for it, in the order of limit_names().
  std::vector<std::pair<std::string, std::vector<std::string>>> limits;
  std::vector<std::string> budgets;
  std::string junit, sarif;
  symbols::SymbolOptions symbols;
  bool no_cache = false;
};

Result<std::vector<analyze::Limit>> limits_of(const CheckOptions& options) {
  std::vector<analyze::Limit> limits;
  for (const auto& [name, values] : options.limits)
    for (const std::string& value : values) {
      Result<analyze::Limit> limit = analyze::limit_of(name, value, "--" + name);
      if (!limit) return std::unexpected(limit.error());
      limits.push_back(std::move(*limit));
    }
  for (const std::string& path : options.budgets) {
    Result<std::vector<analyze::Limit>> more = analyze::limits_of_file(path);
    if (!more) return std::unexpected(more.error());
    limits.insert(limits.end(), more->begin(), more->end());
  }
  if (limits.empty())
    return fail("nothing to check: give a limit, such as --max-peak 512M, or --budget FILE");
  return limits;
}

// A sentence if a file would be written over one that is read, or over another; else nothing.
std::string clash(const CheckOptions& options) {
  std::vector<std::string> others = {options.trace};
  others.insert(others.end(), options.budgets.begin(), options.budgets.end());
  others.insert(others.end(), options.suppressions.files.begin(), options.suppressions.files.end());
  for (const auto& [option, file] :
       {std::pair("--junit", options.junit), {"--sarif", options.sarif}}) {
    if (file.empty()) continue;
    for (const std::string& other : others)
      if (same_file(file, other))
        return fmt::format("{} {} would overwrite {}; name another file", option, file, other);
    others.push_back(file);
  }
  return {};
}

template <typename Write>
Result<void> write_file(const std::string& path, Write&& write) {
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return fail(fmt::format("{} cannot be written: {}", path, strerror(errno)));
  output::FileSink sink(fd, path);
  write(&sink);
  Result<void> done = sink.finish();
  if (close(fd) != 0 && done)
    return fail(fmt::format("{} cannot be written: {}", path, strerror(errno)));
  return done;
}

std::string program_of(const analyze::Reading& reading) {
  std::vector<const trace::Image*> images = reading.selected();
  return images.empty() ? "(no process)" : images[0]->program();
}

}  // namespace

int main_check(const Words& words) {
  std::signal(SIGPIPE, SIG_IGN);  // A closed pipe is told by write(), with a sentence.
  CheckOptions options;
  CLI::App app(
      "Whether a recording keeps its limits. Exit code 1 if it does not, 3 if it does as far\n"
      "as can be told from an incomplete recording, or if a name to check is not in it.",
      "malloscope check");
  add_trace(app, &options.trace);
  for (std::string_view name : analyze::limit_names()) options.limits.emplace_back(name, Words());
  auto limit = [&](size_t i, const char* type, const char* help) {
    auto& [name, values] = options.limits[i];
    app.add_option("--" + name, values, help)
        ->type_name(type)
        ->allow_extra_args(false)
        ->group("Limits");
  };
  limit(0, "SIZE", "Bytes at the highest moment, such as 512M");
  limit(1, "SIZE", "Bytes still live at the end, but for those suppressed");
  limit(2, "N", "Number of allocations, such as 1e6");
  limit(3, "SIZE", "Bytes allocated in all");
  limit(4, "N", "Number of temporary allocations");
  limit(5, "REGEX", "No block allocated below such a function is left at the end");
  app.add_option("--budget", options.budgets,
                 "Limits from a file, one a line: max-peak 512M; # begins a comment")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->group("Limits");
  add_suppressions(app, &options.suppressions);
  app.add_option("--junit", options.junit, "Also as JUnit XML, a test case for each limit")
      ->type_name("FILE");
  app.add_option("--sarif", options.sarif, "Also as SARIF, a result for each site responsible")
      ->type_name("FILE");
  add_json(app, &options.json);
  add_process(app, &options.selection);
  add_symbols(app, &options.symbols, &options.no_cache);
  add_color(app, &options.color);
  if (auto code = parse(app, words,
                        "malloscope check app.mscope --max-peak 512M --no-leaks-within 'Server::'\n"
                        "  malloscope check app.mscope --budget ci.budget --junit check.xml"))
    return *code;

  if (std::string wrong = clash(options); !wrong.empty()) return complain(kUsage, wrong);
  Result<std::vector<analyze::Limit>> limits = limits_of(options);
  if (!limits) return complain(kUsage, limits.error().sentence);
  Result<analyze::Suppressions> suppressions = suppressions_of(options.suppressions);
  if (!suppressions) return complain(kUsage, suppressions.error().sentence);
  analyze::Query query;
  query.selection = options.selection;
  query.symbols = options.symbols;
  query.symbols.cache = options.no_cache ? "" : symbols::NameCache::default_folder();

  int exit_code = kOk;
  std::unique_ptr<analyze::Reading> reading = read_trace(options.trace, query, &exit_code);
  if (!reading) return exit_code;
  std::vector<std::string> notes;
  add_defaults(options.suppressions, *reading, &*suppressions, &notes);
  std::vector<analyze::Verdict> verdicts = judge(reading.get(), query, *limits, *suppressions);

  if (!options.junit.empty())
    if (auto done = write_file(
            options.junit,
            [&](output::Sink* sink) { write_junit(verdicts, program_of(*reading), sink); });
        !done)
      return complain(kUnreadable, done.error().sentence);
  if (!options.sarif.empty())
    if (auto done = write_file(options.sarif,
                               [&](output::Sink* sink) { output::write_sarif(verdicts, sink); });
        !done)
      return complain(kUnreadable, done.error().sentence);

  analyze::Answer answer = budget_answer(verdicts, options.json);
  answer.notes = notes;
  exit_code = print_answer(reading.get(), std::move(answer), {}, options.json, options.color,
                           /*full_names=*/false);
  if (exit_code != kOk) return exit_code;
  // Whoever sees both on one screen has just read it.
  bool seen = !options.json && isatty(STDOUT_FILENO) && isatty(STDERR_FILENO);
  for (const analyze::Verdict& verdict : verdicts) {
    if (verdict.kept()) continue;
    if (verdict.exceeded())
      exit_code = kFinding;
    else if (exit_code == kOk)
      exit_code = kUnreadable;
    if (!seen && (verdict.exceeded() || reading->tables().complete))
      complain(exit_code,
               fmt::format("{} is {}: {}", verdict.limit.text,
                           verdict.exceeded() ? "exceeded" : "not proven", verdict.sentence));
  }
  if (exit_code != kFinding && !reading->tables().complete)
    return complain(kUnreadable,
                    fmt::format("no limit is exceeded, but {} is incomplete ({}), so that "
                                "is no proof",
                                options.trace, reading->tables().incomplete_because));
  return exit_code;
}

}  // namespace malloscope::cli
