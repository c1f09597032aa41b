// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <sstream>

#include "analyze/profile_views.h"
#include "analyze/view.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "output/json.h"
#include "output/page.h"
#include "output/sink.h"

namespace malloscope::cli {

// What to type to run this very tool: its name if the shell would find it, else its path.
static std::string own_name() {
  namespace fs = std::filesystem;
  std::error_code failed;
  fs::path self = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return "malloscope";
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    fs::path there = fs::path(folder) / "malloscope";
    if (!fs::exists(there, failed)) continue;
    if (fs::equivalent(there, self, failed)) return "malloscope";
    break;  // Another one comes first.
  }
  fs::path from_here = self.lexically_relative(fs::current_path(failed));
  return from_here.empty() || *from_here.begin() == ".." ? self.string() : from_here.string();
}

int print_page(const std::string& trace, const analyze::Query& query, std::FILE* stream,
               Color color, size_t rows) {
  int exit_code = kOk;
  std::unique_ptr<analyze::Reading> reading =
      read_trace(trace, query, &exit_code, {}, /*says_losses=*/true);
  if (!reading) return exit_code;
  std::fflush(stream);
  output::FileSink sink(fileno(stream), stream == stderr ? "stderr" : "stdout");
  output::write_page(reading.get(),
                     {wants_color(color, stream), terminal_width(stream), rows, own_name()}, &sink);
  if (Result<void> done = sink.finish(); !done) return complain(kUnreadable, done.error().sentence);
  return kOk;
}

namespace {

using analyze::By;
using analyze::Metric;

struct ReportOptions {
  std::string trace;
  bool json = false;
  Color color = Color::kAuto;
  QueryWords query;
  ShapeWords shape;
  std::string metric, by, view;
  bool tree = false, stacks = false, callers = false;
};

const std::map<std::string, Metric> kReportMetrics = analyze::metrics();
const std::map<std::string, By> kGroups = {{"function", By::kFunction}, {"site", By::kSite},
                                           {"file", By::kFile},         {"module", By::kModule},
                                           {"thread", By::kThread},     {"phase", By::kPhase},
                                           {"size", By::kSize},         {"type", By::kType}};

// The page, unless something was asked that only a profile can answer.
int page_or_everything(const ReportOptions& options, const analyze::Query& query) {
  if (!options.json)
    return print_page(options.trace, query, stdout, options.color,
                      options.shape.top ? options.shape.top : 5);
  int exit_code = kOk;
  std::unique_ptr<analyze::Reading> reading = read_trace(options.trace, query, &exit_code);
  if (!reading) return exit_code;
  output::FileSink sink(fileno(stdout), "stdout");
  output::write_report_json(reading.get(), options.shape.top, &sink);
  if (Result<void> done = sink.finish(); !done) return complain(kUnreadable, done.error().sentence);
  return kOk;
}

int profile(const ReportOptions& options, analyze::Query query) {
  analyze::ProfileOptions wanted;
  wanted.metric = kReportMetrics.at(options.metric.empty() ? "peak" : options.metric);
  wanted.by = kGroups.at(options.by.empty() ? "function" : options.by);
  analyze::Shape shape = shape_of(options.shape);
  constexpr size_t kRows = 20, kBlocks = 10, kNodes = 40;
  if (shape.top == 0 && !options.json)
    shape.top = options.callers ? kBlocks : options.tree ? kNodes : kRows;
  wanted.top = options.json ? options.shape.top : shape.top;
  wanted.by_cumulative = shape.sort == "cumulative" || shape.sort.ends_with(" in all");
  using Siblings = analyze::ProfileOptions::Siblings;
  if (shape.sort == "self" || shape.sort == "itself") wanted.siblings = Siblings::kSelf;
  if (shape.sort == "function" || shape.sort == "frame") wanted.siblings = Siblings::kName;
  if (options.tree && (shape.sort == "depth" || shape.sort == "stands_for"))
    return complain(kUsage, fmt::format("--sort: the tree is not sorted by {}; below each function "
                                        "it can be by cumulative, self or function",
                                        shape.sort));
  query.tally.by_thread |= wanted.by == By::kThread;
  query.tally.by_phase |= wanted.by == By::kPhase;
  query.tally.by_size |= wanted.by == By::kSize;
  ask_for(wanted.metric, &query);
  if (Result<void> good = suits(wanted.metric, wanted.by, query); !good)
    return complain(kUsage, good.error().sentence);

  int exit_code = kOk;
  std::unique_ptr<analyze::Reading> reading = read_trace(options.trace, query, &exit_code);
  if (!reading) return exit_code;
  if (Result<void> there = recorded(wanted.metric, *reading); !there)
    return complain(kUsage, there.error().sentence);
  analyze::Answer answer = options.tree      ? as_tree(reading.get(), query, wanted)
                           : options.stacks  ? by_stack(reading.get(), query, wanted)
                           : options.callers ? callers_and_callees(reading.get(), query, wanted)
                           : wanted.by == By::kFunction ? by_function(reading.get(), query, wanted)
                                                        : by_group(reading.get(), query, wanted);
  uint64_t unblamed = reading->accounts().totals().unblamed_call_cycles;
  if (query.tally.call_times && unblamed > 0)
    answer.notes.push_back(fmt::format(
        "Another {} went to calls for no block of these processes: frees of null pointers, of what "
        "a parent allocated, or of what nobody did.",
        analyze::duration_text(reading->tables().header.cycles_ns(unblamed))));
  if (query.tally.only_made_in_window)
    answer.notes.push_back(
        "What was live already at --from is not counted; --view peak --at shows all of a moment.");
  return print_answer(reading.get(), std::move(answer), shape, options.json, options.color,
                      query.full_names);
}

int view(const ReportOptions& options, analyze::Query query) {
  const analyze::ViewKind& kind = *analyze::find_view(options.view);
  bool at = !options.query.at.empty();
  if (Result<void> good = suits(kind, query, at); !good)
    return complain(kUsage, good.error().sentence);
  analyze::Shape shape = shape_of(options.shape);
  constexpr size_t kRows = 10;  // Most views have more than one table.
  if (shape.top == 0 && !options.json) shape.top = kRows;
  std::unique_ptr<analyze::View> view = kind.make(query, {at, shape.top});
  view->prepare(&query);
  Result<trace::Overview> overview = trace::overview(options.trace);
  if (!overview) return complain(kUnreadable, overview.error().sentence);

  int exit_code = kOk;
  std::unique_ptr<analyze::Reading> reading =
      read_trace(options.trace, query, &exit_code,
                 [&](analyze::Heap* heap) { view->attach(heap, *overview); });
  if (!reading) return exit_code;
  return print_answer(reading.get(), view->answer(reading.get(), query), shape, options.json,
                      options.color, query.full_names);
}

std::string view_help() {
  std::string text = "Instead of a profile, one of:";
  for (const analyze::ViewKind& kind : analyze::views())
    text += fmt::format("\n{:<10} {}", kind.name, kind.help);
  return text;
}

Words view_names() {
  Words names;
  for (const analyze::ViewKind& kind : analyze::views()) names.emplace_back(kind.name);
  return names;
}

}  // namespace

