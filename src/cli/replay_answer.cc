// SPDX-License-Identifier: Apache-2.0
#include "cli/replay_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "output/words.h"

namespace malloscope::cli {
namespace {

using analyze::Cell;
using analyze::Column;
using analyze::Table;
using output::bytes_text;
using output::count_text;
using output::duration_text;
using replay::Contender;
using replay::Spread;
using replay::Trial;
using Kind = Column::Kind;

double ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// RSS by ideal when RSS was highest, as far as it was looked at.
double fragmentation_at_peak(const Trial& trial) {
  return ratio(trial.heap_max_rss_bytes, trial.max_ideal_bytes);
}
double fragmentation_at_end(const Trial& trial) {
  return ratio(trial.heap_end_rss_bytes, trial.end_ideal_bytes);
}

std::string spread_text(const Spread& spread) {
  return fmt::format("+-{:.0f} %", spread.share() * 100);
}

// Nothing, if there are none.
Cell words(const std::string& text) { return text.empty() ? Cell() : Cell(text); }

uint64_t rounded(double number) { return static_cast<uint64_t>(std::llround(number)); }

// What is not libc's own is worth a word.
bool uses_another(const ReplaySource& source) {
  return !source.allocator.empty() && source.allocator != "glibc";
}

replay::Comparison compared(const ReplayReport& report) {
  // Whoever uses libc's may want to see another one as the reference, and names it first.
  return compare(*report.contenders, uses_another(report.source) ? report.source.allocator : "");
}

std::string described(const ReplayReport& report) {
  const replay::FileTail& tail = report.workload->tail();
  uint64_t calls = 0;
  for (uint64_t of_kind : tail.calls) calls += of_kind;
  return fmt::format(
      "{} by {}{}{}{}", count_text(calls, "call", "calls"),
      count_text(tail.threads, "thread", "threads"),
      report.source.process.empty() ? "" : " of " + report.source.process,
      uses_another(report.source) ? ", which uses " + report.source.allocator : "",
      tail.setup_calls == 0
          ? ""
          : fmt::format(", on a heap of {}", count_text(tail.setup_calls, "block", "blocks")));
}

// The advice, and how much of the run it is about: a large part of next to nothing is nothing.
std::string advice_of(const ReplayReport& report, const replay::Comparison& comparison) {
  if (comparison.advice.empty() || !comparison.reference || report.verify) return comparison.advice;
  const replay::FileTail& tail = report.workload->tail();
  const Contender& reference = (*report.contenders)[*comparison.reference];
  uint64_t time = rounded(allocator_time(reference).median);
  uint64_t run = rounded(static_cast<double>(tail.ticks) * tail.ns_per_tick);
  if (run == 0) return comparison.advice;
  return fmt::format("{} On {} the allocator takes {}{}, {} of the {} that were recorded.",
                     comparison.advice, reference.name(), duration_text(time),
                     tail.tracks > 1 ? " (all threads together)" : "",
                     output::percent_text(time, run), duration_text(run));
}

// One row an allocator: what people choose by.
Table contenders_table(const ReplayReport& report, const replay::Comparison& comparison) {
  bool repeated = report.contenders->front().trials.size() > 1;
  Table table{"allocators",
              "",
              {{"allocator", "allocator", Kind::kText},
               {"heap_rss", "heap RSS", Kind::kBytes},
               {"heap_rss_spread", "", Kind::kText, repeated, true},
               {"ideal", "ideal", Kind::kBytes, true, true},
               {"rss_by_ideal", "RSS/ideal", Kind::kRatio},
               {"end_rss", "at end", Kind::kBytes, true, true},
               {"allocator_time", "allocator", Kind::kDuration},
               {"allocator_spread", "", Kind::kText, repeated, true},
               {"ns_per_call", "ns/call", Kind::kRatio},
               {"wall", "wall", Kind::kDuration},
               {"cpu", "CPU", Kind::kDuration, true, true}},
              {}};
  std::vector<size_t> order = comparison.by_time;
  for (size_t i = 0; i < report.contenders->size(); ++i)
    if (std::ranges::find(order, i) == order.end()) order.push_back(i);
  for (size_t i : order) {
    const Contender& contender = (*report.contenders)[i];
    if (!contender.typical()) {
      table.rows.push_back({{contender.name() + "  failed"}});
      continue;
    }
    Spread rss = heap_rss(contender), time = allocator_time(contender);
    auto median = [&](uint64_t Trial::* figure) {
      return rounded(replay::spread(contender, figure).median);
    };
    uint64_t ideal = median(&Trial::max_ideal_bytes);
    table.rows.push_back(
        {{contender.name() + (i == comparison.reference ? " *" : ""), rounded(rss.median),
          spread_text(rss), ideal, ratio(rounded(rss.median), ideal),
          median(&Trial::heap_end_rss_bytes), rounded(time.median), spread_text(time),
          ratio(rounded(time.median), median(&Trial::calls)), median(&Trial::wall_ns),
          median(&Trial::cpu_ns)}});
  }
  return table;
}

// What trace_run printed: the calls, and their cycles.
Table calls_table(const Contender& contender, const Trial& trial, bool named) {
  Table table{"calls",
              named ? contender.name() : "",
              {{"call", "call", Kind::kText},
               {"calls", "calls", Kind::kCount},
               {"mean", "mean cycles", Kind::kCount},
               {"p50", "p50", Kind::kCount},
               {"p99", "p99", Kind::kCount},
               {"time", "time", Kind::kDuration},
               {"share", "", Kind::kShare}},
              {}};
  for (int i = 0; i < replay::kCallGroups; ++i) {
    const replay::CallFigures& figures = trial.groups[i];
    if (figures.calls == 0) continue;
    std::string name = replay::kCallGroupNames[i];
    if (!figures.timed) {
      table.rows.push_back({{name, figures.calls, "-", "-", "-", "-", Cell()}});
      continue;
    }
    auto ns =
        rounded(figures.mean_cycles * static_cast<double>(figures.calls) * trial.ns_per_cycle);
    table.rows.push_back(
        {{name, figures.calls, rounded(figures.mean_cycles), figures.p50_cycles, figures.p99_cycles,
          ns, analyze::Share{ns, std::max(ns, trial.allocator_ns)}}});
  }
  table.list = false;
  return table;
}

// One run, a line each.
Table summary_table(const Trial& trial, bool several_threads) {
  Table table{"summary",
              "",
              {{"what", "", Kind::kText}, {"value", "", Kind::kText}, {"about", "", Kind::kText}},
              {}};
  auto add = [&](std::string what, std::string value, std::string about) {
    table.rows.push_back({{std::move(what), std::move(value), std::move(about)}});
  };
  // Who waits for a lock uses no CPU.
  add("Allocator", duration_text(trial.allocator_ns),
      several_threads ? "all threads together, with what they waited for each other's locks"
                      : fmt::format("{} of the CPU time",
                                    output::percent_text(trial.allocator_ns, trial.cpu_ns)));
  add("CPU", duration_text(trial.cpu_ns),
      fmt::format("{} for touching pages, {} for waiting", duration_text(trial.touch_ns),
                  duration_text(trial.wait_ns)));
  add("Wall", duration_text(trial.wall_ns), "");
  add("Max RSS", bytes_text(trial.max_rss_bytes),
      fmt::format("{} the heap, {} the player's own", bytes_text(trial.heap_max_rss_bytes),
                  bytes_text(trial.player_bytes)));
  add("Max ideal RSS", bytes_text(trial.max_ideal_bytes), "asked for and not yet freed");
  add("VmSize", bytes_text(trial.max_vm_bytes), "at most");
  add("RSS / ideal", fmt::format("{:.2f}", fragmentation_at_peak(trial)),
      fmt::format("at the peak; at the end {} for {}", bytes_text(trial.heap_end_rss_bytes),
                  bytes_text(trial.end_ideal_bytes)));
  table.list = false;
  return table;
}

void add_trial_notes(const ReplayReport& report, analyze::Answer* answer) {
  for (const Contender& contender : *report.contenders) {
    const Trial* trial = contender.typical();
    if (!trial) continue;
    if (trial->failed > 0)
      answer->notes.push_back(fmt::format("{}: {} found no memory, though the recorded ones had.",
                                          contender.name(),
                                          count_text(trial->failed, "call", "calls")));
    if (!trial->knows_memory)
      answer->notes.push_back(
          fmt::format("{}: its memory is not known, as /proc/PID/status has no VmRSS; 0 stands for "
                      "that.",
                      contender.name()));
    if (report.trims && !trial->can_trim)
      answer->notes.push_back(
          fmt::format("{} has no malloc_trim, so it was not trimmed.", contender.name()));
  }
}

}  // namespace

analyze::Answer replay_text(const ReplayReport& report) {
  analyze::Answer answer;
  replay::Comparison comparison = compared(report);
  const std::vector<Contender>& contenders = *report.contenders;
  const Trial* first = nullptr;
  for (const Contender& contender : contenders)
    if (!first) first = contender.typical();
  std::string what = described(report);
  if (report.verify) {
    size_t good = comparison.by_time.size();
    answer.headline = fmt::format("{}, every block filled and checked: {} of {} allocators passed.",
                                  what, good, contenders.size());
    Table table{"allocators",
                "",
                {{"allocator", "allocator", Kind::kText}, {"result", "result", Kind::kText}},
                {}};
    for (const Contender& contender : contenders) {
      const Trial* bad = contender.first_error();
      table.rows.push_back({{contender.name(), std::string(bad ? "failed" : "ok")}});
    }
    answer.tables.push_back(std::move(table));
  } else if (contenders.size() == 1) {
    if (first) {
      answer.headline = fmt::format(
          "{} on {}: {} in the allocator, {:.0f} ns a call; {} resident for {} asked for.", what,
          contenders[0].name(), duration_text(first->allocator_ns),
          ratio(first->allocator_ns, first->calls), bytes_text(first->heap_max_rss_bytes),
          bytes_text(first->max_ideal_bytes));
      answer.tables.push_back(summary_table(*first, report.workload->tail().tracks > 1));
      answer.tables.push_back(calls_table(contenders[0], *first, false));
    } else {
      answer.headline = what + ": not replayed.";
    }
  } else {
    answer.headline =
        what + ". " +
        (!comparison.advice.empty() ? advice_of(report, comparison)
                                    : fmt::format("Nothing to compare: {} of {} allocators ran.",
                                                  comparison.by_time.size(), contenders.size()));
    answer.tables.push_back(contenders_table(report, comparison));
    if (comparison.reference)
      answer.notes.push_back("* The reference: what the others are compared with.");
    auto is_its_own = [&](const Contender& contender) {
      return contender.setup.allocator == report.source.allocator;
    };
    if (uses_another(report.source) && std::ranges::none_of(contenders, is_its_own))
      answer.notes.push_back(
          fmt::format("The program already uses {0}, which is none of these: add {0} to "
                      "--allocators to compare them with it.",
                      report.source.allocator));
    if (contenders.size() <= 4)
      for (size_t i : comparison.by_time)
        answer.tables.push_back(calls_table(contenders[i], *contenders[i].typical(), true));
  }
  if (first && !report.verify)
    answer.notes.push_back(fmt::format(
        "New blocks: {}. Pace: {}. RSS was read every {} ms from outside; without the player's own "
        "{}. Its part was {:.0f} ns a call.",
        report.touch == "first" ? "the first byte of each page is written"
        : report.touch == "all" ? "every byte is written"
                                : "nothing is written",
        report.pace, report.interval_ms, bytes_text(first->player_bytes),
        first->player_ns_per_call));
  const replay::FileTail& tail = report.workload->tail();
  if (first && !report.verify && tail.tracks > 1 && report.pace == "asap" &&
      tail.max_ideal_bytes > 0) {
    double more = ratio(first->max_ideal_bytes, tail.max_ideal_bytes) - 1;
    if (std::abs(more) > 0.05)
      answer.notes.push_back(fmt::format(
          "As fast as they go, the threads are elsewhere than in the program: {} asked for at "
          "once, "
          "where it had {} ({:+.0f} %). --pace recorded keeps that.",
          bytes_text(first->max_ideal_bytes), bytes_text(tail.max_ideal_bytes), more * 100));
  }
  add_trial_notes(report, &answer);
  answer.notes.insert(answer.notes.end(), report.notes.begin(), report.notes.end());
  return answer;
}

analyze::Answer replay_json(const ReplayReport& report) {
  analyze::Answer answer;
  const replay::FileTail& tail = report.workload->tail();
  replay::Comparison comparison = compared(report);
  uint64_t calls = 0;
  for (uint64_t of_kind : tail.calls) calls += of_kind;
  answer.facts = {
      {"format", kReplayFormat}, {"version", kReplayVersion}, {"file", report.input.file}};
  const ReplaySource& source = report.source;
  if (source.is_trace) {
    auto add = [&](std::string key, Cell cell) {
      answer.facts.emplace_back("trace." + std::move(key), std::move(cell));
    };
    add("bytes", source.bytes);
    add("events", source.events);
    add("started_unix_ns", source.started_unix_ns);
    add("image", uint64_t{raw(source.image)});
    add("pid", static_cast<uint64_t>(source.pid));
    add("from", words(report.input.from));
    add("to", words(report.input.to));
    add("threads", report.input.threads);
  } else {
    answer.facts.emplace_back("trace", Cell());
  }
  std::vector<std::pair<std::string, Cell>> more = {
      {"touch", report.touch},
      {"pace", report.pace},
      {"interval_ns", report.interval_ms * 1'000'000},
      {"workload.calls", calls},
      {"workload.threads", uint64_t{tail.threads}},
      {"workload.setup_calls", tail.setup_calls},
      {"workload.waits", tail.waits},
      {"workload.bytes", report.workload->bytes()},
      {"workload.checksum", fmt::format("{:016x}", tail.checksum)},
      {"workload.duration_ns",
       static_cast<uint64_t>(static_cast<double>(tail.ticks) * tail.ns_per_tick)},
      {"workload.max_ideal_bytes", tail.max_ideal_bytes},
      {"workload.failed_calls", tail.failed_calls},
      {"workload.unknown_frees", tail.unknown_frees},
      {"workload.mapping_calls", tail.mapping_calls},
      {"workload.inversions", tail.inversions},
      {"workload.missing_frees", tail.missing_frees},
      {"workload.lost_events", tail.lost_events},
      {"process", words(source.process)},
      {"reference",
       comparison.reference ? Cell((*report.contenders)[*comparison.reference].name()) : Cell()},
      {"advice", words(advice_of(report, comparison))}};
  std::ranges::move(more, std::back_inserter(answer.facts));
  Table runs{"runs", "", {}, {}};
  auto column = [&](std::string key, Kind kind) {
    runs.columns.push_back({std::move(key), "", kind});
  };
  column("allocator", Kind::kText);
  column("library", Kind::kText);
  column("tunables", Kind::kText);
  column("repeat", Kind::kCount);
  for (const char* name : replay::kCallGroupNames)
    column(fmt::format("calls.{}", name), Kind::kCount);
  for (const char* key : {"setup_ns", "wall_ns", "cpu_ns", "allocator_ns", "touch_ns", "wait_ns"})
    column(key, Kind::kDuration);
  column("player_ns_per_call", Kind::kRatio);
  for (const char* key :
       {"player_bytes", "max_rss_bytes", "heap_max_rss_bytes", "heap_end_rss_bytes", "max_vm_bytes",
        "max_ideal_bytes", "end_ideal_bytes"})
    column(key, Kind::kBytes);
  column("fragmentation.peak", Kind::kRatio);
  column("fragmentation.end", Kind::kRatio);
  for (const char* key : {"failed", "slow_waits", "interrupted", "trims"})
    column(key, Kind::kCount);
  for (const char* name : replay::kCallGroupNames) {
    column(fmt::format("cycles.{}.mean", name), Kind::kRatio);
    column(fmt::format("cycles.{}.p50", name), Kind::kCount);
    column(fmt::format("cycles.{}.p99", name), Kind::kCount);
  }
  column("ns_per_cycle", Kind::kRatio);
  column("error", Kind::kText);

  Table sizes{"cycles_by_size",
              "",
              {{"allocator", "", Kind::kText},
               {"tunables", "", Kind::kText},
               {"repeat", "", Kind::kCount},
               {"call", "", Kind::kText},
               {"from_bytes", "", Kind::kBytes},
               {"to_bytes", "", Kind::kBytes},
               {"calls", "", Kind::kCount},
               {"mean_cycles", "", Kind::kRatio}},
              {}};
  Table series{"over_time",
               "",
               {{"allocator", "", Kind::kText},
                {"tunables", "", Kind::kText},
                {"repeat", "", Kind::kCount},
                {"time_ns", "", Kind::kTime},
                {"heap_rss_bytes", "", Kind::kBytes},
                {"vm_bytes", "", Kind::kBytes},
                {"ideal_bytes", "", Kind::kBytes},
                {"fragmentation", "", Kind::kRatio}},
               {}};
  for (const Contender& contender : *report.contenders)
    for (size_t i = 0; i < contender.trials.size(); ++i) {
      const Trial& trial = contender.trials[i];
      const replay::Setup& setup = contender.setup;
      std::vector<Cell> cells = {setup.allocator, trial.library, setup.tunables, uint64_t{i + 1}};
      for (const replay::CallFigures& group : trial.groups) cells.emplace_back(group.calls);
      for (uint64_t ns : {trial.setup_ns, trial.wall_ns, trial.cpu_ns, trial.allocator_ns,
                          trial.touch_ns, trial.wait_ns})
        cells.emplace_back(ns);
      cells.emplace_back(trial.player_ns_per_call);
      for (uint64_t bytes : {trial.player_bytes, trial.max_rss_bytes, trial.heap_max_rss_bytes,
                             trial.heap_end_rss_bytes, trial.max_vm_bytes, trial.max_ideal_bytes,
                             trial.end_ideal_bytes})
        cells.emplace_back(bytes);
      cells.emplace_back(fragmentation_at_peak(trial));
      cells.emplace_back(fragmentation_at_end(trial));
      for (uint64_t count : {trial.failed, trial.slow_waits, trial.interrupted, trial.trims})
        cells.emplace_back(count);
      for (const replay::CallFigures& group : trial.groups) {
        // Not 0: nobody has looked.
        cells.push_back(group.timed ? Cell(group.mean_cycles) : Cell());
        cells.push_back(group.timed ? Cell(group.p50_cycles) : Cell());
        cells.push_back(group.timed ? Cell(group.p99_cycles) : Cell());
      }
      cells.emplace_back(trial.ns_per_cycle);
      cells.push_back(words(trial.error));
      runs.rows.push_back({std::move(cells)});
      for (int k = 0; k < replay::kCallGroups; ++k)
        for (int s = 0; s < replay::kSizeClasses; ++s) {
          const Trial::SizeFigures& figures = trial.sizes[k][s];
          if (figures.calls == 0) continue;
          uint64_t from = s == 0 ? 0 : uint64_t{1} << (s - 1);
          sizes.rows.push_back(
              {{setup.allocator, setup.tunables, uint64_t{i + 1},
                std::string(replay::kCallGroupNames[k]), from, s == 0 ? 0 : from + (from - 1),
                figures.calls, figures.mean_cycles}});
        }
      for (const replay::Sample& sample : trial.samples)
        series.rows.push_back(
            {{setup.allocator, setup.tunables, uint64_t{i + 1}, sample.time_ns, sample.rss_bytes,
              sample.vm_bytes, sample.ideal_bytes,
              sample.ideal_bytes == 0 ? Cell()
                                      : Cell(ratio(sample.rss_bytes, sample.ideal_bytes))}});
    }
  answer.tables = {std::move(runs), std::move(sizes), std::move(series)};
  add_trial_notes(report, &answer);
  answer.notes.insert(answer.notes.end(), report.notes.begin(), report.notes.end());
  return answer;
}

}  // namespace malloscope::cli
