// SPDX-License-Identifier: Apache-2.0
// The formats of other tools, one writer a file. docs/exports.md says what opens each and what
// it holds; the sums in every file are those of the report.

#pragma once

#include <span>

#include "analyze/call_tree.h"
#include "analyze/heap_curve.h"
#include "analyze/query.h"
#include "analyze/reading.h"
#include "output/sink.h"

namespace malloscope::output {

struct Export {
  analyze::Reading* reading = nullptr;
  const analyze::Query* query = nullptr;
  // What a format with one value for each stack holds; where it holds all, what is shown first.
  analyze::Metric metric = analyze::Metric::kPeak;
  // Frames of the allocator and the standard library on the inner end are left out, as in `report`.
  bool fold = true;
  const analyze::HeapCurve* curve = nullptr;  // For what is drawn over time.
};

// Text and JSON.
Result<void> write_folded(const Export& what, Sink* sink);
Result<void> write_speedscope(const Export& what, Sink* sink);
Result<void> write_callgrind(const Export& what, Sink* sink);
Result<void> write_igprof(const Export& what, Sink* sink);
Result<void> write_csv(const Export& what, Sink* sink);
Result<void> write_tree_json(const Export& what, Sink* sink);
Result<void> write_dhat(const Export& what, Sink* sink);       // Needs the tally's details.
Result<void> write_massif(const Export& what, Sink* sink);     // Needs the curve.
Result<void> write_perfetto(const Export& what, Sink* sink);   // Needs the curve.
Result<void> write_heaptrack(const Export& what, Sink* sink);  // Reads the trace once more.
// Binary.
Result<void> write_pprof(const Export& what,
                         Sink* sink);  // Threads and sizes if the tally has them.
Result<void> write_sqlite(const Export& what, Sink* sink);

// What formats name and hold.
struct AmountField {
  const char* name;  // As in `report --json`.
  uint64_t analyze::Amounts::* member;
};
inline constexpr AmountField kAmountFields[] = {
    {"allocations", &analyze::Amounts::allocations},
    {"reallocations", &analyze::Amounts::reallocations},
    {"allocated_bytes", &analyze::Amounts::allocated_bytes},
    {"live_bytes", &analyze::Amounts::live_bytes},
    {"live_blocks", &analyze::Amounts::live_blocks},
    {"peak_bytes", &analyze::Amounts::peak_bytes},
    {"temporary", &analyze::Amounts::temporary},
};

// Those that a file of this metric has: all of blocks, or CPU time.
inline constexpr AmountField kCpuFields[] = {
    {"cpu_ns", &analyze::Amounts::cpu_ns},
    {"samples", &analyze::Amounts::cpu_samples},
};
inline std::span<const AmountField> amount_fields(analyze::Metric metric) {
  if (metric == analyze::Metric::kCpu) return kCpuFields;
  return kAmountFields;
}

// The tree that most of them are made from: all amounts are at nodes with a symbol.
inline analyze::CallTree export_tree(const Export& what, bool by_line) {
  return {what.reading, *what.query, {by_line, what.fold, true, {}}};
}

inline bool is_empty(const analyze::Amounts& amounts) {
  for (const AmountField& field : kAmountFields)
    if (amounts.*field.member != 0) return false;
  return amounts.cpu_samples == 0;
}

// What was run, as one line; of the first process.
std::string command_of(const analyze::Reading& reading);

}  // namespace malloscope::output
