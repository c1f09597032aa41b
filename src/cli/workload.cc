// SPDX-License-Identifier: Apache-2.0
// `malloscope workload`: writes the calls of a trace without its stacks and addresses, and says
// what they ask for.

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "cli/arguments.h"
#include "cli/output_file.h"
#include "cli/replay_input.h"
#include "output/sink.h"
#include "output/words.h"
#include "replay/statistics.h"

namespace malloscope::cli {
namespace {

using analyze::Column;
using analyze::Table;
using Kind = Column::Kind;

constexpr size_t kSlicesShown = 20;
// Of any version.
constexpr Replaceable kWorkloads = {{replay::kWorkloadMagic, replay::kMagicName}, "workload"};

Table calls_table(const replay::FileTail& tail) {
  Table table{
      "calls", "Calls", {{"call", "call", Kind::kText}, {"calls", "calls", Kind::kCount}}, {}};
  uint64_t groups[replay::kCallGroups] = {};
  for (int i = 0; i < replay::kCallKinds; ++i)
    groups[static_cast<int>(replay::group_of(static_cast<replay::OpKind>(i)))] += tail.calls[i];
  for (int i = 0; i < replay::kCallGroups; ++i)
    table.rows.push_back({{std::string(replay::kCallGroupNames[i]), groups[i]}});
  return table;
}

Table powers_table(const replay::Statistics& statistics) {
  Table table{"log2_sizes",
              "Requests by size",
              {{"from_bytes", "from", Kind::kBytes},
               {"to_bytes", "to", Kind::kBytes},
               {"calls", "requests", Kind::kCount},
               {"share", "", Kind::kShare}},
              {}};
  for (unsigned k = 0; k < statistics.powers.size(); ++k) {
    uint64_t calls = statistics.powers[k];
    if (calls == 0) continue;
    uint64_t from = k == 0 ? 0 : uint64_t{1} << (k - 1);
    table.rows.push_back({{from, k == 0 ? 0 : from + (from - 1), calls,
                           analyze::Share{calls, statistics.all.count}}});
  }
  table.list = false;
  return table;
}

Table sizes_table(const replay::Statistics& statistics, size_t top) {
  Table table{"sizes",
              "Commonest sizes",
              {{"bytes", "bytes", Kind::kBytes},
               {"calls", "requests", Kind::kCount},
               {"share", "", Kind::kShare}},
              {}};
  std::vector<std::pair<uint64_t, uint64_t>> sizes(statistics.sizes.begin(),
                                                   statistics.sizes.end());
  if (top != 0)
    std::ranges::stable_sort(sizes, std::greater(), &std::pair<uint64_t, uint64_t>::second);
  for (auto [size, calls] : sizes) {
    if (top != 0 && table.rows.size() == top) break;
    table.rows.push_back({{size, calls, analyze::Share{calls, statistics.all.count}}});
  }
  if (table.rows.size() < sizes.size())
    table.title = fmt::format("Commonest sizes, {} of {}", table.rows.size(), sizes.size());
  table.list = false;
  return table;
}

Table slices_table(const replay::Statistics& statistics, const replay::FileTail& tail) {
  Table table{"over_time",
              "Requested sizes over time",
              {{"time_ns", "from", Kind::kTime},
               {"requests", "requests", Kind::kCount},
               {"min_bytes", "smallest", Kind::kBytes},
               {"mean_bytes", "mean", Kind::kBytes},
               {"max_bytes", "largest", Kind::kBytes}},
              {}};
  size_t count = statistics.slices.size();
  for (size_t i = 0; i < count; ++i) {
    const replay::Requests& slice = statistics.slices[i];
    auto ns = static_cast<uint64_t>(static_cast<double>(tail.ticks) * tail.ns_per_tick *
                                    static_cast<double>(i) / static_cast<double>(count));
    if (slice.count == 0)
      table.rows.push_back({{ns, uint64_t{0}}});
    else
      table.rows.push_back({{ns, slice.count, slice.smallest,
                             static_cast<uint64_t>(slice.average()), slice.largest}});
  }
  table.list = false;
  return table;
}

constexpr const char* kOpNames[replay::kOpKinds] = {
    "malloc",    "calloc",     "memalign",  "aligned_alloc", "posix_memalign",
    "realloc",   "realloc",    "free",      "free",          "wait",
    "new_slots", "drop_slots", "take_slot", "next_thread",   "begin"};

// "3 malloc 17 100": the third track's, slot and size. What a wait is for stands in their places.
int dump_workload(const replay::WorkloadReader& workload) {
  output::FileSink sink(fileno(stdout), "stdout");
  Result<void> read = workload.read([&](uint32_t track, const replay::Op& op) {
    using replay::OpKind;
    std::string line = fmt::format("{} {}", track + 1, kOpNames[static_cast<int>(op.kind)]);
    switch (op.kind) {
      case OpKind::kFree:
      case OpKind::kTakeSlot:
        line += fmt::format(" {}", op.slot);
        break;
      case OpKind::kReallocToFree:
        line += fmt::format(" {} 0", op.slot);
        break;
      case OpKind::kWait:
        line += fmt::format(" {} {}", op.track + 1, op.size);
        break;
      case OpKind::kDropSlots:
        line += fmt::format(" {}", op.size);
        break;
      case OpKind::kFreeNull:
      case OpKind::kNextThread:
      case OpKind::kBegin:
        break;
      default:
        line += fmt::format(" {} {}", op.slot, op.size);
        if (replay::is_aligned(op.kind)) line += fmt::format(" {}", 1ull << op.alignment_log2);
    }
    line += '\n';
    sink.write(line);
  });
  if (!read) return complain(kUnreadable, read.error().sentence);
  if (Result<void> done = sink.finish(); !done) return complain(kUnreadable, done.error().sentence);
  return kOk;
}

}  // namespace

int main_workload(const Words& words) {
  // A closed pipe and a file that must not grow are told by write(), with a sentence.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  ReplayInput input;
  std::string output;
  bool json = false, force = false, dump = false;
  size_t slices = 0;
  Color color = Color::kAuto;
  CLI::App app(
      "The calls of a program without the program: who asks for how much, when, and frees it\n"
      "when. No stacks, no names, no addresses, no contents. Written to a file that\n"
      "`malloscope replay` runs; and what is asked for, as figures.",
      "malloscope workload");
  add_replay_input(app, &input);
  app.add_option("-o,--output", output, "Write the workload to this file (*.mwork)")
      ->type_name("FILE");
  app.add_flag("--force", force, "Replace the workload if it exists; nothing that is no workload");
  app.add_flag("--anonymize", input.anonymize,
               "Sizes and times made coarse: they give away less of the program");
  app.add_flag("--dump", dump, "All that is in it, a line for each operation, thread by thread");
  app.add_option("--slices", slices, "Parts of the time that are told apart [20; 1000 in JSON]")
      ->check(CLI::Range(1, 100'000).description(""))
      ->type_name("N");
  add_json(app, &json);
  add_color(app, &color);
  if (auto code = parse(app, words,
                        "malloscope workload app.mscope -o app.mwork --anonymize\n"
                        "  malloscope replay app.mwork --allocators glibc,jemalloc"))
    return *code;

  if (!output.empty())
    if (std::string why = obstacle(output, {input.file}, force, kWorkloads); !why.empty())
      return complain(kUsage, why);
  int exit_code = kOk;
  analyze::Answer answer;
  ReplaySource source;
  std::optional<replay::WorkloadReader> workload =
      workload_of(input, output, &source, &answer.notes, &exit_code);
  if (!workload) return exit_code;
  if (dump) return dump_workload(*workload);
  const replay::FileTail& tail = workload->tail();
  if (slices == 0) slices = json ? 1000 : kSlicesShown;
  Result<replay::Statistics> statistics = replay::statistics(*workload, slices);
  if (!statistics) return complain(kUnreadable, statistics.error().sentence);
  uint64_t calls = 0;
  for (uint64_t of_kind : tail.calls) calls += of_kind;
  const replay::Requests& all = statistics->all;
  double per_call =
      calls == 0 ? 0 : static_cast<double>(workload->bytes()) / static_cast<double>(calls);
  answer.headline = fmt::format(
      "{} by {}{} in {}; {} requests of {} to {}, {} on average; {} live at most.",
      output::count_text(calls, "call", "calls"),
      output::count_text(tail.threads, "thread", "threads"),
      source.process.empty() ? "" : " of " + source.process,
      output::duration_text(
          static_cast<uint64_t>(static_cast<double>(tail.ticks) * tail.ns_per_tick)),
      output::grouped(all.count), output::bytes_text(all.count ? all.smallest : 0),
      output::bytes_text(all.largest), output::bytes_text(static_cast<uint64_t>(all.average())),
      output::bytes_text(tail.max_ideal_bytes));
  answer.notes.push_back(fmt::format("As a workload {}, {:.2f} bytes a call.",
                                     output::bytes_text(workload->bytes()), per_call));
  answer.facts = {{"totals.calls", calls},
                  {"totals.threads", uint64_t{tail.threads}},
                  {"totals.waits", tail.waits},
                  {"totals.duration_ns",
                   static_cast<uint64_t>(static_cast<double>(tail.ticks) * tail.ns_per_tick)},
                  {"totals.requests", all.count},
                  {"totals.min_bytes", all.count ? all.smallest : 0},
                  {"totals.max_bytes", all.largest},
                  {"totals.mean_bytes", all.average()},
                  {"totals.requested_bytes", all.bytes},
                  {"totals.max_ideal_bytes", tail.max_ideal_bytes},
                  {"totals.end_ideal_bytes", tail.end_ideal_bytes},
                  {"totals.setup_calls", tail.setup_calls},
                  {"totals.failed_calls", tail.failed_calls},
                  {"totals.unknown_frees", tail.unknown_frees},
                  {"totals.mapping_calls", tail.mapping_calls},
                  {"totals.inversions", tail.inversions},
                  {"totals.missing_frees", tail.missing_frees},
                  {"workload.bytes", workload->bytes()},
                  {"workload.bytes_per_call", per_call},
                  {"workload.anonymized", uint64_t{(tail.flags & replay::kAnonymized) != 0}}};
  answer.tables = {calls_table(tail), powers_table(*statistics),
                   sizes_table(*statistics, json ? 0 : 10), slices_table(*statistics, tail)};
  if (!output.empty())
    answer.notes.push_back(
        fmt::format("Written to {}. Next: malloscope replay {} --allocators "
                    "glibc,jemalloc,tcmalloc,mimalloc",
                    output::printable(output), output::shell_quoted(output)));
  return print_answer(std::move(answer), {}, json, color);
}

}  // namespace malloscope::cli
