// SPDX-License-Identifier: Apache-2.0
// Opens a trace, and tells which rows a question means. What it asks of them is answered part by
// part (question_parts.h): by explorer_amounts.cc, explorer_frames.cc and, where only samples or
// cells tell, explorer_cpu.cc and explorer_cells.cc; whole views by explorer_views.cc.

#include "analyze/explorer.h"

#include <utility>

#include "analyze/question_parts.h"
#include "analyze/row_selector.h"
#include "analyze/symbol_naming.h"

namespace malloscope::analyze {
namespace {

// What sums may keep. All that a server needs for a hundred million events of a million stacks is
// to fit into 2 GiB.
constexpr size_t kBytesOfSums = size_t{512} << 20, kBytesOfLifetimes = size_t{256} << 20;

}  // namespace

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
  // If it turns out to be damaged it is gone, and another one takes its place.
  for (int attempt = 0; attempt < 2 && !explorer->reading_; ++attempt) {
    std::optional<IndexedTrace> opened =
        open_indexed(path, *overview, IndexAs::kFileOrMemory, reading);
    if (!opened) break;
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

std::optional<Window> Explorer::window_in_index(const Query& query) const {
  if (!index_ || (query.selection.image && reading_->tables().images.size() > 1))
    return std::nullopt;
  if ((query.from && query.from->needs_peak()) || (query.to && query.to->needs_peak()))
    return std::nullopt;
  Result<Window> window = window_of(query, overview_, {});
  return window ? std::optional(*window) : std::nullopt;
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

}  // namespace malloscope::analyze