int main_report(const Words& words) {
  std::signal(SIGPIPE, SIG_IGN);  // A closed pipe is told by write(), with a sentence.
  ReportOptions options;
  CLI::App app(
      "Where the memory went. By itself one page; with --metric, --by, --tree, --stacks or\n"
      "--callers a profile of whatever part of the recording is asked for.",
      "malloscope report");
  add_trace(app, &options.trace);
  add_json(app, &options.json, "One JSON object with all totals and sites, or with the profile");
  constexpr const char* kProfile = "Profiles";
  CLI::Option* metric = app.add_option("--metric", options.metric, metrics_help(kReportMetrics))
                            ->check(one_of(keys_of(kReportMetrics)))
                            ->type_name("METRIC")
                            ->group(kProfile);
  CLI::Option* by = app.add_option("--by", options.by, listed(keys_of(kGroups)) + " [function]")
                        ->check(one_of(keys_of(kGroups)))
                        ->type_name("WHAT")
                        ->group(kProfile);
  auto* tree = app.add_flag("--tree", options.tree,
                            "The tree of callers from main down, the heaviest --top nodes of it")
                   ->group(kProfile)
                   ->excludes(by);
  auto* stacks = app.add_flag("--stacks", options.stacks, "The heaviest stacks, whole")
                     ->group(kProfile)
                     ->excludes(by)
                     ->excludes(tree);
  auto* callers = app.add_flag("--callers", options.callers,
                               "Each function between its callers and its callees;\n"
                               "those that match --focus first")
                      ->group(kProfile)
                      ->excludes(by)
                      ->excludes(tree)
                      ->excludes(stacks);
  app.add_option("--view", options.view, view_help())
      ->check(one_of(view_names()))
      ->type_name("VIEW")
      ->group("Views")
      ->excludes(metric)
      ->excludes(by)
      ->excludes(tree)
      ->excludes(stacks)
      ->excludes(callers);
  app.add_option("--at", options.query.at, "The instant to look at: 2.5s, 40%, peak, end")
      ->type_name("TIME")
      ->group("Views");
  add_shape(app, &options.shape, "Rows of whatever is listed [all in JSON]");
  add_query(app, &options.query);
  add_color(app, &options.color);
  if (auto code =
          parse(app, words,
                "malloscope report app.mscope --metric live --by site --from 50%\n"
                "  malloscope report app.mscope --view peak --at 40%\n"
                "  malloscope report app.mscope --metric allocated --callers --focus parse"))
    return *code;
  Result<analyze::Query> query = query_of(options.query);
  if (!query) return complain(kUsage, query.error().sentence);
  if (!options.query.at.empty() && options.view.empty())
    return complain(kUsage, "--at is for --view; to profile up to a moment use --to");
  if (!options.view.empty()) return view(options, *query);
  bool profiled = !options.metric.empty() || !options.by.empty() || options.tree ||
                  options.stacks || options.callers || !query->frames.empty() ||
                  query->rules.reshape() || query->tells_strands() ||
                  !options.shape.columns.empty() || !options.shape.sort.empty() ||
                  !options.query.min_size.empty() || !options.query.max_size.empty();
  return profiled ? profile(options, *query) : page_or_everything(options, *query);
}

}  // namespace malloscope::cli
