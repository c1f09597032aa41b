// SPDX-License-Identifier: Apache-2.0
// api/detail: a part of the timeline in as many slices as the whole has, from events. Also the
// whole where the index knows no curve.

#include <algorithm>

#include "analyze/window_curve.h"
#include "serve/answers.h"
#include "serve/columns.h"
#include "serve/slice_columns.h"

namespace malloscope::serve {

using analyze::Explorer;

Result<DetailQuestion> detail_question(const Context& context, const Parameters& parameters) {
  Result<Explorer::Question> question = question_of(parameters, context.names);
  if (!question) return std::unexpected(question.error());
  Explorer& explorer = context.explorer;
  const analyze::Query& query = question->query;
  if ((query.from && query.from->needs_peak()) || (query.to && query.to->needs_peak()))
    return fail_usage("from= and to= of a detail are moments, not the peak");
  Result<analyze::Window> window = window_of(query, explorer.overview(), {});
  if (!window) return std::unexpected(window.error());
  DetailQuestion asked;
  asked.window = *window;
  asked.query = query;
  asked.query.from = std::nullopt;
  asked.query.frames = {};
  asked.query.threads.clear();
  asked.query.phases.clear();
  asked.query.tally = {};
  asked.query.tally.by_stack = false;  // Nobody asks for rows.
  if (Explorer::is_about_all(*question)) return asked;
  asked.filter = block_filter(context, *question, explorer.asked_rows(*question));
  return asked;
}

Result<std::string> detail_answer(const Context& context, const DetailQuestion& asked) {
  Jobs::Running job(&context.jobs, "reading all events for the timeline", context.asked);
  const trace::Overview& overview = context.explorer.overview();
  analyze::WindowCurve::Wants wants;
  if (!asked.filter.is_of_all())
    wants = [&](ImageId image, const analyze::Block& block) {
      return asked.filter.lets_through(image, block);
    };
  uint64_t from = std::max(asked.window.begin_tick(), overview.header.start_tick);
  uint64_t to = std::min(asked.window.to_tick, overview.end_tick);
  std::vector<std::optional<uint64_t>> ends;
  for (const trace::Image& image : context.explorer.reading().tables().images)
    ends.push_back(image.end_tick);
  analyze::WindowCurve curve(from, to, analyze::kSlices, wants, std::move(ends));
  // As of the whole, the first slice has what was before it.
  if (asked.window.from_tick <= overview.header.start_tick) curve.begin();
  auto progress = [&](double share) { job.show(share); };
  auto attach = [&](analyze::Heap* heap) { heap->add_observer(&curve); };
  auto reading = analyze::Reading::open(context.path, asked.query, {progress, attach, {}});
  if (!reading) return std::unexpected(reading.error());
  std::vector<double> time;
  const std::vector<analyze::WholeSlice>& slices = curve.finish();
  const trace::Tables& tables = (*reading)->tables();
  for (uint32_t i = 0; i <= slices.size(); ++i)
    time.push_back(static_cast<double>(tables.time_ns(curve.edge(i))));
  Columns columns;
  columns.add("time", time);
  add_slices(slices, true, &columns);
  return columns.finish([&](output::JsonWriter* json) {
    json->member("slices", slices.size());
    json->member("by", "none");
    json->member("exact_max", true);
    json->key("groups").begin_array();
    json->end();
  });
}

bool has_timeline(const Context& context, const Parameters& parameters) {
  Result<Explorer::Question> question = question_of(parameters, context.names);
  return !question || word(parameters, "by", "none") != "none" ||
         Explorer::is_about_all(*question) || context.explorer.index();
}

}  // namespace malloscope::serve
