// SPDX-License-Identifier: Apache-2.0
#include "analyze/cell_rows.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

namespace malloscope::analyze {

CellRows::CellRows(const Index& index, const trace::Tables& tables, Selection selection,
                   const TallyOptions& options) {
  const std::vector<IndexCell>& cells = index.cells();
  unsigned smallest = size_class(options.min_size), largest = size_class(options.max_size);
  of_cell.assign(cells.size(), kNobody);
  // Most stacks have one row: it is found by the stack, the others of it by all that they are.
  std::vector<std::vector<uint32_t>> first_of(tables.images.size());
  struct Key {
    uint32_t first;  // Of the stack.
    StrandId strand;
    unsigned size_class;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      uint64_t h = uint64_t{key.first} << 32 ^ uint64_t { raw(key.strand) } << 7 ^ key.size_class;
      h *= 0x9e3779b97f4a7c15;
      return h ^ h >> 29;
    }
  };
  std::unordered_map<Key, uint32_t, KeyHash> others;
  for (size_t i = 0; i < cells.size(); ++i) {
    const IndexCell& cell = cells[i];
    if (cell.size_class < smallest || cell.size_class > largest ||
        !selection.contains(tables.image(cell.image)))
      continue;
    Id id = {cell.image, cell.stack, options.told_apart(cell.strand),
             options.by_size ? cell.size_class : 0};
    std::vector<uint32_t>& firsts = first_of[raw(cell.image) - 1];
    if (raw(cell.stack) >= firsts.size())
      firsts.resize(std::max(raw(cell.stack) + size_t{1}, firsts.size() * 2), kNobody);
    uint32_t& first = firsts[raw(cell.stack)];
    auto next = static_cast<uint32_t>(rows.size());
    if (first == kNobody) first = next;
    uint32_t row = first;
    if (row != next && (rows[row].strand != id.strand || rows[row].size_class != id.size_class))
      row = others.try_emplace({first, id.strand, id.size_class}, next).first->second;
    if (row == next) rows.push_back(id);
    of_cell[i] = row;
  }

  // As they were met, they are in the order of a tally, but for images; one that keeps nothing but
  // stacks apart has them by number.
  bool by_number = !options.by_thread && !options.by_phase && !options.by_size;
  std::vector<uint32_t> order(rows.size()), place(rows.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, [&](uint32_t row) {
    return std::pair(raw(rows[row].image), by_number ? raw(rows[row].stack) : 0);
  });
  std::vector<Id> met = std::move(rows);
  rows.clear();
  for (uint32_t row : order) {
    place[row] = static_cast<uint32_t>(rows.size());
    rows.push_back(met[row]);
  }
  for (uint32_t& row : of_cell)
    if (row != kNobody) row = place[row];
  cut = cut_classes(index, options.min_size, options.max_size, &of_cell);
}

std::optional<IndexSums::CutSizes> cut_classes(const Index& index, uint64_t least, uint64_t most,
                                               std::vector<uint32_t>* of_cell) {
  auto is_cut = [&](unsigned of) { return cuts_class(least, most, of); };
  if (!is_cut(size_class(least)) && !is_cut(size_class(most))) return std::nullopt;
  IndexSums::CutSizes cut = {least, most, *of_cell};
  for (size_t i = 0; i < of_cell->size(); ++i) {
    const IndexCell& cell = index.cells()[i];
    if (!is_cut(cell.size_class))
      cut.row_of_cell[i] = IndexSums::kNobody;
    else if (!cut.has(cell.usual_size))
      (*of_cell)[i] = IndexSums::kNobody;
  }
  return cut;
}

}  // namespace malloscope::analyze
