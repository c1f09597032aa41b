// SPDX-License-Identifier: Apache-2.0
#include "analyze/leaks.h"

#include <fmt/format.h>

#include <csignal>

#include "analyze/numbers.h"
#include "cli/arguments.h"
#include "cli/commands.h"

namespace malloscope::cli {
namespace {

struct LeakOptions {
  std::string trace;
  bool json = false;
  Color color = Color::kAuto;
  QueryWords query;
  ShapeWords shape;
  SuppressionWords suppressions;
  std::vector<std::string> within;
  bool stacks = false, show_suppressed = false, fail = false;
  std::string max_bytes, against;
};

struct Found {
  std::unique_ptr<analyze::BadFrees> bad_frees;  // Observes the heap of `reading`.
  std::unique_ptr<analyze::Reading> reading;
  analyze::Suppressions suppressions;
  std::vector<std::string> notes;
  analyze::Leaks leaks;
};

// Nothing: it was complained about, and `exit_code` says what to return.
std::optional<Found> look(const std::string& trace, const LeakOptions& options,
                          const analyze::Query& query, const std::vector<analyze::Pattern>& within,
                          const analyze::Suppressions& suppressions, int* exit_code) {
  Found found;
  found.bad_frees = std::make_unique<analyze::BadFrees>();
  Result<trace::Overview> overview = trace::overview(trace);
  bool has_stacks = overview && overview->header.has_free_stacks();
  found.reading = read_trace(trace, query, exit_code, [&](analyze::Heap* heap) {
    found.bad_frees->attach(heap, has_stacks);
  });
  if (!found.reading) return std::nullopt;
  found.suppressions = suppressions;
  add_defaults(options.suppressions, *found.reading, &found.suppressions, &found.notes);
  found.leaks = find_leaks(found.reading.get(), query, within, found.suppressions);
  return found;
}

// What the user asked to fail on, as a sentence; empty if all is well.
std::string finding(const LeakOptions& options, std::optional<uint64_t> max_bytes,
                    const analyze::Leaks& leaks, const analyze::LeakSums& fresh,
                    const analyze::BadFrees& bad_frees) {
  using analyze::bytes_text, analyze::count_text;
  std::vector<std::string> parts;
  const analyze::LeakSums& total = leaks.total;
  if (options.fail && total.blocks > 0)
    parts.push_back(fmt::format(
        "there {} ({})",
        total.blocks == 1 ? "is 1 leak" : "are " + count_text(total.blocks, "leak", "leaks"),
        bytes_text(total.bytes)));
  if (options.fail && bad_frees.has_stacks() && bad_frees.count() > 0)
    parts.push_back(fmt::format(
        "there {}", bad_frees.count() == 1
                        ? "is 1 double or bad free"
                        : "are " + count_text(bad_frees.count(), "", "double or bad frees")));
  if (max_bytes && total.bytes > *max_bytes)
    parts.push_back(fmt::format("{} leaked, {} more than --max-bytes {}", bytes_text(total.bytes),
                                bytes_text(total.bytes - *max_bytes), options.max_bytes));
  if (fresh.unique > 0)
    parts.push_back(fmt::format("{} ({}, {}) that {} does not have",
                                count_text(fresh.unique, "unique leak", "unique leaks"),
                                count_text(fresh.blocks, "block", "blocks"),
                                bytes_text(fresh.bytes), options.against));
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace

int main_leaks(const Words& words) {
  std::signal(SIGPIPE, SIG_IGN);  // A closed pipe is told by write(), with a sentence.
  LeakOptions options;
  CLI::App app(
      "What was allocated and is still live at the end, by the stack that asked for it.\n"
      "What leaks again and again during the run comes first, what was made once comes last.",
      "malloscope leaks");
  add_trace(app, &options.trace);
  add_json(app, &options.json, "One JSON object with all leaks and their stacks");
  app.add_option("--within", options.within, "Only what was allocated below such a function")
      ->type_name("REGEX")
      ->allow_extra_args(false);
  app.add_flag("--stacks", options.stacks, "The whole stack of each leak");
  add_suppressions(app, &options.suppressions);
  app.add_flag("--show-suppressed", options.show_suppressed,
               "What was suppressed, and by which line");
  constexpr const char* kFail = "Exit code 1 if";
  app.add_flag("--fail", options.fail, "there is any leak, or double or bad free")->group(kFail);
  app.add_option("--max-bytes", options.max_bytes, "more than this leaked, such as 64K")
      ->type_name("SIZE")
      ->group(kFail);
  app.add_option("--max-new-against", options.against,
                 "there are leaks (by the functions of their stacks) that this trace has not")
      ->type_name("TRACE")
      ->group(kFail);
  add_shape(app, &options.shape, "Rows of whatever is listed [20; all in JSON]");
  add_query(app, &options.query);
  add_color(app, &options.color);
  if (auto code = parse(app, words,
                        "malloscope leaks app.mscope --within 'Algorithm::sysExecute' --stacks\n"
                        "  malloscope leaks app.mscope --suppressions known.supp --fail"))
    return *code;

  Result<analyze::Query> query = query_of(options.query);
  if (!query) return complain(kUsage, query.error().sentence);
  ask_for_leaks(&*query);
  analyze::LeakView view;
  for (const std::string& text : options.within) {
    Result<analyze::Pattern> pattern = analyze::Pattern::make(text, "--within");
    if (!pattern) return complain(kUsage, pattern.error().sentence);
    view.within.push_back(*pattern);
  }
  std::optional<uint64_t> max_bytes;
  if (!options.max_bytes.empty()) {
    Result<uint64_t> bytes = bytes_of(options.max_bytes, "--max-bytes");
    if (!bytes) return complain(kUsage, bytes.error().sentence);
    max_bytes = *bytes;
  }
  Result<analyze::Suppressions> suppressions = suppressions_of(options.suppressions);
  if (!suppressions) return complain(kUsage, suppressions.error().sentence);

  int exit_code = kOk;
  std::set<analyze::FunctionsHash> known;
  std::set<std::string> unnamed;  // Modules in the trace to compare with.
  if (!options.against.empty()) {
    analyze::Query everybody = *query;
    everybody.selection = {};  // Another run has other numbers.
    auto other = look(options.against, options, everybody, view.within, *suppressions, &exit_code);
    if (!other) return exit_code;
    for (const analyze::Leak& leak : other->leaks.found)
      known.insert(functions_of(leak, other->reading->frames()));
    unnamed = other->reading->lost_modules();
    view.known = &known;
  }
  auto found = look(options.trace, options, *query, view.within, *suppressions, &exit_code);
  if (!found) return exit_code;
  analyze::LeakSums fresh;
  if (view.known) fresh = new_leaks(found->leaks, found->reading->frames(), known);

  view.stacks = options.stacks;
  view.show_suppressed = options.show_suppressed;
  view.for_programs = options.json;
  view.bad_frees = found->bad_frees.get();
  analyze::Answer answer =
      leaks_answer(found->reading.get(), *query, found->leaks, found->suppressions, view);
  answer.notes.insert(answer.notes.end(), found->notes.begin(), found->notes.end());
  analyze::Shape shape = shape_of(options.shape);
  if (shape.top == 0 && !options.json) shape.top = 20;
  exit_code = print_answer(found->reading.get(), std::move(answer), shape, options.json,
                           options.color, query->full_names);
  if (exit_code != kOk) return exit_code;
  if (fresh.unique > 0 && !unnamed.empty())
    return complain(kUnreadable,
                    fmt::format("{} cannot be compared with: {} is not as it was then, and its "
                                "functions have no names",
                                options.against, *unnamed.begin()));
  std::string sentence = finding(options, max_bytes, found->leaks, fresh, *found->bad_frees);
  if (!sentence.empty()) return complain(kFinding, sentence);
  bool judged = options.fail || max_bytes || view.known;
  if (judged && found->leaks.proves_nothing())
    return complain(kUnreadable, fmt::format("no leaks, but that proves nothing: {}",
                                             analyze::no_proof_text(found->leaks, view.within)));
  if (judged && !names_nobody(*found->reading, *query).empty())
    return complain(kUnreadable, "no leaks, but that proves nothing: nobody has that name");
  if (judged && !query->phases.empty() && !found->reading->accounts().phases().complete)
    return complain(kUnreadable,
                    fmt::format("no leaks, but that proves nothing: {}", analyze::kPhasesNotTold));
  if ((options.fail || view.known) && found->reading->tables().header.is_sampled())
    return complain(kUnreadable, "no leaks, but that proves nothing: the recording is a sample");
  if (judged && !found->reading->tables().complete) return kUnreadable;  // That was said.
  return kOk;
}

}  // namespace malloscope::cli
