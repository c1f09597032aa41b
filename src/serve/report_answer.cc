// SPDX-License-Identifier: Apache-2.0
// api/answer: what the command line answers, with all that is needed to show it as a table.

#include <fmt/format.h>

#include <map>
#include <memory>

#include "analyze/diff.h"
#include "analyze/leaks.h"
#include "analyze/suppressions.h"
#include "analyze/view.h"
#include "output/sink.h"
#include "serve/answers.h"
#include "serve/names.h"

namespace malloscope::serve {
namespace {

using analyze::Answer;
using analyze::Cell;
using analyze::Column;
using analyze::NamedFrame;
using analyze::Query;
using analyze::Reading;
using output::JsonWriter;
using Layout = JsonWriter::Layout;

constexpr size_t kMostRows = 2'000;

std::string_view kind_name(Column::Kind kind) {
  switch (kind) {
    case Column::Kind::kCount:
      return "count";
    case Column::Kind::kBytes:
      return "bytes";
    case Column::Kind::kDuration:
      return "duration";
    case Column::Kind::kTime:
      return "time";
    case Column::Kind::kShare:
      return "share";
    case Column::Kind::kRatio:
      return "ratio";
    case Column::Kind::kText:
      return "text";
    case Column::Kind::kFrame:
      return "frame";
    case Column::Kind::kStack:
      return "stack";
  }
  return "text";
}

void write_cell(const Cell& cell, FrameNumbers* frames, JsonWriter* json) {
  if (const auto* n = std::get_if<uint64_t>(&cell)) return json->value(*n);
  if (const auto* n = std::get_if<int64_t>(&cell)) return json->value(*n);
  if (const auto* d = std::get_if<double>(&cell)) return json->value(*d);
  if (const auto* s = std::get_if<std::string>(&cell)) return json->value(*s);
  if (const auto* rate = std::get_if<analyze::Rate>(&cell)) return json->value(rate->amount, 15);
  if (const auto* frame = std::get_if<NamedFrame>(&cell)) return write_frame(*frame, json);
  if (const auto* share = std::get_if<analyze::Share>(&cell)) {
    json->begin_object(Layout::kLine);
    json->member("part", share->part);
    json->member("whole", share->whole);
    return json->end();
  }
  if (const auto* stack = std::get_if<analyze::Stack>(&cell)) {
    return frames->write_stack((*stack)(), json);
  }
  json->null();
}

std::string written(const Answer& answer) {
  output::StringSink sink;
  JsonWriter json(&sink);
  FrameNumbers frames;
  json.begin_object();
  json.member("headline", answer.headline);
  json.key("facts").begin_object();
  for (const auto& [key, cell] : answer.facts) {
    json.key(key);
    write_cell(cell, &frames, &json);
  }
  json.end();
  json.key("notes").begin_array();
  for (const std::string& note : answer.notes) json.value(note);
  json.end();
  json.key("tables").begin_array();
  for (const analyze::Table& table : answer.tables) {
    json.begin_object();
    json.member("key", table.key);
    json.member("title", table.title);
    json.member("list", table.list);
    json.key("columns").begin_array();
    for (const Column& column : table.columns) {
      json.begin_object(Layout::kLine);
      json.member("key", column.key);
      json.member("title", column.title);
      json.member("kind", kind_name(column.kind));
      json.member("shown", column.shown);
      json.end();
    }
    json.end();
    json.key("rows").begin_array();
    size_t shown = std::min(table.rows.size(), kMostRows);
    for (size_t i = 0; i < shown; ++i) {
      const analyze::TableRow& row = table.rows[i];
      json.begin_object(Layout::kLine);
      json.member("depth", row.depth);
      json.member("main", row.main);
      json.key("cells").begin_array();
      for (const Cell& cell : row.cells) write_cell(cell, &frames, &json);
      json.end();
      json.end();
    }
    json.end();
    json.member("left_out", table.left_out + (table.rows.size() - shown));
    json.end();
  }
  json.end();
  json.key("frames");
  frames.write_frames(&json);
  json.end();
  return sink.text();
}

class Asking {
 public:
  Asking(const Context& context, std::string what)
      : context_(context), job_(&context.jobs, std::move(what), context.asked) {}

