// SPDX-License-Identifier: Apache-2.0
// A text report laid out as that of igprof-analyse, by readers and scripts that know it: flat
// profiles, cumulative and self, then each function between its callers and its callees. Only
// functions and calls that the counter knows are shown.

#include <fmt/format.h>

#include <algorithm>

#include "output/igprof_table.h"
#include "output/words.h"

namespace malloscope::output {
namespace {

// 1234567 -> "1'234'567".
std::string thousands(uint64_t number) {
  std::string digits = grouped(number);
  std::replace(digits.begin(), digits.end(), ',', '\'');
  return digits;
}

class Writer {
 public:
  Writer(const IgprofTable& table, bool full_names, Sink* sink)
      : table_(table),
        full_names_(full_names),
        sink_(*sink),
        width_(std::max({size_t{8}, thousands(table.total.count).size(),
                         thousands(table.total.calls).size()})) {}

  void write() {
    sink_.write(fmt::format("Counter: {}\n", table_.counter));
    write_flat("Flat profile (cumulative >= 1%)", "Total", 1.0, &IgprofRow::cumulative);
    write_flat("Flat profile (self >= 0.01%)", "Self", 0.01, &IgprofRow::self);
    sink_.write(fmt::format("\n{:-<70}\nCall tree profile (cumulative)\n", ""));
    for (size_t rank = 1; rank <= table_.rows.size(); ++rank)
      if (row(rank).cumulative.count > 0) write_block(rank);
  }

 private:
  const IgprofRow& row(size_t rank) const { return table_.rows[rank - 1]; }

  double percent(uint64_t count) const {
    return table_.total.count == 0
               ? 0.0
               : 100.0 * static_cast<double>(count) / static_cast<double>(table_.total.count);
  }

  std::string name(size_t rank) const {
    const analyze::Symbol& symbol = *row(rank).symbol;
    return printable(full_names_ ? symbol.full : symbol.name);
  }

  void write_flat(const char* title, const char* kind, double least,
                  IgprofAmounts IgprofRow::* what) {
    sink_.write(fmt::format("\n{:-<70}\n{}\n\n% total  {:>{}}  {:>{}}  Function\n", "", title, kind,
                            width_, "Calls", width_));
    std::vector<size_t> ranks;
    for (size_t rank = 1; rank <= table_.rows.size(); ++rank)
      if ((row(rank).*what).count > 0 && percent((row(rank).*what).count) >= least)
        ranks.push_back(rank);
    std::stable_sort(ranks.begin(), ranks.end(), [&](size_t a, size_t b) {
      return (row(a).*what).count > (row(b).*what).count;
    });
    for (size_t rank : ranks) {
      const IgprofAmounts& amounts = row(rank).*what;
      sink_.write(fmt::format("{:7.2f}  {:>{}}  {:>{}}  {} [{}]\n", percent(amounts.count),
                              thousands(amounts.count), width_, thousands(amounts.calls), width_,
                              name(rank), rank));
    }
  }

  void write_block(size_t rank) {
    const IgprofRow& main = row(rank);
    size_t rule = 34 + 5 * width_ + 5;
    std::string line = "\n";
    for (size_t i = 0; i < (rule + 1) / 2; ++i) line += "- ";
    sink_.write(line + '\n');
    if (rank % 10 == 1)
      sink_.write(fmt::format(
          "Rank    % total  {:>{}}  {:>{}} / {:<{}}  {:>{}} / {:<{}}  Function\n", "Self", width_,
          "Self", width_, "Children", width_, "Calls", width_, "Total", width_));
    for (const IgprofRow::Edge& edge : main.callers) write_edge(edge);
    uint64_t below = main.cumulative.count - main.self.count;
    sink_.write(fmt::format("{:<8}{:7.1f}  {:>{}}  {:>{}} / {:<{}}  {:>{}}   {:<{}}  {}\n",
                            fmt::format("[{}]", rank), percent(main.cumulative.count),
                            thousands(main.cumulative.count), width_, thousands(main.self.count),
                            width_, thousands(below), width_, thousands(main.cumulative.calls),
                            width_, "", width_, name(rank)));
    for (const IgprofRow::Edge& edge : main.callees) write_edge(edge);
  }

  void write_edge(const IgprofRow::Edge& edge) {
    if (edge.amounts.count == 0) return;
    const IgprofRow& other = row(edge.rank);
    sink_.write(
        fmt::format("        {:7.1f}  {:.>{}}  {:>{}} / {:<{}}  {:>{}} / {:<{}}    {} [{}]\n",
                    percent(edge.amounts.count), "", width_, thousands(edge.amounts.count), width_,
                    thousands(other.cumulative.count), width_, thousands(edge.amounts.calls),
                    width_, thousands(other.cumulative.calls), width_, name(edge.rank), edge.rank));
  }

  const IgprofTable& table_;
  bool full_names_;
  Sink& sink_;
  size_t width_;
};

}  // namespace

Result<void> write_igprof(const Export& what, Sink* sink) {
  IgprofTable table(what);
  Writer(table, what.query->full_names, sink).write();
  return {};
}

}  // namespace malloscope::output
