// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>

#include "analyze/profile_views.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/output_file.h"
#include "output/exports.h"
#include "output/sink.h"

namespace malloscope::cli {

namespace {

// What a format holds of each stack.
enum class Holds { kOneMetric, kAllMetrics, kTime, kEvents };

struct Format {
  const char* name;
  Holds holds;
  const char* opened_by;
  Result<void> (*write)(const output::Export&, output::Sink*);
};
constexpr Format kFormats[] = {
    {"folded", Holds::kOneMetric, "flamegraph.pl, speedscope, inferno", output::write_folded},
    {"speedscope", Holds::kAllMetrics, "speedscope", output::write_speedscope},
    {"pprof", Holds::kAllMetrics, "go tool pprof, Perfetto, Grafana", output::write_pprof},
    {"callgrind", Holds::kAllMetrics, "KCachegrind, callgrind_annotate", output::write_callgrind},
    {"dhat", Holds::kAllMetrics, "dh_view.html, Firefox Profiler", output::write_dhat},
    {"massif", Holds::kTime, "ms_print, massif-visualizer", output::write_massif},
    {"heaptrack", Holds::kEvents, "heaptrack_gui, heaptrack_print", output::write_heaptrack},
    {"perfetto", Holds::kTime, "ui.perfetto.dev, chrome://tracing", output::write_perfetto},
    {"igprof", Holds::kOneMetric, "people who know igprof-analyse", output::write_igprof},
    {"sqlite", Holds::kAllMetrics, "sqlite3, igprof-navigator", output::write_sqlite},
    {"csv", Holds::kAllMetrics, "spreadsheets, pandas, DuckDB", output::write_csv},
    {"json", Holds::kAllMetrics, "jq and your programs: the tree", output::write_tree_json},
};

const std::map<std::string, analyze::Metric> kExportMetrics = analyze::metrics(/*counted=*/true);

struct ExportOptions {
  std::string trace;
  std::string format;
  std::string metric = "peak";
  std::string output;  // "-": standard output.
  bool force = false;
  bool whole_stacks = false;
  QueryWords query;
};

const Format& format_named(const std::string& name) {
  for (const Format& format : kFormats)
    if (format.name == name) return format;
  return kFormats[0];
}

Words format_names() {
  Words names;
  for (const Format& format : kFormats) names.emplace_back(format.name);
  return names;
}

std::string formats_help() {
  std::string text = "Writes what other tools read, with the report's sums.\n\n";
  for (const Format& format : kFormats)
    text += fmt::format("  {:<12}{:<36}{}\n", format.name, format.opened_by,
                        format.holds == Holds::kOneMetric    ? "one metric: --metric"
                        : format.holds == Holds::kAllMetrics ? "all metrics"
                        : format.holds == Holds::kTime       ? "live bytes over time"
                                                             : "every event");
  return text +
         "\nWhere a format holds all metrics, --metric is what is shown first; CPU time is in a "
         "file "
         "of its own\n"
         "(--metric cpu). Functions have their full names, but in igprof, which is for people.\n";
}

// A sentence if the query is one that the format cannot answer.
std::string objection(const Format& format, analyze::Metric metric, const analyze::Query& query) {
  if (metric == analyze::Metric::kCpu &&
      (format.holds == Holds::kTime || format.holds == Holds::kEvents ||
       std::string_view(format.name) == "dhat"))
    return fmt::format(
        "{} is about blocks, which CPU time has none of; export it as pprof or folded",
        format.name);
  if (Result<void> good = suits(metric, analyze::By::kFunction, query); !good)
    return good.error().sentence;
  if (std::string_view(format.name) != "perfetto") return "";
  if (query.frames.empty() && !query.tells_strands() && query.tally.min_size == 0 &&
      query.tally.max_size == UINT64_MAX)
    return "";
  return "perfetto shows whole processes over time: of the filters it knows only --process, --from "
         "and --to";
}

// How the trace must be read for the format.
void prepare(const Format& format, analyze::Metric metric, analyze::Query* query) {
  std::string_view name = format.name;
  if (name == "pprof") query->tally.by_thread = true;
  if (name == "pprof") query->tally.by_size = metric != analyze::Metric::kCpu;
  if (name == "dhat") query->tally.details = true;
  if (format.holds == Holds::kOneMetric || format.holds == Holds::kAllMetrics)
    ask_for(metric, query);
}

int write_export(const ExportOptions& options, analyze::Query query) {
  std::signal(SIGPIPE, SIG_IGN);  // A closed pipe is told by write(), with a sentence.
  const Format& format = format_named(options.format);
  bool to_stdout = options.output == "-";
  struct stat there = {};
  if (options.output.empty()) return complain(kUsage, "-o needs a file name; it was empty");
  if (!to_stdout && stat(options.output.c_str(), &there) == 0 && !S_ISREG(there.st_mode) &&
      !S_ISCHR(there.st_mode))
    return complain(kUsage, fmt::format("{} is not a file; name one, or - for standard output",
                                        options.output));
  // Before the reading: nobody likes to wait for a refusal.
  analyze::Metric metric = kExportMetrics.at(options.metric);
  if (std::string sentence = objection(format, metric, query); !sentence.empty())
    return complain(kUsage, sentence);
  if (!to_stdout && !options.force && access(options.output.c_str(), F_OK) == 0)
    return complain(kUsage,
                    fmt::format("{} exists already; --force overwrites it", options.output));
  if (!to_stdout && same_file(options.trace, options.output))
    return complain(kUsage, fmt::format("{} is the trace itself; name another file for the stacks",
                                        options.output));
  if (!to_stdout)
    if (std::string sentence = refusal_to_replace(options.output); !sentence.empty())
      return complain(kUsage, sentence);
  bool binary = options.format == "pprof" || options.format == "sqlite";
  if (to_stdout && binary && isatty(STDOUT_FILENO))
    return complain(kUsage, fmt::format("{} is binary and not for a terminal; name a file with -o",
                                        options.format));

  prepare(format, metric, &query);
  // ms_print's graph has 72 columns; who can zoom in wants more.
  std::unique_ptr<analyze::HeapCurve> curve;
  std::function<void(analyze::Heap*)> attach;
  if (format.holds == Holds::kTime)
    attach = [&](analyze::Heap* heap) {
      size_t slots = options.format == "massif" ? 64 : 2048;
      curve = std::make_unique<analyze::HeapCurve>(heap, slots);
    };
  int exit_code = kOk;
  std::unique_ptr<analyze::Reading> reading =
      read_trace(options.trace, query, &exit_code, std::move(attach));
  if (!reading) return exit_code;
  if (Result<void> known = recorded(metric, *reading); !known)
    return complain(kUsage, known.error().sentence);
  if (format.holds == Holds::kEvents && reading->tables().header.is_sampled())
    return complain(kUsage, fmt::format("{} is a list of all calls, and {} has only a sample of "
                                        "them; export it as pprof or folded",
                                        format.name, options.trace));

  int fd = STDOUT_FILENO;
  if (!to_stdout) {
    fd = open(options.output.c_str(),
              O_WRONLY | O_CREAT | O_CLOEXEC | (options.force ? O_TRUNC : O_EXCL), 0666);
    if (fd < 0)
      return complain(kUnreadable, fmt::format("{} could not be created: {}", options.output,
                                               std::strerror(errno)));
  }
  output::FileSink sink(fd, to_stdout ? "stdout" : options.output);
  Result<void> done =
      format.write({reading.get(), &query, metric, !options.whole_stacks, curve.get()}, &sink);
  if (Result<void> written = sink.finish(); done) done = written;
  if (!to_stdout && close(fd) != 0 && done)
    done = fail(fmt::format("{} could not be written to its end: {}", options.output,
                            std::strerror(errno)));
  return done ? kOk : complain(kUnreadable, done.error().sentence);
}

}  // namespace

int main_export(const Words& words) {
  ExportOptions options;
  CLI::App app(formats_help(), "malloscope export");
  add_trace(app, &options.trace);
  app.add_option("--format", options.format, "One of those above")
      ->required()
      ->check(one_of(format_names()))
      ->type_name("FORMAT");
  app.add_option("--metric", options.metric, metrics_help(kExportMetrics))
      ->check(one_of(keys_of(kExportMetrics)))
      ->type_name("METRIC");
  app.add_option("-o,--output", options.output, "File to write; - is standard output")
      ->required()
      ->type_name("FILE");
  app.add_flag("-f,--force", options.force, "Overwrite the file if it exists and is no recording");
  app.add_flag("--whole-stacks", options.whole_stacks,
               "Also the allocator and the standard library on the inner end of stacks");
  add_query(app, &options.query);
  if (auto code =
          parse(app, words,
                "malloscope export app.mscope --format pprof -o app.pb.gz\n"
                "  malloscope export app.mscope --format folded --metric live -o live.folded"))
    return *code;
  Result<analyze::Query> query = query_of(options.query);
  if (!query) return complain(kUsage, query.error().sentence);
  return write_export(options, *query);
}

}  // namespace malloscope::cli
