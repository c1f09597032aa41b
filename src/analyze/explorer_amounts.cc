// SPDX-License-Identifier: Apache-2.0
// The first part of a question: the amounts of all rows in a range of time, for some threads and
// sizes, from the index if it can tell and from the events if not. The second part, which stacks,
// is then a bit for each row.

#include <algorithm>
#include <utility>

#include "analyze/explorer.h"
#include "analyze/index_overhead.h"
#include "analyze/question_parts.h"
#include "analyze/strand_selector.h"

namespace malloscope::analyze {
namespace {

// Whether an index tells it, one way or another.
bool is_in_index(Metric metric) {
  return is_counted(metric) || metric == Metric::kLifetime || metric == Metric::kOverhead;
}

// Which amounts a metric is made of.
IndexSums::Wanted parts_of(Metric metric) {
  IndexSums::Wanted wanted = {};
  switch (metric) {
    case Metric::kCalls:
      wanted[IndexSums::kReallocations] = true;
      [[fallthrough]];
    case Metric::kAllocations:
      wanted[IndexSums::kAllocations] = true;
      break;
    case Metric::kAllocated:
      wanted[IndexSums::kAllocatedBytes] = true;
      break;
    case Metric::kLive:
      wanted[IndexSums::kLiveBytes] = true;
      break;
    case Metric::kPeak:
      wanted[IndexSums::kPeakBytes] = true;
      break;
    case Metric::kTemporary:
      wanted[IndexSums::kTemporary] = true;
      break;
    case Metric::kLifetime:
    case Metric::kOverhead:
    case Metric::kAllocatorTime:
    case Metric::kCpu:
      break;
  }
  return wanted;
}

uint64_t Amounts::* timed_part(Metric metric) {
  return metric == Metric::kLifetime   ? &Amounts::lifetime_ns
         : metric == Metric::kOverhead ? &Amounts::overhead_bytes
         : metric == Metric::kCpu      ? &Amounts::cpu_ns
                                       : &Amounts::allocator_ns;
}

// Of the rows that count.
Amounts sum_of(const Explorer::Amounted& amounts, Metric metric) {
  Amounts sum;
  amounts.add_up(
      metric, 1, [](size_t) { return 0u; }, [&](size_t, const Amounts& all) { sum = all; });
  return sum;
}

// Without what is had in other ways: sizes that are asked for, and what some metrics ask for beyond
// what every tally counts.
TallyOptions counting(TallyOptions options) {
  options.details = options.overhead = false;
  options.min_size = 0;
  options.max_size = UINT64_MAX;
  return options;
}

}  // namespace

void Explorer::Amounted::for_each_part(
    Metric metric,
    const std::function<void(const std::vector<uint64_t>&, uint64_t Amounts::*)>& visit) const {
  for (size_t part = 0; part < IndexSums::kAmounts; ++part)
    if (!counted[part].empty()) visit(counted[part], IndexSums::part_of(part));
  if (!timed.empty()) visit(timed, timed_part(metric));
  if (!samples.empty()) visit(samples, &Amounts::cpu_samples);
}

std::vector<const std::vector<uint64_t>*> Explorer::Amounted::parts_of(Metric metric) const {
  if (!is_counted(metric)) return {&timed};
  std::vector<const std::vector<uint64_t>*> parts;
  IndexSums::Wanted wanted = analyze::parts_of(metric);
  for (size_t part = 0; part < IndexSums::kAmounts; ++part)
    if (wanted[part]) parts.push_back(&counted[part]);
  return parts;
}

Amounts Explorer::Amounted::at(size_t row, Metric metric) const {
  Amounts amounts;
  for (size_t part = 0; part < IndexSums::kAmounts; ++part)
    if (!counted[part].empty()) amounts.*IndexSums::part_of(part) = counted[part][row];
  if (!timed.empty()) amounts.*timed_part(metric) = timed[row];
  if (!samples.empty()) amounts.cpu_samples = samples[row];
  return amounts;
}

Result<Explorer::Amounting> Explorer::amounts(const Question& question, Wanted wanted,
                                              const Progress& progress) {
  Result<Amounting> all = all_amounts(question, wanted, progress);
  FrameFilter stacks = question.query.frames;
  stacks.hide.clear();
  if (!all || stacks.empty()) return all;
  std::string key = range_key(question) + stacks_key(question.words);
  add_words(&key, question.words.only_under);
  if (wanted == Wanted::kMetric) key += metric_name(question.metric);
  if (const Amounting* kept = amounts_.find(key)) return *kept;
  const std::vector<bool> meant = asked_rows(question);
  auto found = std::make_shared<Amounted>(**all);
  auto keep_meant = [&](std::vector<uint64_t>* amounts) {
    for (size_t i = 0; i < amounts->size(); ++i)
      if (!meant[i]) (*amounts)[i] = 0;
  };
  for (std::vector<uint64_t>& amounts : found->counted) keep_meant(&amounts);
  keep_meant(&found->timed);
  keep_meant(&found->samples);
  found->total = sum_of(*found, question.metric);
  return amounts_.keep(key, std::move(found));
}

Result<Explorer::Amounting> Explorer::all_amounts(const Question& question, Wanted wanted,
                                                  const Progress& progress) {
  std::string key = range_key(question);
  if (const Amounting* kept = all_amounts_.find(key)) return *kept;
  if (wanted == Wanted::kMetric) {
    key += metric_name(question.metric);
    if (const Amounting* kept = all_amounts_.find(key)) return *kept;
  }
  if (Result<void> good = suits(question.metric, By::kSite, question.query); !good)
    return std::unexpected(good.error());
  if (Result<void> there = recorded(question.metric, *reading_); !there)
    return std::unexpected(there.error());
  auto found = std::make_shared<Amounted>();
  bool known = question.metric == Metric::kCpu ? from_samples(question, found.get())
                                               : from_index(question, wanted, found.get());
  if (!known)
    if (Result<void> read = from_events(question, progress, found.get()); !read)
      return std::unexpected(read.error());
  found->total = found->unfiltered = sum_of(*found, question.metric);
  return all_amounts_.keep(key, std::move(found));
}

bool Explorer::from_index(const Question& question, Wanted wanted, Amounted* found) {
  const Query& query = question.query;
  Metric metric = question.metric;
  if (!index_ || !is_in_index(metric)) return false;
  if (!Index::suits(counting(query.tally))) return false;
  std::optional<Window> window = window_in_index(query);
  if (!window) return false;
  std::optional<Index::Steps> steps = index_->steps_of(*window);
  if (!steps) return false;
  found->peak = index_->course(query.selection, *window, *steps).peak;
  IndexSums::Rows rows = rows_of_cells(question);
  if (is_about_left(question)) return from_survivors(*window, rows, &found->counted);
  IndexSums::Wanted parts = wanted == Wanted::kAll ? IndexSums::all() : parts_of(metric);
  if (!sums_->sum(query.selection, *window, *steps, parts, rows, &found->counted)) return false;
  if (is_counted(metric)) return true;
  if (metric == Metric::kOverhead)
    return sum_overhead(*index_, sums_.get(), reading_->tables(), query.selection, *window, *steps,
                        rows, &found->timed);
  if (!query.tells_strands()) return lifetimes(*window, rows, &found->timed);
  // Each strand's time is rounded by itself, as a reading has it.
  const CellRows& strands = cell_rows(question, query.tally_of_strands());
  std::vector<uint64_t> ns;
  if (strands.cut) return false;  // A reading has them in an order that depends on single blocks.
  if (!lifetimes(*window, strands.together(), &ns)) return false;
  found->timed.resize(rows_.size());
  StrandSelector selector(reading_->tables(), index_->facts().phases, query);
  for (size_t i = 0; i < ns.size(); ++i) {
    const CellRows::Id& id = strands.rows[i];
    uint32_t row = row_of(id.image, id.stack);
    if (row != kNobody && selector.selects(id.image, id.strand)) found->timed[row] += ns[i];
  }
  return true;
}

bool Explorer::from_survivors(Window window, const IndexSums::Rows& rows,
                              IndexSums::Amounts* sums) const {
  std::optional<Index::Steps> steps = index_->parting_steps_of(window);
  LeftBlocks left;
  if (!steps || !sum_left(*index_, *steps, rows, &left)) return false;
  (*sums)[IndexSums::kLiveBytes] = std::move(left.bytes);
  (*sums)[IndexSums::kLiveBlocks] = std::move(left.blocks);
  return true;
}

bool Explorer::lifetimes(Window window, const IndexSums::Rows& rows, std::vector<uint64_t>* ns) {
  std::optional<Index::Steps> steps = index_->parting_steps_of(window);
  const trace::Tables& tables = reading_->tables();
  if (!steps || !lifetimes_->sum(window, *steps, rows, ns)) return false;
  Reading::TimeSoFar sums;
  for (uint64_t& time : *ns) time = sums.add_lifetime(time, tables.header);
  return true;
}

Result<void> Explorer::from_events(const Question& question, const Progress& progress,
                                   Amounted* found) {
  // Which stacks are meant is not its business, and with them its rows would be the same.
  Query query = question.query;
  query.frames = {};
  auto share = [&](double done) { progress("reading events", done); };
  Result<std::unique_ptr<Reading>> read = Reading::open(path_, query, {share, {}, {}});
  if (!read) return std::unexpected(read.error());
  *found = {};  // What an index that is damaged has begun.
  for (std::vector<uint64_t>& amounts : found->counted) amounts.resize(rows_.size());
  bool timed = !is_counted(question.metric);
  if (timed) found->timed.resize(rows_.size());
  if (is_about_left(question))
    for (size_t part = 0; part < IndexSums::kAmounts; ++part)
      if (part != IndexSums::kLiveBytes && part != IndexSums::kLiveBlocks)
        found->counted[part].clear();
  auto count = [&](const Row& row) {
    uint32_t to = row_of(row.image, row.stack);
    if (to == kNobody) return;
    Amounts amounts = row.amounts;
    for (size_t part = 0; part < IndexSums::kAmounts; ++part)
      if (!found->counted[part].empty())
        found->counted[part][to] += amounts.*IndexSums::part_of(part);
    if (timed) found->timed[to] += amounts.*timed_part(question.metric);
  };
  StrandSelector strands((*read)->tables(), (*read)->accounts().phases(), query);
  (*read)->for_each_row([&](const Row& row) {
    if (strands.selects(row.image, row.strand)) count(row);
  });
  found->peak = (*read)->accounts().peak();
  return {};
}

const CellRows& Explorer::cell_rows(const Question& question, const TallyOptions& options) {
  std::string key = cells_key(question.words);
  for (bool apart : {options.by_thread, options.by_phase, options.by_size})
    key += apart ? 'y' : 'n';
  if (const auto* kept = cell_rows_.find(key)) return **kept;
  return *cell_rows_.keep(key, std::make_unique<const CellRows>(*index_, reading_->tables(),
                                                                question.query.selection, options));
}

bool Explorer::for_each_row(const Question& question,
                            const std::function<void(const Row&)>& visit) {
  const Query& query = question.query;
  TallyOptions options = query.tally_of_strands();
  if (!index_ || !is_in_index(question.metric) || !Index::suits(counting(options))) return false;
  std::optional<Window> window = window_in_index(query);
  if (!window) return false;
  const CellRows& rows = cell_rows(question, options);
  IndexSums::Rows together = rows.together();
  IndexSums::Amounts sums;
  std::vector<uint64_t> timed;
  if (is_about_left(question)) {
    if (!from_survivors(*window, together, &sums)) return false;
  } else {
    std::optional<Index::Steps> steps = index_->steps_of(*window);
    if (!steps || !sums_->sum(query.selection, *window, *steps, IndexSums::all(), together, &sums))
      return false;
    if (question.metric == Metric::kLifetime && (rows.cut || !lifetimes(*window, together, &timed)))
      return false;
    if (question.metric == Metric::kOverhead &&
        !sum_overhead(*index_, sums_.get(), reading_->tables(), query.selection, *window, *steps,
                      together, &timed))
      return false;
  }
  const std::vector<bool> meant = asked_rows(question);
  for (size_t i = 0; i < rows.rows.size(); ++i) {
    const CellRows::Id& id = rows.rows[i];
    if (uint32_t of = row_of(id.image, id.stack); of == kNobody || !meant[of]) continue;
    Row row;
    row.image = id.image;
    row.stack = id.stack;
    row.strand = id.strand;
    row.size_class = id.size_class;
    for (size_t part = 0; part < IndexSums::kAmounts; ++part)
      if (!sums[part].empty()) row.amounts.*IndexSums::part_of(part) = sums[part][i];
    if (!timed.empty()) row.amounts.*timed_part(question.metric) = timed[i];
    const Amounts& a = row.amounts;
    if (value(a, Metric::kCalls) > 0 || a.live_blocks > 0 || a.peak_bytes > 0 || a.lifetime_ns > 0)
      visit(row);
  }
  return true;
}

std::vector<uint64_t> Explorer::self_by_node(const Tree& tree, const Amounted& amounts,
                                             Metric metric) const {
  std::vector<uint64_t> self(tree.tree->nodes().size());
  auto add = [&](const std::vector<uint64_t>& by_row) {
    for (size_t row = 0; row < rows_.size(); ++row)
      if (tree.node_of_row[row] != kNobody) self[tree.node_of_row[row]] += by_row[row];
  };
  IndexSums::Wanted parts = parts_of(metric);
  if (!amounts.timed.empty()) add(amounts.timed);
  for (size_t part = 0; part < IndexSums::kAmounts; ++part)
    if (parts[part]) add(amounts.counted[part]);
  return self;
}

}  // namespace malloscope::analyze
