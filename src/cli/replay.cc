// SPDX-License-Identifier: Apache-2.0
// `malloscope replay`: the calls of a trace on one allocator, or on several beside each other.

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>

#include "analyze/time_point.h"
#include "base/whole_file.h"
#include "cli/arguments.h"
#include "cli/replay_answer.h"
#include "cli/replay_file.h"
#include "cli/replay_input.h"
#include "output/words.h"
#include "replay/compare.h"

namespace malloscope::cli {
namespace {

struct ReplayOptions {
  ReplayInput input;
  std::string allocators = "glibc";
  std::string tunables;
  size_t repeat = 1;
  std::string touch = "first", pace = "asap", trim_every, patience = "60s", output;
  bool huge_pages = false, verify = false, json = false, force = false;
  uint64_t interval_ms = 5;
  Color color = Color::kAuto;
  ShapeWords shape;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  for (size_t from = 0; from <= text.size();) {
    size_t to = std::min(text.find(',', from), text.size());
    if (to > from) words.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return words;
}

// "asap": 0, "recorded": 1, "x10": 10.
Result<double> speed_of(const std::string& pace) {
  if (pace == "asap") return 0;
  if (pace == "recorded") return 1;
  double speed = 0;
  const char* end = pace.data() + pace.size();
  if (pace.starts_with('x')) {
    auto [rest, error] = std::from_chars(pace.data() + 1, end, speed);
    if (error == std::errc() && rest == end && speed >= 1e-3 && speed <= 1e6) return speed;
  }
  return fail_usage(fmt::format("--pace '{}' is not asap, recorded or xN, such as x10", pace));
}

// "10s"; nothing else that a moment of a recording may be.
Result<uint64_t> duration_of(const std::string& text, std::string_view option) {
  Result<analyze::TimePoint> time = analyze::TimePoint::parse(text, option);
  if (time && time->kind == analyze::TimePoint::Kind::kNs && time->ns > 0) return time->ns;
  return fail_usage(fmt::format("{} '{}' is not a time such as 10s or 500ms", option, text));
}

Result<std::vector<replay::Contender>> contenders_of(const ReplayOptions& options,
                                                     std::vector<std::string>* notes) {
  std::vector<replay::Tunable> tunables;
  if (!options.tunables.empty()) {
    Result<std::vector<replay::Tunable>> parsed = replay::tunables_of(options.tunables);
    if (!parsed) return std::unexpected(parsed.error());
    tunables = std::move(*parsed);
  }
  std::vector<replay::Contender> contenders;
  for (const std::string& name : split(options.allocators))
    for (replay::Setup& setup : replay::combinations(replay::find_allocator(name), tunables)) {
      if (options.huge_pages && setup.error.empty() && !replay::ask_for_huge_pages(&setup))
        notes->push_back(fmt::format("{} has no setting for huge pages; it runs as it is.", name));
      contenders.push_back({std::move(setup), {}});
    }
  for (size_t i = 0; i < contenders.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const replay::Setup &a = contenders[j].setup, &b = contenders[i].setup;
      if (a.error.empty() && b.error.empty() && a.library == b.library && a.tunables == b.tunables)
        return fail_usage(fmt::format("{} and {} are the same; --repeat runs each several times",
                                      contenders[j].name(), contenders[i].name()));
    }
  for (const replay::Tunable& tunable : tunables)
    if (std::ranges::none_of(contenders, [&](const replay::Contender& contender) {
          return !contender.setup.error.empty() ||
                 contender.setup.tunables.find(tunable.name + "=") != std::string::npos;
        }))
      return fail_usage(
          fmt::format("--tunables: {} is no setting of {}", tunable.name, options.allocators));
  return contenders;
}

}  // namespace

int main_replay(const Words& words) {
  // A closed pipe and a file that must not grow are told by write(), with a sentence.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  ReplayOptions options;
  CLI::App app(
      "The same calls, thread by thread, on other allocators: what they would cost or save.",
      "malloscope replay");
  add_replay_input(app, &options.input);
  app.add_option("--allocators", options.allocators,
                 "glibc, jemalloc, tcmalloc, mimalloc, or the path of a library; several with\n"
                 "commas between. The first is what the others are compared with, or that which\n"
                 "the program already uses, if it is not glibc [glibc]")
      ->check(list_of_words())
      ->type_name("LIST");
  app.add_option("--repeat", options.repeat, "Runs of each, taken in turns [1]")
      ->check(CLI::Range(1, 1000).description(""))
      ->type_name("N");
  app.add_option("--tunables", options.tunables,
                 "Settings to try, all combinations: 'glibc.malloc.arena_max=1,8'; also\n"
                 "MALLOC_CONF=a:1|a:2, TCMALLOC_..., MIMALLOC_... and other variables")
      ->type_name("SETTINGS");
  app.add_option("--touch", options.touch,
                 "What is written to new blocks: none, first (a byte of each page), all;\n"
                 "recorded is for traces that tell it, of which there are none yet [first]")
      ->check(one_of({"none", "first", "all", "recorded"}))
      ->type_name("HOW");
  app.add_option("--pace", options.pace, "asap, recorded, or xN: N times as fast [asap]")
      ->type_name("PACE");
  app.add_option("--trim-every", options.trim_every,
                 "Call malloc_trim each time so much recorded time has passed, such as 10s")
      ->type_name("TIME");
  app.add_option("--patience", options.patience,
                 "End an allocator that does nothing for so long (longer than the\n"
                 "recorded run, with --pace) [60s]")
      ->type_name("TIME");
  app.add_flag("--huge-pages", options.huge_pages, "Let the allocators ask for huge pages");
  app.add_flag("--verify", options.verify,
               "Fill and check every block: does the allocator work? No times then");
  app.add_option("--interval", options.interval_ms, "Milliseconds between looks at RSS [5]")
      ->check(CLI::Range(1, 60'000).description(""))
      ->type_name("MS");
  app.add_option("-o,--output", options.output,
                 "Where the results are kept [TRACE.replay.json, in place of the last ones]")
      ->type_name("FILE");
  app.add_flag("--force", options.force, "Overwrite that file, whatever it is");
  add_shape(app, &options.shape, "Rows of the allocators' table [all]");
  add_json(app, &options.json);
  add_color(app, &options.color);
  if (auto code =
          parse(app, words,
                "malloscope replay app.mscope --allocators glibc,jemalloc,tcmalloc,mimalloc "
                "--repeat 5\n"
                "  malloscope replay app.mscope --tunables 'glibc.malloc.arena_max=1,2,8'"))
    return *code;

  replay::TrialOptions trial_options;
  if (options.touch == "recorded")
    return complain(kUsage,
                    fmt::format("--touch recorded: {} does not tell what the program read or wrote "
                                "in its blocks, as no recording does yet; use none, first or all",
                                options.input.file));
  trial_options.touch = options.touch == "none"  ? replay::Touch::kNone
                        : options.touch == "all" ? replay::Touch::kAll
                                                 : replay::Touch::kFirst;
  trial_options.verify = options.verify;
  trial_options.interval_ns = options.interval_ms * 1'000'000;
  Result<double> speed = speed_of(options.pace);
  if (!speed) return complain(kUsage, speed.error().sentence);
  trial_options.speed = *speed;
  Result<uint64_t> patience = duration_of(options.patience, "--patience");
  if (!patience) return complain(kUsage, patience.error().sentence);
  trial_options.patience_ns = *patience;
  if (!options.trim_every.empty()) {
    Result<uint64_t> every = duration_of(options.trim_every, "--trim-every");
    if (!every) return complain(kUsage, every.error().sentence);
    trial_options.trim_every_ns = *every;
  }
  trial_options.player = own_file("malloscope-player");
  if (trial_options.player.empty())
    return complain(kUsage,
                    "malloscope-player is missing beside the recorder; install Malloscope "
                    "again");
  bool usual = options.output.empty();
  std::string path = usual ? usual_results(options.input.file) : options.output;
  if (std::string why = obstacle_to_results(path, options.input.file, usual, options.force);
      !why.empty())
    return complain(kUsage, why);
  // Before the work, not after.
  if (!usual && !WholeFile(path).ok())
    return complain(kUnreadable, fmt::format("{} cannot be written: {}", path, strerror(errno)));
  std::vector<std::string> notes;
  Result<std::vector<replay::Contender>> contenders = contenders_of(options, &notes);
  if (!contenders) return complain(kUsage, contenders.error().sentence);
  // Before the work, which may take a while; whatever else there is still runs.
  for (const replay::Contender& contender : *contenders)
    if (!contender.setup.error.empty())
      complain(kFinding, fmt::format("{}: {}", contender.name(), contender.setup.error));

  int exit_code = kOk;
  ReplaySource source;
  std::optional<replay::WorkloadReader> workload =
      workload_of(options.input, "", &source, &notes, &exit_code);
  if (!workload) return exit_code;

  // A program may have done nothing most of the time.
  if (*speed > 0)
    trial_options.patience_ns += static_cast<uint64_t>(static_cast<double>(workload->tail().ticks) *
                                                       workload->tail().ns_per_tick / *speed);

  // In turns, so that whatever else the machine does meets all of them.
  std::function<void(double)> progress = progress_of("replaying");
  size_t trials = options.repeat * contenders->size(), done = 0;
  for (size_t round = 0; round < options.repeat; ++round)
    for (replay::Contender& contender : *contenders) {
      if (progress) progress(static_cast<double>(done++) / static_cast<double>(trials));
      bool failed_before = contender.first_error() || !contender.setup.error.empty();
      contender.trials.push_back(run_trial(*workload, contender.setup, trial_options));
      const replay::Trial& trial = contender.trials.back();
      if (trial.error.empty() || failed_before) continue;
      if (progress) progress(1);  // Out of the way.
      complain(kFinding, fmt::format("{}: {}", contender.name(), trial.error));
    }
  if (progress) progress(1);

  ReplayReport report{options.input,
                      source,
                      &*workload,
                      &*contenders,
                      options.touch,
                      options.pace,
                      options.interval_ms,
                      options.verify,
                      trial_options.trim_every_ns != 0,
                      notes};
  analyze::Answer kept = replay_json(report);
  // Earlier results are not lost by a name that was misspelt.
  bool any = std::ranges::any_of(*contenders, [](const auto& c) { return c.typical(); });
  Result<void> stored = any ? store_results(path, kept) : fail("nothing was replayed");
  if (any && !stored && !usual) return complain(kUnreadable, stored.error().sentence);
  if (options.json) {
    exit_code = print_answer(std::move(kept), {}, true, options.color);
  } else {
    analyze::Answer answer = replay_text(report);
    if (stored)
      answer.notes.push_back(fmt::format("All figures, and memory over time: {}", path));
    else
      answer.notes.push_back(fmt::format("Not kept: {}.", stored.error().sentence));
    // The tables of calls have other columns.
    if (!options.shape.columns.empty() || !options.shape.sort.empty()) answer.tables.resize(1);
    exit_code = print_answer(std::move(answer), shape_of(options.shape), false, options.color);
  }
  if (exit_code != kOk) return exit_code;
  bool failed = std::ranges::any_of(*contenders, [](const auto& c) { return c.first_error(); });
  return failed ? kFinding : kOk;
}

}  // namespace malloscope::cli
