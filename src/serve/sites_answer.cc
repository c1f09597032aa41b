// SPDX-License-Identifier: Apache-2.0
// api/sites: the code to blame, or whatever else rows are put together by; api/sparks: how the
// heaviest went through time; api/stacks: the stacks of one.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "analyze/index_curves.h"
#include "analyze/view.h"
#include "serve/answers.h"
#include "serve/columns.h"
#include "serve/names.h"
#include "serve/site_rows.h"

namespace malloscope::serve {
namespace {

using analyze::Amounts;
using analyze::By;
using analyze::Explorer;

constexpr size_t kMostRows = 2'000, kMostStacks = 50, kSparks = 64;

// Puts together stacks whose frames are the same as they are shown.
template <typename FramesOf, typename Stack>
void merge_alike(FramesOf&& frames_of, std::vector<Stack>* stacks) {
  std::unordered_map<std::string, size_t> known;
  std::vector<Stack> merged;
  for (const Stack& stack : *stacks) {
    std::string key;
    for (const analyze::NamedFrame& frame : frames_of(stack.row))
      for (const std::string& part : {frame.full.empty() ? frame.function : frame.full,
                                      frame.module, frame.file, std::to_string(frame.line)})
        key += part + '\0';
    auto [place, fresh] = known.try_emplace(std::move(key), merged.size());
    if (fresh) {
      merged.push_back(stack);
      continue;
    }
    merged[place->second].amounts += stack.amounts;
    merged[place->second].value += stack.value;
  }
  *stacks = std::move(merged);
}

// When the processes that are asked about were highest, in the time that is asked about, whatever
// the filters leave of that moment. What was counted for the rows is kept, so it is not counted
// again.
std::optional<uint64_t> peak_time_ns(const Context& context, const Explorer::Question& question,
                                     By by) {
  if (question.metric != analyze::Metric::kPeak || by != By::kSite) return std::nullopt;
  Explorer& explorer = context.explorer;
  auto quiet = [](std::string_view, double) {};
  Result<Explorer::Amounting> amounts = explorer.amounts(question, Explorer::Wanted::kAll, quiet);
  if (!amounts || (*amounts)->peak.bytes == 0) return std::nullopt;
  return explorer.reading().tables().time_ns((*amounts)->peak.tick);
}

}  // namespace

Result<std::string> sites_answer(const Context& context, const Parameters& parameters) {
  Result<Explorer::Question> question = question_of(parameters, context.names);
  if (!question) return std::unexpected(question.error());
  auto by = row_groups().find(word(parameters, "by", "site"));
  if (by == row_groups().end())
    return fail_usage("by= is none of site, function, file, module, ...");
  Result<uint64_t> most = number(parameters, "most", kMostRows);
  if (!most) return std::unexpected(most.error());
  Jobs::Running job(&context.jobs, "counting", context.asked);
  Result<Listed> listed = list(context, parameters, *question, by->second, &job);
  if (!listed) return std::unexpected(listed.error());
  size_t left_out = fold(std::clamp<size_t>(*most, 1, 100'000), &*listed);
  std::optional<uint64_t> peak_ns = peak_time_ns(context, *question, by->second);

  Columns columns;
  std::vector<uint32_t> ids;
  for (const Listed::Row& row : listed->rows) ids.push_back(row.id);
  columns.add("id", ids);
  auto column = [&](const char* name, auto&& amount) {
    std::vector<double> values;
    for (const Listed::Row& row : listed->rows) values.push_back(static_cast<double>(amount(row)));
    columns.add(name, values);
  };
  using Row = Listed::Row;
  column("value", [&](const Row& r) { return value(r.amounts, question->metric); });
  bool of_blocks = question->metric != analyze::Metric::kCpu;
  if (!of_blocks) column("samples", [](const Row& r) { return r.amounts.cpu_samples; });
  bool of_all_blocks = of_blocks && !Explorer::is_about_left(*question);
  if (of_all_blocks) {
    column("allocations", [](const Row& r) { return r.amounts.allocations; });
    column("reallocations", [](const Row& r) { return r.amounts.reallocations; });
    column("allocated", [](const Row& r) { return r.amounts.allocated_bytes; });
  }
  if (of_blocks) {
    column("live", [](const Row& r) { return r.amounts.live_bytes; });
    column("live_blocks", [](const Row& r) { return r.amounts.live_blocks; });
  }
  if (of_all_blocks) {
    column("peak", [](const Row& r) { return r.amounts.peak_bytes; });
    column("temporary", [](const Row& r) { return r.amounts.temporary; });
  }
  column("stacks", [](const Row& r) { return r.stacks; });
  if (by->second == By::kFunction) column("cumulative", [](const Row& r) { return r.cumulative; });
  if (listed->compared)
    column("before", [&](const Row& r) { return value(r.before, question->metric); });
  return columns.finish([&](output::JsonWriter* json) {
    write_metric_members(question->metric, json);
    json->member("by", by->first);
    json->member("rows", listed->rows.size());
    json->member("left_out", left_out);
    json->member("total", value(listed->total, question->metric));
    if (peak_ns) json->member("peak_time_ns", *peak_ns);
    if (!of_blocks) json->member("samples", listed->total.cpu_samples);
    if (of_blocks) {
      json->key("totals").begin_object();
      json->member("live_bytes", listed->total.live_bytes);
      json->member("live_blocks", listed->total.live_blocks);
      if (of_all_blocks) {
        json->member("allocations", listed->total.allocations);
        json->member("reallocations", listed->total.reallocations);
        json->member("allocated_bytes", listed->total.allocated_bytes);
        json->member("peak_bytes", listed->total.peak_bytes);
        json->member("temporary", listed->total.temporary);
      }
      json->end();
    }
    NamesWriter names(json, "names");
    for (const Row& row : listed->rows) names.add(row.id, row.name);
    names.finish();
  });
}

Result<std::string> sparks_answer(const Context& context, const Parameters& parameters) {
  Result<Explorer::Question> question = question_of(parameters, context.names);
  if (!question) return std::unexpected(question.error());
  Result<uint64_t> most = number(parameters, "most", kMostRows);
  if (!most) return std::unexpected(most.error());
  Jobs::Running job(&context.jobs, "drawing the sites through time", context.asked);
  Result<Listed> listed = list(context, parameters, *question, By::kSite, &job);
  if (!listed) return std::unexpected(listed.error());
  if (listed->rows.size() > *most) listed->rows.resize(*most);
  std::vector<uint32_t> ids,
      place_of(context.explorer.groups(*question, By::kSite)->groups.size(), Explorer::kNobody);
  std::erase_if(listed->rows, [](const Listed::Row& row) { return row.id >= kFirstOfBase; });
  for (const Listed::Row& row : listed->rows) {
    place_of[row.id] = static_cast<uint32_t>(ids.size());
    ids.push_back(row.id);
  }
  Explorer& explorer = context.explorer;
  Explorer::Grouping groups = explorer.groups(*question, By::kSite);
  auto line_of_row = [&](size_t row) {
    uint32_t group = groups->group_of_row[row];
    return group == Explorer::kNobody ? group : place_of[group];
  };
  std::vector<double> sparks;
  auto part = [](size_t k) { return k * analyze::kSlices / kSparks; };
  if (question->metric == analyze::Metric::kCpu) {
    std::vector<double> course = explorer.cpu_course(*question, ids.size(), line_of_row);
    for (size_t i = 0; i < course.size() / analyze::kSlices; ++i)
      for (size_t k = 0; k < kSparks; ++k) {
        auto slice = course.begin() + static_cast<ptrdiff_t>(i * analyze::kSlices);
        sparks.push_back(std::accumulate(slice + static_cast<ptrdiff_t>(part(k)),
                                         slice + static_cast<ptrdiff_t>(part(k + 1)), 0.0));
      }
  } else if (explorer.index()) {
    std::string by = "sparks";
    for (uint32_t id : ids) by += fmt::format(" {}", id);
    Explorer::CurvesQuestion asked = explorer.ask_curves(*question, by, ids.size(), line_of_row);
    context.let_others();
    std::shared_ptr<const analyze::IndexCurves> curves = explorer.curves(asked);
    if (!curves) return fail(kDamagedIndex);
    for (size_t i = 0; i < ids.size(); ++i)
      for (size_t k = 0; k < kSparks; ++k) {
        // The highest of its part, so that no peak is lost.
        const uint64_t* curve = curves->of(i);
        sparks.push_back(
            static_cast<double>(*std::max_element(curve + part(k), curve + part(k + 1))));
      }
  }
  if (sparks.empty()) ids.clear();
  Columns columns;
  columns.add("id", ids);
  columns.add("spark", sparks);
  return columns.finish([&](output::JsonWriter* json) {
    json->member("points", kSparks);
    json->member("rows", ids.size());
  });
}

Result<std::string> stacks_answer(const Context& context, const Parameters& parameters) {
  Result<Explorer::Question> question = question_of(parameters, context.names);
  if (!question) return std::unexpected(question.error());
  Result<uint64_t> site = number(parameters, "site", Explorer::kNobody);
  if (!site) return std::unexpected(site.error());
  if (*site >= kFirstOfBase && *site < Explorer::kNobody && context.comparison) {
    Parameters then = parameters;
    then.erase("site");
    then.emplace("site", std::to_string(*site - kFirstOfBase));
    return stacks_answer(context.base(), then);
  }
  Jobs::Running job(&context.jobs, "looking for stacks", context.asked);
  auto progress = [&](std::string_view what, double share) { job.show(what, share); };
  Explorer& explorer = context.explorer;
  Result<Explorer::Amounting> amounts =
      explorer.amounts(*question, Explorer::Wanted::kAll, progress);
  if (!amounts) return std::unexpected(amounts.error());
  Explorer::Grouping groups = explorer.groups(*question, By::kSite);
  analyze::Query shown = question->query;
  shown.threads.clear();
  shown.phases.clear();
  analyze::SiteIndex names(&explorer.reading(), shown);
  auto frames_of = [&](uint32_t row) {
    const Explorer::RowId& id = explorer.rows()[row];
    return names.stack(id.image, id.stack, analyze::StrandId::kNone);
  };
  struct Stack {
    uint32_t row;
    Amounts amounts;
    uint64_t value;
  };
  std::vector<Stack> stacks;
  auto add_stacks = [&](auto&& counts) {
    (*amounts)->for_each_value(question->metric, [&](size_t row, uint64_t value) {
      if (groups->group_of_row[row] != *site) return;
      Amounts of = (*amounts)->at(row, question->metric);
      if (counts(of, value)) stacks.push_back({static_cast<uint32_t>(row), of, value});
    });
  };
  add_stacks([](const Amounts&, uint64_t value) { return value > 0; });
  if (stacks.empty())  // A site that has nothing of the metric has stacks all the same.
    add_stacks([](const Amounts& of, uint64_t) {
      return of.allocations > 0 || of.reallocations > 0 || of.live_blocks > 0;
    });
  // Of CPU time, each address within a line that was met is a stack of its own: here they are one.
  if (question->metric == analyze::Metric::kCpu) merge_alike(frames_of, &stacks);
  size_t kept = std::min(stacks.size(), kMostStacks);
  std::ranges::partial_sort(stacks, stacks.begin() + static_cast<ptrdiff_t>(kept),
                            [](const Stack& a, const Stack& b) {
                              return a.value != b.value ? a.value > b.value : a.row < b.row;
                            });

  output::StringSink sink;
  output::JsonWriter json(&sink);
  json.begin_object();
  write_metric_members(question->metric, &json);
  json.member("left_out", stacks.size() - kept);
  json.key("stacks").begin_array();
  for (size_t i = 0; i < kept; ++i) {
    const Amounts& of = stacks[i].amounts;
    json.begin_object();
    json.member("value", stacks[i].value);
    if (question->metric == analyze::Metric::kCpu) {
      json.member("samples", of.cpu_samples);
    } else {
      json.member("live", of.live_bytes);
      if (!Explorer::is_about_left(*question)) {
        json.member("allocations", of.allocations);
        json.member("allocated", of.allocated_bytes);
        json.member("peak", of.peak_bytes);
      }
    }
    json.key("frames");
    write_stack(frames_of(stacks[i].row), &json);
    json.end();
  }
  json.end();
  json.end();
  return sink.text();
}

}  // namespace malloscope::serve
