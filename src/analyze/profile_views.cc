// SPDX-License-Identifier: Apache-2.0
#include "analyze/profile_views.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "analyze/cpu_samples.h"
#include "analyze/cpu_summary.h"
#include "analyze/numbers.h"

namespace malloscope::analyze {
namespace {

using Kind = Column::Kind;

struct AmountColumn {
  const char* key;
  const char* title;
  Kind kind;
  uint64_t Amounts::* member;
  bool cpu = false;  // Of CPU time, else of blocks.
};
constexpr AmountColumn kAmounts[] = {
    {"allocations", "allocations", Kind::kCount, &Amounts::allocations},
    {"reallocations", "reallocs", Kind::kCount, &Amounts::reallocations},
    {"allocated_bytes", "allocated", Kind::kBytes, &Amounts::allocated_bytes},
    {"live_bytes", "live", Kind::kBytes, &Amounts::live_bytes},
    {"live_blocks", "live blocks", Kind::kCount, &Amounts::live_blocks},
    {"peak_bytes", "at peak", Kind::kBytes, &Amounts::peak_bytes},
    {"temporary", "temporary", Kind::kCount, &Amounts::temporary},
    {"samples", "samples", Kind::kCount, &Amounts::cpu_samples, true},
};

bool belongs_to(std::string_view key, Metric metric) {
  switch (metric) {
    case Metric::kAllocations:
    case Metric::kCalls:
      return key == "allocated_bytes";
    case Metric::kAllocated:
    case Metric::kTemporary:
    case Metric::kLifetime:
    case Metric::kAllocatorTime:
      return key == "allocations";
    case Metric::kOverhead:
      return key == "allocated_bytes";
    case Metric::kLive:
      return key == "live_blocks";
    case Metric::kPeak:
      return key == "live_bytes";
    case Metric::kCpu:
      return key == "samples";
  }
  return false;
}

}  // namespace

std::string_view metric_name(Metric metric) {
  switch (metric) {
    case Metric::kAllocations:
      return "allocations";
    case Metric::kAllocated:
      return "allocated";
    case Metric::kLive:
      return "live";
    case Metric::kPeak:
      return "peak";
    case Metric::kTemporary:
      return "temporary";
    case Metric::kCalls:
      return "calls";
    case Metric::kLifetime:
      return "lifetime";
    case Metric::kOverhead:
      return "overhead";
    case Metric::kAllocatorTime:
      return "allocator-time";
    case Metric::kCpu:
      return "cpu";
  }
  return "";
}

std::string_view metric_help(Metric metric) {
  switch (metric) {
    case Metric::kAllocations:
      return "calls that returned a new block";
    case Metric::kAllocated:
      return "bytes asked for, all calls together";
    case Metric::kLive:
      return "bytes never freed; with --from, only of what was allocated since";
    case Metric::kPeak:
      return "bytes live at the highest moment";
    case Metric::kTemporary:
      return "allocations that were freed before their thread's next one";
    case Metric::kCalls:
      return "allocations and reallocations";
    case Metric::kLifetime:
      return "how long the blocks lived, all together";
    case Metric::kOverhead:
      return "bytes that the allocator set aside beyond what was asked for";
    case Metric::kAllocatorTime:
      return "time inside the allocator (of run --time-calls)";
    case Metric::kCpu:
      return "CPU time, whether it allocates or not (of run --cpu)";
  }
  return "";
}

std::string metric_key(Metric metric) {
  std::string key(metric_name(metric));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

std::map<std::string, Metric> metrics(bool counted) {
  std::map<std::string, Metric> by_name;
  for (Metric metric : {Metric::kAllocations, Metric::kAllocated, Metric::kLive, Metric::kPeak,
                        Metric::kTemporary, Metric::kCalls, Metric::kCpu})
    by_name.emplace(metric_name(metric), metric);
  if (!counted)
    for (Metric metric : {Metric::kLifetime, Metric::kOverhead, Metric::kAllocatorTime})
      by_name.emplace(metric_name(metric), metric);
  return by_name;
}

void ask_for(Metric metric, Query* query) {
  TallyOptions& tally = query->tally;
  tally.only_made_in_window |= metric == Metric::kLive && query->from;
  tally.overhead |= metric == Metric::kOverhead;
  tally.call_times |= metric == Metric::kAllocatorTime;
  tally.cpu |= metric == Metric::kCpu;
  tally.details |= metric == Metric::kLifetime || tally.overhead || tally.call_times;
}

Result<void> suits(Metric metric, By by, const Query& query) {
  if (metric != Metric::kCpu) return {};
  if (by == By::kSize || by == By::kType)
    return fail_usage(
        "CPU time has neither size nor type: --metric cpu can be had by function, site, file, "
        "module, thread and phase");
  if (query.tally.min_size > 0 || query.tally.max_size < UINT64_MAX)
    return fail_usage(
        "CPU time is not that of blocks of some size: --min-size and --max-size have no meaning "
        "with --metric cpu");
  if (!query.frames.types.empty())
    return fail_usage(
        "CPU time is not that of objects of some type: --type has no meaning with --metric cpu");
  return {};
}

Result<void> recorded(Metric metric, const Reading& reading) {
  const trace::Tables& tables = reading.tables();
  if (metric == Metric::kAllocatorTime && !tables.header.has_call_times())
    return fail_usage(
        fmt::format("{} has no times of calls; record the program with malloscope run --time-calls",
                    reading.path()));
  if (metric == Metric::kCpu && !has_cpu(tables))
    return fail_usage(
        fmt::format("{} has no samples of CPU time; record the program with malloscope run --cpu",
                    reading.path()));
  return {};
}

Column::Kind metric_kind(Metric metric) {
  switch (metric) {
    case Metric::kAllocated:
    case Metric::kLive:
    case Metric::kPeak:
    case Metric::kOverhead:
      return Kind::kBytes;
    case Metric::kLifetime:
    case Metric::kAllocatorTime:
    case Metric::kCpu:
      return Kind::kDuration;
    default:
      return Kind::kCount;
  }
}

NamedFrame named(const Symbol& symbol) {
  return {symbol.name, symbol.file, symbol.line, symbol.module, symbol.full, symbol.column};
}

std::vector<Column> amount_columns(Metric metric) {
  std::vector<Column> columns;
  for (const AmountColumn& column : kAmounts)
    if (column.cpu == (metric == Metric::kCpu))
      columns.push_back({column.key, column.title, column.kind, belongs_to(column.key, metric)});
  return columns;
}

void add_amounts(const Amounts& amounts, Metric metric, std::vector<Cell>* cells) {
  for (const AmountColumn& column : kAmounts)
    if (column.cpu == (metric == Metric::kCpu)) cells->emplace_back(amounts.*column.member);
}

std::vector<Column> profile_columns(Metric metric) {
  std::string key = metric_key(metric);
  std::vector<Column> columns = {{key, std::string(metric_name(metric)), metric_kind(metric)},
                                 {"share", "", Kind::kShare}};
  for (Column& column : amount_columns(metric))
    if (column.key != key) columns.push_back(std::move(column));
  return columns;
}

void add_profile(const Amounts& amounts, uint64_t whole, Metric metric, std::vector<Cell>* cells) {
  std::string key = metric_key(metric);
  cells->emplace_back(value(amounts, metric));
  cells->emplace_back(Share{value(amounts, metric), whole});
  for (const AmountColumn& column : kAmounts)
    if (column.key != key && column.cpu == (metric == Metric::kCpu))
      cells->emplace_back(amounts.*column.member);
}

std::string headline(const Reading& reading, const Amounts& total, Metric metric) {
  const trace::Tables& tables = reading.tables();
  uint64_t sum = value(total, metric);
  switch (metric) {
    case Metric::kPeak:
      return fmt::format("{} at the peak, {} after the recording began", bytes_text(sum),
                         duration_text(tables.time_ns(reading.accounts().peak().tick)));
    case Metric::kLive:
      return fmt::format(
          "{} still live, in {}{}", bytes_text(sum),
          count_text(total.live_blocks, "block", "blocks"),
          reading.accounts().tally().options().only_made_in_window
              ? fmt::format(" allocated after {}", duration_text(reading.range().from_ns))
              : "");
    case Metric::kAllocated:
      return fmt::format("{} allocated, by {}", bytes_text(sum),
                         count_text(total.allocations, "allocation", "allocations"));
    case Metric::kAllocations:
      return count_text(sum, "allocation", "allocations");
    case Metric::kCalls:
      return count_text(sum, "call that allocated", "calls that allocated");
    case Metric::kTemporary:
      return fmt::format("{}, of {}",
                         count_text(sum, "temporary allocation", "temporary allocations"),
                         grouped(total.allocations));
    case Metric::kLifetime:
      return fmt::format("{} lived by {} together, {} on average", duration_text(sum),
                         count_text(total.allocations, "block", "blocks"),
                         duration_text(sum / std::max<uint64_t>(total.allocations, 1)));
    case Metric::kAllocatorTime:
      return fmt::format(
          "{} in the allocator, for {}", duration_text(sum),
          count_text(total.allocations, "allocation", "allocations") + " and what became of them");
    case Metric::kCpu: {
      std::string share = recorders_share(cpu_sum(reading));
      return fmt::format("{} of CPU time, in {}{}", duration_text(sum),
                         count_text(total.cpu_samples, "sample", "samples"),
                         share.empty() ? "" : "; of all, " + share);
    }
    case Metric::kOverhead: {
      bool exact = std::ranges::all_of(reading.selected(), [](const trace::Image* image) {
        return allocator_of(*image) == Allocator::kGlibc;
      });
      return fmt::format("{} set aside beyond the {} asked for: the allocator's rounding{}",
                         bytes_text(sum), bytes_text(total.allocated_bytes),
                         exact ? "" : ", estimated");
    }
  }
  return "";
}

std::vector<size_t> ordered(const CallTree& tree, const CallGraph& graph,
                            const ProfileOptions& options) {
  std::vector<size_t> order = heaviest_first(
      graph.functions.size(),
      [&](size_t i) { return value(graph.functions[i].cumulative, options.metric); },
      [&](size_t i) -> const std::string& { return tree.symbol(graph.functions[i].symbol).full; });
  if (!options.by_cumulative)
    std::ranges::stable_sort(order, std::greater{}, [&](size_t i) {
      return value(graph.functions[i].self, options.metric);
    });
  return order;
}

static std::string share_note(const CallTree& tree, Metric metric) {
  uint64_t shown = value(tree.total(), metric), all = value(tree.unfiltered(), metric);
  if (shown == all) return "";
  if (shown == 0) return "Nothing matches the filters.";
  return fmt::format("The filters let {} through.", percent_text(shown, all));
}

void add_notes(const CallTree& tree, Metric metric, Answer* answer) {
  if (std::string note = share_note(tree, metric); !note.empty()) answer->notes.push_back(note);
  if (tree.cut_stacks() > 0)
    answer->notes.push_back(
        fmt::format("{} of {} stacks have no outer end (cut or not unwound further).",
                    tree.cut_stacks(), tree.stacks()));
}

}  // namespace malloscope::analyze
