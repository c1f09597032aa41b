// SPDX-License-Identifier: Apache-2.0
// A question has three parts, each kept apart since one mostly changes alone: which range, threads
// and sizes (amounts of all rows), which stacks (a bit for each row), and which frames of them are
// shown (the tree and the groups).

#include "analyze/explorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analyze/folded_tree.h"
#include "analyze/index_life_sums.h"
#include "analyze/index_overhead.h"
#include "analyze/row_selector.h"
#include "analyze/symbol_naming.h"

namespace malloscope::analyze {
namespace {

// What sums may keep. All that a server needs for a hundred million events of a million stacks is
// to fit into 2 GiB.
constexpr size_t kBytesOfSums = size_t{512} << 20, kBytesOfLifetimes = size_t{256} << 20;

// Words can have anything in them but this.
constexpr char kEnd = '\0';

void add(std::string* key, const std::string& word) { *key += word + kEnd; }
void add(std::string* key, const std::vector<std::string>& words) {
  for (const std::string& word : words) add(key, word);
  *key += kEnd;
}

std::string cells_key(const QueryWords& words) {
  std::string key;
  if (words.selection.pid) key += std::to_string(*words.selection.pid);
  if (words.selection.image) key += 'i' + std::to_string(raw(*words.selection.image));
  key += kEnd;
  add(&key, words.threads), add(&key, words.phases), add(&key, words.min_size),
      add(&key, words.max_size);
  return key;
}

bool is_counted(Metric metric) {
  return metric != Metric::kLifetime && metric != Metric::kOverhead &&
         metric != Metric::kAllocatorTime && metric != Metric::kCpu;
}

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

std::string range_key(const Explorer::Question& question) {
  std::string key = cells_key(question.words);
  add(&key, question.words.from), add(&key, question.words.to), add(&key, question.words.at);
  key += question.query.tally.only_made_in_window ? 'm' : ' ';
  if (!is_counted(question.metric)) key += metric_name(question.metric);
  return key;
}

std::string stacks_key(const QueryWords& words) {
  std::string key;
  add(&key, words.modules), add(&key, words.focus), add(&key, words.ignore);
  add(&key, words.types), add(&key, words.where);
  return key;
}

std::string frames_key(const QueryWords& words) {
  std::string key;
  add(&key, words.hide), add(&key, words.only_under), add(&key, words.renames);
  add(&key, words.cut_above), add(&key, words.cut_below), add(&key, words.folds);
  add(&key, words.rules);
  key += words.full_names ? 'f' : ' ';
  return key;
}

bool is_about_all_cells(const Query& query) {
  return query.selection.is_all() && !query.tells_strands() && query.tally.min_size == 0 &&
         query.tally.max_size == UINT64_MAX;
}

// What the question says of frames alone.
Query about_frames(const Query& query) {
  Query frames = query;
  frames.threads.clear();
  frames.phases.clear();
  frames.frames = {};
  frames.frames.hide = query.frames.hide;
  frames.frames.only_under = query.frames.only_under;
  return frames;
}

// Without what is had in other ways: sizes that are asked for, and what some metrics ask for beyond
// what every tally counts.
TallyOptions counting(TallyOptions options) {
  options.details = options.overhead = false;
  options.min_size = 0;
  options.max_size = UINT64_MAX;
  return options;
}

// A reading's accounts are others as long as this lives, whatever is thrown.
class OtherAccounts {
 public:
  OtherAccounts(Reading* reading, std::unique_ptr<Accounts> others)
      : reading_(*reading), own_(reading->exchange(std::move(others))) {}
  ~OtherAccounts() { reading_.exchange(std::move(own_)); }
  OtherAccounts(const OtherAccounts&) = delete;

