// SPDX-License-Identifier: Apache-2.0
// What is told of the cells of the index, as they are: which of them a question is about, how they
// went through the time, and their blocks.

#include <fmt/format.h>

#include <utility>

#include "analyze/explorer.h"
#include "analyze/question_parts.h"
#include "analyze/strand_selector.h"

namespace malloscope::analyze {

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
  add_words(&asked.key, question.words.only_under);
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

SiteBlocks::Cells Explorer::cells_of_rows(const Question& question, const std::vector<bool>& rows) {
  const Query& query = question.query;
  const IndexSums::Rows asked = rows_of_cells(question);
  SiteBlocks::Cells cells = {{}, query.tally.min_size, query.tally.max_size};
  cells.wants.resize(asked.of_cell.size());
  auto counts = [&](uint32_t row) { return row != kNobody && rows[row]; };
  for (size_t i = 0; i < cells.wants.size(); ++i) {
    if (counts(asked.of_cell[i])) cells.wants[i] = SiteBlocks::Cells::kAll;
    if (asked.cut && counts(asked.cut->row_of_cell[i])) cells.wants[i] = SiteBlocks::Cells::kSome;
  }
  return cells;
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

}  // namespace malloscope::analyze
