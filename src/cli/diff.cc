// SPDX-License-Identifier: Apache-2.0
// `malloscope diff A B`, and of one trace `diff TRACE --from T1 --to T2`: the heap at two moments.

#include "analyze/diff.h"

#include <fmt/format.h>

#include <charconv>
#include <csignal>
#include <map>

#include "analyze/profile_views.h"
#include "cli/arguments.h"
#include "cli/commands.h"

namespace malloscope::cli {
namespace {

using analyze::By;
using analyze::Metric;

const std::map<std::string, Metric> kDiffMetrics = analyze::metrics(/*counted=*/true);

// "100,120".
bool parse_units(const std::string& text, double* before, double* after) {
  const char* end = text.data() + text.size();
  auto [comma, error] = std::from_chars(text.data(), end, *before);
  if (error != std::errc() || comma == end || *comma != ',') return false;
  auto [rest, second] = std::from_chars(comma + 1, end, *after);
  // Beyond that, nobody counts anything; and nothing overflows.
  auto counts = [](double units) { return units >= 1e-6 && units <= 1e18; };
  return second == std::errc() && rest == end && counts(*before) && counts(*after);
}

// Which of two recordings are samples, and what that does to a comparison.
void add_sample_notes(const analyze::Reading& before, const analyze::Reading& after,
                      const std::vector<std::string>& traces, analyze::Answer* answer) {
  for (const analyze::Reading* reading : {&before, &after})
    if (std::string sentence = reading->sample_sentence(); !sentence.empty())
      answer->notes.push_back(
          fmt::format("In {}: {}.", reading == &before ? traces.front() : traces.back(), sentence));
  if (before.sample_sentence().empty() != after.sample_sentence().empty())
    answer->notes.emplace_back(
        "In a sample a realloc is a free and an allocation of all of the new size: its "
        "allocations and allocated bytes are above those of a full recording.");
}

}  // namespace

int main_diff(const Words& words) {
  std::signal(SIGPIPE, SIG_IGN);  // A closed pipe is told by write(), with a sentence.
  std::vector<std::string> traces;
  bool json = false;
  Color color = Color::kAuto;
  QueryWords query_words;
  ShapeWords shape_words;
  std::string metric, by = "site", per;
  CLI::App app(
      "What changed between two recordings, or between two moments of one. Sites are matched\n"
      "by function and line, so that the program may have been rebuilt in between.",
      "malloscope diff");
  app.add_option("traces", traces, "The recording before and the one after; or one, with --from")
      ->required()
      ->expected(1, 2)
      ->type_name("BEFORE [AFTER]");
  add_json(app, &json);
  app.add_option("--metric", metric, metrics_help(kDiffMetrics, "peak; of two moments always live"))
      ->check(one_of(keys_of(kDiffMetrics)))
      ->type_name("METRIC");
  app.add_option("--by", by, "site, or function: with all that was called below it [site]")
      ->check(one_of({"site", "function"}))
      ->type_name("WHAT");
  app.add_option("--per", per, "What each run did, such as events: amounts are per event")
      ->type_name("BEFORE,AFTER");
  add_shape(app, &shape_words, "Rows to show [20; all in JSON]");
  add_query(app, &query_words);
  add_color(app, &color);
  if (auto code = parse(app, words,
                        "malloscope diff monday.mscope friday.mscope --metric live\n"
                        "  malloscope diff app.mscope --from 20% --to end"))
    return *code;

  analyze::DiffOptions options;
  bool moments = traces.size() == 1;
  options.metric = kDiffMetrics.at(!metric.empty() ? metric : moments ? "live" : "peak");
  options.by = by == "function" ? By::kFunction : By::kSite;
  if (!per.empty() && !parse_units(per, &options.before_units, &options.after_units))
    return complain(
        kUsage, fmt::format("--per '{}' is not two numbers from 1e-6 to 1e18; try 100,120", per));
  options.unchanged = json;
  if (moments && query_words.from.empty() && query_words.to.empty())
    return complain(kUsage,
                    "a diff needs two recordings, or two moments of one: --from T1 --to T2");
  if (moments && options.metric != Metric::kLive)
    return complain(kUsage, fmt::format("two moments of one recording differ in what is live; "
                                        "--metric {} needs two recordings",
                                        metric));
  Result<analyze::Query> after = query_of(query_words);
  if (!after) return complain(kUsage, after.error().sentence);
  analyze::Query before = *after;
  if (!moments) {
    ask_for(options.metric, &before);
    ask_for(options.metric, &*after);
  } else {
    before.to = after->from ? after->from : analyze::TimePoint{};
    before.from = after->from = std::nullopt;
  }

  if (Result<void> good = suits(options.metric, options.by, *after); !good)
    return complain(kUsage, good.error().sentence);

  int exit_code = kOk;
  std::unique_ptr<analyze::Reading> old_reading = read_trace(traces.front(), before, &exit_code);
  if (!old_reading) return exit_code;
  std::unique_ptr<analyze::Reading> new_reading = read_trace(traces.back(), *after, &exit_code);
  if (!new_reading) return exit_code;
  for (const analyze::Reading* reading : {old_reading.get(), new_reading.get()})
    if (Result<void> there = recorded(options.metric, *reading); !there)
      return complain(kUsage, there.error().sentence);
  if (moments &&
      old_reading->accounts().window().to_tick > new_reading->accounts().window().to_tick)
    return complain(
        kUsage, fmt::format("--from {} is after --to {}",
                            query_words.from.empty() ? "start" : query_words.from, query_words.to));
  analyze::Shape shape = shape_of(shape_words);
  if (shape.top == 0 && !json) shape.top = 20;
  analyze::Answer answer =
      analyze::diff(old_reading.get(), before, new_reading.get(), *after, options);
  if (!moments) add_sample_notes(*old_reading, *new_reading, traces, &answer);
  if (!moments)
    for (const std::string& sentence : old_reading->missing_names())
      answer.notes.push_back(fmt::format("In {}: {}", traces.front(), sentence));
  return print_answer(new_reading.get(), std::move(answer), shape, json, color, after->full_names);
}

}  // namespace malloscope::cli