 private:
  Reading& reading_;
  std::unique_ptr<Accounts> own_;
};

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

Result<Explorer::Question> Explorer::Question::make(const QueryWords& words, Metric metric) {
  Question question;
  question.words = words;
  question.metric = metric;
  Result<Query> query = query_of(words);
  if (!query) return std::unexpected(query.error());
  question.query = std::move(*query);
  ask_for(metric, &question.query);
  return question;
}

Result<std::unique_ptr<Explorer>> Explorer::open(const std::string& path, const Query& query,
                                                 const Progress& progress) {
  Result<trace::Overview> overview = trace::overview(path);
  if (!overview) return std::unexpected(overview.error());
  std::unique_ptr<Explorer> explorer(new Explorer);
  explorer->path_ = path;
  explorer->overview_ = *overview;
  auto reading = [&](double share) { progress("reading events", share); };
  auto naming = [&](double share) { progress("looking up names", share); };
  if (std::optional<IndexedTrace> opened =
          open_indexed(path, *overview, IndexAs::kFileOrMemory, reading)) {
    if (auto accounts = opened->index->answer(opened->tables, {}, {}, {})) {
      auto names = std::make_unique<SymbolNaming>(query, opened->tables.names, naming);
      opened->tables.names = decltype(opened->tables.names)();
      explorer->index_ = std::move(opened->index);
      explorer->reading_ = std::make_unique<Reading>(path, std::move(opened->tables),
                                                     std::move(accounts), std::move(names));
    }
  }
  if (!explorer->reading_) {
    Result<std::unique_ptr<Reading>> read = Reading::open(path, query, {reading, {}, naming});
    if (!read) return std::unexpected(read.error());
    explorer->reading_ = std::move(*read);
  }
  for (const trace::Image& image : explorer->reading_->tables().images)
    explorer->row_of_.emplace_back(image.stacks.bound(), kNobody);
  explorer->add_cpu();
  explorer->reading_->for_each_row([&](const Row& row) {
    std::vector<uint32_t>& rows = explorer->row_of_[raw(row.image) - 1];
    if (raw(row.stack) >= rows.size()) rows.resize(raw(row.stack) + size_t{1}, kNobody);
    if (rows[raw(row.stack)] != kNobody) return;  // What nobody knows the stack of may be of both.
    rows[raw(row.stack)] = static_cast<uint32_t>(explorer->rows_.size());
    explorer->rows_.push_back({row.image, row.stack});
  });
  for (const CpuSamples::Sample& sample : explorer->cpu_->all())
    explorer->row_of_sample_.push_back(explorer->row_of(sample.image, sample.stack));
  explorer->reading_->frames();  // Names now, while somebody sees how far that is.
  if (explorer->index_) {
    for (const IndexCell& cell : explorer->index_->cells())
      explorer->row_of_cell_.push_back(explorer->row_of(cell.image, cell.stack));
    explorer->sums_ = std::make_unique<IndexSums>(explorer->index_.get(), kBytesOfSums);
    explorer->lifetimes_ = std::make_unique<LifetimeSums>(
        *explorer->index_, explorer->reading_->tables(), kBytesOfLifetimes);
  }
  return explorer;
}

void Explorer::add_cpu() {
  const trace::Tables& tables = reading_->tables();
  cpu_ = std::make_unique<CpuSamples>(tables);
  std::unique_ptr<Accounts> accounts = reading_->exchange(nullptr);
  accounts->tally_to_restore()->add_cpu(cpu_rows(*cpu_, tables, {}, {}, {}));
  reading_->exchange(std::move(accounts));
}

uint32_t Explorer::row_of(ImageId image, StackId stack) const {
  if (raw(image) == 0 || raw(image) > row_of_.size()) return kNobody;
  const std::vector<uint32_t>& rows = row_of_[raw(image) - 1];
  return raw(stack) < rows.size() ? rows[raw(stack)] : kNobody;
}

void Explorer::make_room() {
  constexpr size_t kManyRows = 100'000;
  if (rows_.size() < kManyRows) return;
  all_amounts_.clear();
  amounts_.clear();
  cell_sites_.clear();
  cell_rows_.clear();
  folded_blocks_.clear();
}

bool Explorer::prepare() {
  return (sums_ && sums_->prepare()) || (lifetimes_ && lifetimes_->prepare());
}

IndexSums::Rows Explorer::rows_of_cells(const Question& question) {
  const Query& query = question.query;
  if (is_about_all_cells(query)) return {row_of_cell_, rows_.size()};
  auto as_rows = [&](const AskedCells& asked) {
    return IndexSums::Rows{asked.rows, rows_.size(), asked.cut ? &*asked.cut : nullptr};
  };
  std::string key = cells_key(question.words);
  if (const AskedCells* kept = some_cells_.find(key)) return as_rows(*kept);
  unsigned smallest = size_class(query.tally.min_size);
  unsigned largest = size_class(query.tally.max_size);
  StrandSelector strands(reading_->tables(), index_->facts().phases, query);
  AskedCells asked = {row_of_cell_, {}};
  for (size_t i = 0; i < asked.rows.size(); ++i) {
    const IndexCell& cell = index_->cells()[i];
    const trace::Image& image = reading_->tables().image(cell.image);
    bool counts = query.selection.contains(image) && cell.size_class >= smallest &&
                  cell.size_class <= largest && strands.selects(cell.image, cell.strand);
    if (!counts) asked.rows[i] = kNobody;
  }
  asked.cut = cut_classes(*index_, query.tally.min_size, query.tally.max_size, &asked.rows);
  return as_rows(some_cells_.keep(key, std::move(asked)));
}

std::optional<Window> Explorer::window_in_index(const Query& query) const {
  if (!index_ || (query.selection.image && reading_->tables().images.size() > 1))
    return std::nullopt;
  if ((query.from && query.from->needs_peak()) || (query.to && query.to->needs_peak()))
    return std::nullopt;
  Result<Window> window = window_of(query, overview_, {});
  return window ? std::optional(*window) : std::nullopt;
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

bool Explorer::with_leaks(const Query& query, const std::function<void(Reading*)>& ask) {
  std::optional<Window> window = window_in_index(query);
  if (!window) return false;
  TallyOptions tally = query.tally_of_strands();
  auto accounts = index_->leaks(reading_->tables(), query.selection, *window, tally);
  if (!accounts) return false;
  OtherAccounts others(reading_.get(), std::move(accounts));
  ask(reading_.get());
  return true;
}

bool Explorer::with_view(View* view, const QueryWords& words, const Query& query,
                         const std::function<void(Reading*)>& ask) {
  std::optional<Window> window = window_in_index(query);
  if (!window) return false;
  std::optional<Index::Steps> steps = index_->parting_steps_of(*window);
  if (!steps) return false;
  const trace::Tables& tables = reading_->tables();
  TallyOptions tally = query.tally_of_strands();
  std::unique_ptr<Accounts> accounts = index_->totals(tables, query.selection, *window, tally);
  if (!accounts) return false;
  IndexedWindow from = {
      *index_, *sums_, *window, *steps, *reading_, query, index_->selected(tables, query.selection),
      {},      {}};
  AskedCells asked = asked_cells({words, query, Metric::kPeak});
  for (size_t i = 0; i < asked.rows.size(); ++i)
    from.asked_cells.push_back(asked.rows[i] != kNobody ||
                               (asked.cut && asked.cut->row_of_cell[i] != kNobody));
  from.cell_sites = [&] {
    std::string key = frames_key(words);
    const auto* kept = cell_sites_.find(key);
    auto all = kept ? *kept
                    : cell_sites_.keep(key, std::make_shared<CellSites>(*index_, reading_.get(),
                                                                        about_frames(query)));
    return std::make_shared<const CellSites>(std::move(all), from.asked_cells);
  };
  OtherAccounts others(reading_.get(), std::move(accounts));
  if (!view->restore(from)) return false;
  ask(reading_.get());
  return true;
}

uint64_t Explorer::blocks_of(const SiteBlocks::Cells& cells) {
  if (blocks_of_cell_.empty()) {
    blocks_of_cell_.resize(index_->cells().size());
    if (IndexBlockReader* whole = index_->blocks().whole())
      whole->for_each(index_->usual_sizes(), [&](const IndexEntry& entry) {
        blocks_of_cell_[entry.cell] = entry.allocations + entry.reallocations;
      });
  }
  uint64_t sum = 0;
  for (size_t i = 0; i < cells.wants.size(); ++i)
    if (cells.wants[i] != SiteBlocks::Cells::kNone) sum += blocks_of_cell_[i];
  return sum;
}

std::shared_ptr<const SiteBlocks::Folded> Explorer::folded_blocks(const SiteBlocks::Cells& cells,
                                                                  Index::Steps steps) {
  std::string key(cells.wants.begin(), cells.wants.end());
  key += fmt::format("{} {}", cells.min_size, cells.max_size);
  const auto* kept = folded_blocks_.find(key);
  if (!kept) kept = &folded_blocks_.keep(key, std::make_shared<SiteBlocks::Folded>());
  if ((*kept)->cover(*index_, cells, steps)) return *kept;
  folded_blocks_.clear();
  return nullptr;
}

template <typename Visit>
void Explorer::for_each_selected(const Query& query, Visit&& visit) const {
  const trace::Tables& tables = reading_->tables();
  StrandSelector strands(tables, cpu_->phases(), query);
  std::vector<bool> images;
  for (const trace::Image& image : tables.images) images.push_back(query.selection.contains(image));
  for (size_t i = 0; i < row_of_sample_.size(); ++i) {
    const CpuSamples::Sample& sample = cpu_->all()[i];
    if (images[raw(sample.image) - 1] && strands.selects(sample.image, sample.strand))
      visit(row_of_sample_[i], sample);
  }
}

std::optional<Window> Explorer::window_of_cpu(const Query& query) const {
  if ((query.from && query.from->needs_peak()) || (query.to && query.to->needs_peak()))
    return std::nullopt;
  Result<Window> window = window_of(query, overview_, {});
  return window ? std::optional(*window) : std::nullopt;
}

bool Explorer::with_cpu(const Query& query, const std::function<void(Reading*)>& ask) {
  std::optional<Window> window = window_of_cpu(query);
  if (!window) return false;
  OtherAccounts others(reading_.get(), cpu_accounts(*cpu_, reading_->tables(), query.selection,
                                                    *window, query.tally_of_strands()));
  ask(reading_.get());
  return true;
}

bool Explorer::from_samples(const Question& question, Amounted* found) const {
  std::optional<Window> window = window_of_cpu(question.query);
  if (!window) return false;
  found->timed.resize(rows_.size());
  found->samples.resize(rows_.size());
  for_each_selected(question.query, [&](uint32_t row, const CpuSamples::Sample& sample) {
    if (!CpuSamples::is_in(*window, sample.tick)) return;
    found->timed[row] += sample.nanoseconds;
    ++found->samples[row];
  });
  return true;
}

std::vector<double> Explorer::cpu_course(const Question& question, size_t groups,
                                         const std::function<uint32_t(size_t row)>& group_of_row) {
  if (!index_ || row_of_sample_.empty()) return {};
  const std::vector<bool> meant = asked_rows(question);
  std::vector<uint32_t> group_of(rows_.size(), kNobody);
  for (size_t row = 0; row < rows_.size(); ++row)
    if (meant[row]) group_of[row] = group_of_row(row);
  std::vector<double> course(groups * kSlices);
  const double ns_per_tick = reading_->tables().header.ns_per_tick;
  for_each_selected(question.query, [&](uint32_t row, const CpuSamples::Sample& sample) {
    if (group_of[row] == kNobody) return;
    CpuSamples::spread(sample, index_->facts().times.cuts, ns_per_tick,
                       [&, at = size_t{group_of[row]} * kSlices](size_t slice, double ns) {
                         course[at + slice] += ns;
                       });
  });
  return course;
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

const std::vector<bool>& Explorer::asked(const Question& question) {
  std::string key = stacks_key(question.words);
  if (const std::vector<bool>* kept = asked_.find(key)) return *kept;
  Query query = question.query;
  query.threads.clear();
  query.phases.clear();
  query.frames.hide.clear();
  query.frames.only_under.clear();
  RowSelector selector(reading_.get(), query);
  for (const trace::Image& image : reading_->tables().images) selector.expect_all(image.id);
  std::vector<bool> meant(rows_.size());
  Row row;
  for (size_t i = 0; i < rows_.size(); ++i) {
    row.image = rows_[i].image;
    row.stack = rows_[i].stack;
    meant[i] = selector.selects(row);
  }
  return asked_.keep(key, std::move(meant));
}

Result<Explorer::Amounting> Explorer::amounts(const Question& question, Wanted wanted,
                                              const Progress& progress) {
  Result<Amounting> all = all_amounts(question, wanted, progress);
  FrameFilter stacks = question.query.frames;
  stacks.hide.clear();
  if (!all || stacks.empty()) return all;
  std::string key = range_key(question) + stacks_key(question.words);
  add(&key, question.words.only_under);
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

bool Explorer::is_about_all(const Question& question) {
  FrameFilter stacks = question.query.frames;
  stacks.hide.clear();
  return stacks.empty() && is_about_all_cells(question.query);
}

std::vector<bool> Explorer::asked_rows(const Question& question) {
  std::vector<bool> rows = asked(question);
  if (question.query.frames.only_under.empty()) return rows;
  Treeing under = tree(question);
  for (size_t row = 0; row < rows.size(); ++row)
    if (under->node_of_row[row] == kNobody) rows[row] = false;
  return rows;
}

Explorer::AskedCells Explorer::asked_cells(const Question& question) {
  IndexSums::Rows rows = rows_of_cells(question);
  AskedCells asked = {rows.of_cell, {}};
  if (rows.cut) asked.cut = *rows.cut;
  const std::vector<bool> meant = asked_rows(question);
  auto keep_meant = [&](std::vector<uint32_t>* of_cell) {
    for (uint32_t& row : *of_cell)
      if (row != kNobody && !meant[row]) row = kNobody;
  };
  keep_meant(&asked.rows);
  if (asked.cut) keep_meant(&asked.cut->row_of_cell);
  return asked;
}

namespace {
const std::string kNoGroups = "all";
}

Explorer::CurvesQuestion Explorer::begin_curves(const Question& question, const std::string& by,
                                                size_t groups) {
  CurvesQuestion asked;
  asked.key = cells_key(question.words) + stacks_key(question.words);
  add(&asked.key, question.words.only_under);
  if (by != kNoGroups) asked.key += frames_key(question.words);
  asked.key += by;
  asked.groups = groups;
  std::lock_guard lock(curves_mutex_);
  if (const auto* kept = curves_.find(asked.key)) asked.answer = *kept;
  return asked;
}

Explorer::CurvesQuestion Explorer::ask_curves(
    const Question& question, const std::string& by, size_t groups,
    const std::function<uint32_t(size_t row)>& group_of_row) {
  CurvesQuestion asked = begin_curves(question, by, groups);
  if (asked.answer) return asked;
  std::vector<uint32_t> group_of(rows_.size());
  for (size_t row = 0; row < rows_.size(); ++row) group_of[row] = group_of_row(row);
  AskedCells cells = asked_cells(question);
  auto put_together = [&](std::vector<uint32_t>* of_cell) {
    for (uint32_t& row : *of_cell) {
      if (row == kNobody) continue;
      row = group_of[row];
      asked.has_all &= row != kNobody;
    }
  };
  put_together(&cells.rows);
  if (cells.cut) put_together(&cells.cut->row_of_cell);
  asked.group_of_cell = std::move(cells.rows);
  asked.cut = std::move(cells.cut);
  return asked;
}

Explorer::CurvesQuestion Explorer::ask_curves_of_cells(
    const Question& question, const std::string& by, size_t groups,
    const std::function<uint32_t(const IndexCell&)>& group_of) {
  CurvesQuestion asked = begin_curves(question, by, groups);
  if (asked.answer) return asked;
  AskedCells cells = asked_cells(question);
  auto put_together = [&](std::vector<uint32_t>* of_cell) {
    for (size_t i = 0; i < of_cell->size(); ++i)
      if (uint32_t& row = (*of_cell)[i]; row != kNobody) row = group_of(index_->cells()[i]);
  };
  put_together(&cells.rows);
  if (cells.cut) put_together(&cells.cut->row_of_cell);
  asked.group_of_cell = std::move(cells.rows);
  asked.cut = std::move(cells.cut);
  return asked;
}

Explorer::CurvesQuestion Explorer::ask_curve(const Question& question) {
  return ask_curves(question, kNoGroups, 1, [](size_t) { return 0; });
}

std::shared_ptr<const IndexCurves> Explorer::curves(const CurvesQuestion& question) const {
  constexpr size_t kMostToKeep = 4'000'000;  // Numbers.
  if (question.answer) return question.answer;
  auto found = std::make_shared<IndexCurves>();
  IndexSums::Rows groups = {question.group_of_cell, question.groups,
                            question.cut ? &*question.cut : nullptr};
  if (!find_curves(*index_, groups, found.get())) return nullptr;
  if (found->live_bytes.size() > kMostToKeep) return found;
  std::lock_guard lock(curves_mutex_);
  curves_.keep(question.key, found);
  return found;
}

Explorer::Treeing Explorer::tree(const Question& question) {
  std::string key = frames_key(question.words);
  if (const Treeing* kept = trees_.find(key)) return *kept;
  auto made = std::make_shared<Tree>();
  made->node_of_row.assign(rows_.size(), kNobody);
  if (const FrameFilter& frames = question.query.frames;
      !frames.hide.empty() && frames.only_under.empty() && !question.query.rules.reshape()) {
    Question whole = question;
    whole.words.hide.clear();
    whole.query.frames.hide.clear();
    Treeing all = tree(whole);
    auto folded = std::make_shared<FoldedTree>(
        *all->tree, *all->children,
        [&](const Symbol& symbol) { return matches_any(frames.hide, symbol.full); });
    for (size_t row = 0; row < rows_.size(); ++row)
      if (uint32_t node = all->node_of_row[row]; node != kNobody)
        made->node_of_row[row] = folded->node_of(node);
    made->children = std::make_unique<NodeChildren>(*folded);
    made->tree = std::move(folded);
    return trees_.keep(key, std::move(made));
  }
  TreeOptions options;
  options.visit = [&](const Row& row, uint32_t node) {
    made->node_of_row[row_of(row.image, row.stack)] = node;
  };
  // Only its shape is kept; amounts are those of a question.
  auto whole = std::make_shared<FunctionTree>(
      CallTree(reading_.get(), about_frames(question.query), options));
  const std::vector<uint32_t> numbers = whole->renumber();
  for (uint32_t& node : made->node_of_row)
    if (node != kNobody) node = numbers[node];
  made->tree = std::move(whole);
  made->children = std::make_unique<NodeChildren>(*made->tree);
  return trees_.keep(key, std::move(made));
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

Explorer::Grouping Explorer::groups(const Question& question, By by) {
  std::string key = frames_key(question.words) + std::to_string(static_cast<int>(by));
  if (const Grouping* kept = groups_.find(key)) return *kept;
  auto made = std::make_shared<Groups>();
  made->group_of_row.assign(rows_.size(), kNobody);
  Query query = about_frames(question.query);
  RowGroups groups(reading_.get(), query, by);
  Row row;
  for (size_t i = 0; i < rows_.size(); ++i) {
    row.image = rows_[i].image;
    row.stack = rows_[i].stack;
    if (std::optional<size_t> group = groups.of(row))
      made->group_of_row[i] = static_cast<uint32_t>(*group);
  }
  made->groups = groups.take();
  return groups_.keep(key, std::move(made));
}

}  // namespace malloscope::analyze