  Result<std::unique_ptr<Reading>> read(const Query& query,
                                        std::function<void(analyze::Heap*)> attach = {}) {
    return read(context_.path, query, std::move(attach));
  }
  Result<std::unique_ptr<Reading>> read(const std::string& path, const Query& query,
                                        std::function<void(analyze::Heap*)> attach) {
    return Reading::open(path, query,
                         {[this](double share) { job_.show(share); }, std::move(attach), {}});
  }

 private:
  const Context& context_;
  Jobs::Running job_;
};

// The page's notes on names are its own.
std::string leaks_of(Reading* reading, const Query& query, const analyze::BadFrees& bad_frees) {
  analyze::Suppressions suppressions;
  std::vector<std::string> notes;
  add_embedded_suppressions(*reading, &suppressions, &notes);
  suppressions.add_shipped();
  analyze::Leaks found = find_leaks(reading, query, {}, suppressions);
  analyze::LeakView view;
  view.bad_frees = &bad_frees;
  view.top = kMostRows;
  Answer answer = leaks_answer(reading, query, found, suppressions, view);
  answer.notes.insert(answer.notes.end(), notes.begin(), notes.end());
  return written(answer);
}

std::optional<std::string> leaks_from_index(const Context& context, Query query) {
  ask_for_leaks(&query);
  bool has_stacks = context.explorer.overview().header.has_free_stacks();
  std::optional<std::string> known;
  context.explorer.with_leaks(query, [&](Reading* reading) {
    analyze::BadFrees bad_frees;
    uint64_t unmatched = reading->accounts().totals().unmatched_frees;
    if (has_stacks && unmatched > 0) return;  // Which of them, only events tell.
    bad_frees.restore(unmatched, has_stacks);
    known = leaks_of(reading, query, bad_frees);
  });
  return known;
}

Result<std::string> leaks(const Context& context, Query query) {
  Asking asking(context, "reading all events for leaks");
  ask_for_leaks(&query);
  bool has_stacks = context.explorer.overview().header.has_free_stacks();
  analyze::BadFrees bad_frees;
  auto reading =
      asking.read(query, [&](analyze::Heap* heap) { bad_frees.attach(heap, has_stacks); });
  if (!reading) return std::unexpected(reading.error());
  return leaks_of(reading->get(), query, bad_frees);
}

std::optional<std::string> view_from_index(const Context& context, const analyze::ViewKind& kind,
                                           const analyze::QueryWords& words, Query query) {
  bool at = !words.at.empty();
  if (!suits(kind, query, at)) return std::nullopt;
  std::unique_ptr<analyze::View> view = kind.make(query, {at, kMostRows});
  view->prepare(&query);
  std::optional<std::string> answer;
  context.explorer.with_view(view.get(), words, query, [&](Reading* reading) {
    answer = written(view->answer(reading, query));
  });
  return answer;
}

Result<std::string> view(const Context& context, const analyze::ViewKind& kind, Query query,
                         bool at) {
  if (Result<void> good = suits(kind, query, at); !good) return fail_usage(good.error().sentence);
  Asking asking(context, fmt::format("reading all events for {}", kind.name));
  std::unique_ptr<analyze::View> view = kind.make(query, {at, kMostRows});
  view->prepare(&query);
  auto reading = asking.read(
      query, [&](analyze::Heap* heap) { view->attach(heap, context.explorer.overview()); });
  if (!reading) return std::unexpected(reading.error());
  return written(view->answer(reading->get(), query));
}

// The views of which no two want the events counted differently, in one pass.
Result<void> views_at_once(const Context& context, const std::vector<std::string>& names,
                           const std::function<void(analyze::Heap*)>& attach,
                           std::map<std::string, std::string>* answers) {
  Asking asking(context, "reading all events");
  Result<Query> query = query_of(context.names);
  if (!query) return std::unexpected(query.error());
  std::vector<std::unique_ptr<analyze::View>> views;
  for (const std::string& name : names) {
    views.push_back(analyze::find_view(name)->make(*query, {false, kMostRows}));
    views.back()->prepare(&*query);
  }
  auto reading = asking.read(*query, [&](analyze::Heap* heap) {
    for (const auto& view : views) view->attach(heap, context.explorer.overview());
    if (attach) attach(heap);
  });
  if (!reading) return std::unexpected(reading.error());
  for (size_t i = 0; i < views.size(); ++i)
    (*answers)[names[i]] = written(views[i]->answer(reading->get(), *query));
  return {};
}

// Of two moments of one recording.
Result<std::string> diff(const Context& context, Query after) {
  Asking asking(context, "comparing two moments");
  Query before = after;
  before.to = after.from ? after.from : analyze::TimePoint{};
  before.from = after.from = std::nullopt;
  auto old_reading = asking.read(before);
  if (!old_reading) return std::unexpected(old_reading.error());
  auto new_reading = asking.read(after);
  if (!new_reading) return std::unexpected(new_reading.error());
  analyze::DiffOptions options;
  options.metric = analyze::Metric::kLive;
  return written(analyze::diff(old_reading->get(), before, new_reading->get(), after, options));
}

// Of this recording and the one before.
Result<std::string> diff_since_base(const Context& context, Query query, analyze::Metric metric) {
  Asking asking(context, "comparing two recordings");
  ask_for(metric, &query);
  auto old_reading = asking.read(context.base_path, query, {});
  if (!old_reading) return std::unexpected(old_reading.error());
  auto new_reading = asking.read(query);
  if (!new_reading) return std::unexpected(new_reading.error());
  analyze::DiffOptions options;
  options.metric = metric;
  return written(analyze::diff(old_reading->get(), query, new_reading->get(), query, options));
}

}  // namespace

Result<std::optional<std::string>> indexed_report_answer(const Context& context,
                                                         const std::string& name,
                                                         const Parameters& parameters) {
  Result<analyze::QueryWords> words = query_words(parameters, context.names);
  if (!words) return std::unexpected(words.error());
  Result<Query> query = query_of(*words);
  if (!query) return fail_usage(query.error().sentence);
  if (name == "leaks") return leaks_from_index(context, std::move(*query));
  if (const analyze::ViewKind* kind = analyze::find_view(name))
    return view_from_index(context, *kind, *words, std::move(*query));
  return std::nullopt;
}

Result<std::string> report_answer(const Context& context, const std::string& name,
                                  const Parameters& parameters) {
  Result<analyze::QueryWords> words = query_words(parameters, context.names);
  if (!words) return std::unexpected(words.error());
  Result<Query> query = query_of(*words);
  if (!query) return fail_usage(query.error().sentence);
  if (name == "leaks") return leaks(context, std::move(*query));
  if (name == "diff") {
    Result<bool> since_base = is_since_base(context, parameters);
    if (!since_base) return std::unexpected(since_base.error());
    if (!*since_base) return diff(context, std::move(*query));
    Result<analyze::Explorer::Question> question = question_of(parameters, context.names);
    if (!question) return std::unexpected(question.error());
    return diff_since_base(context, std::move(*query), question->metric);
  }
  if (const analyze::ViewKind* kind = analyze::find_view(name))
    return view(context, *kind, std::move(*query), !words->at.empty());
  return fail_usage(fmt::format("there is no view '{}'", name));
}

Result<std::map<std::string, std::string>> all_reports(
    const Context& context, const std::function<void(analyze::Heap*)>& attach) {
  std::map<std::string, std::string> answers;
  auto has_index_of = [&](const std::string& name) {
    Result<std::optional<std::string>> indexed = indexed_report_answer(context, name, {});
    if (!indexed || !*indexed) return false;
    answers[name] = std::move(**indexed);
    return true;
  };
  if (!has_index_of("leaks")) {
    Result<std::string> leaks = report_answer(context, "leaks", {});
    if (!leaks) return std::unexpected(leaks.error());
    answers["leaks"] = std::move(*leaks);
  }
  std::vector<std::string> together;
  for (const analyze::ViewKind& kind : analyze::views()) {
    Query query;
    kind.make(query, {})->prepare(&query);
    std::string name(kind.name);
    if (has_index_of(name)) continue;
    if (query.tally == analyze::TallyOptions{}) {
      together.push_back(name);
      continue;
    }
    if (Result<void> good = views_at_once(context, {name}, {}, &answers); !good)
      return std::unexpected(good.error());
  }
  if (Result<void> good = views_at_once(context, together, attach, &answers); !good)
    return std::unexpected(good.error());
  return answers;
}

}  // namespace malloscope::serve
