// SPDX-License-Identifier: Apache-2.0
#include "analyze/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace malloscope::analyze {
namespace {

// In JSON a frame is its function, with its place beside it.
std::string_view name_of(const Column& column) {
  return column.key == "frame" ? "function" : std::string_view(column.key);
}

// What stands above a column is what a reader types; its key is what the JSON calls it.
size_t index_of(const Table& table, const std::string& key) {
  for (size_t i = 0; i < table.columns.size(); ++i)
    if (table.columns[i].key == key || name_of(table.columns[i]) == key) return i;
  for (size_t i = 0; i < table.columns.size(); ++i)
    if (table.columns[i].title == key) return i;
  return table.columns.size();
}

// Numbers heaviest first, words in alphabetical order, nothing last.
bool comes_before(const Cell& a, const Cell& b) {
  if (a.index() != b.index()) return a.index() > b.index();
  if (const auto* n = std::get_if<uint64_t>(&a)) return *n > std::get<uint64_t>(b);
  if (const auto* n = std::get_if<int64_t>(&a)) return *n > std::get<int64_t>(b);
  if (const auto* n = std::get_if<double>(&a)) return *n > std::get<double>(b);
  if (const auto* n = std::get_if<Rate>(&a)) return n->amount > std::get<Rate>(b).amount;
  if (const auto* n = std::get_if<Share>(&a)) return n->part > std::get<Share>(b).part;
  if (const auto* s = std::get_if<std::string>(&a)) return *s < std::get<std::string>(b);
  if (const auto* f = std::get_if<NamedFrame>(&a))
    return f->function < std::get<NamedFrame>(b).function;
  return false;
}

std::string known_keys(const Answer& answer) {
  std::string text;
  std::set<std::string> seen;
  for (const Table& table : answer.tables)
    for (const Column& column : table.columns)
      if (std::string name(name_of(column)); seen.insert(name).second)
        text += (text.empty() ? "" : ", ") + name;
  return text;
}

void arrange(Table* table, const std::vector<std::string>& keys) {
  std::vector<size_t> order;
  for (const std::string& key : keys)
    if (size_t i = index_of(*table, key); i < table->columns.size()) order.push_back(i);
  size_t shown = order.size();
  if (shown == 0) return;
  for (size_t i = 0; i < table->columns.size(); ++i)
    if (std::find(order.begin(), order.end(), i) == order.end()) order.push_back(i);
  std::vector<Column> columns;
  for (size_t i = 0; i < order.size(); ++i) {
    columns.push_back(table->columns[order[i]]);
    // What a row is about stays, wherever it is asked for.
    Column::Kind kind = columns.back().kind;
    columns.back().may_go = false;
    columns.back().asked = true;
    // Who asks for it wants to know it again.
    if (i < shown && columns.back().title.empty()) columns.back().title = columns.back().key;
    bool stays =
        kind == Column::Kind::kFrame || (kind == Column::Kind::kStack && columns.back().shown);
    columns.back().shown = i < shown || stays;
  }
  for (TableRow& row : table->rows) {
    row.cells.resize(order.size());
    std::vector<Cell> cells;
    for (size_t i : order) cells.push_back(std::move(row.cells[i]));
    row.cells = std::move(cells);
  }
  table->columns = std::move(columns);
}

}  // namespace

Result<void> shape(Answer* answer, const Shape& wanted) {
  auto known = [&](const std::string& key) {
    return std::any_of(answer->tables.begin(), answer->tables.end(), [&](const Table& table) {
      return index_of(table, key) < table.columns.size();
    });
  };
  for (const std::string& key : wanted.columns)
    if (!known(key))
      return fail(
          fmt::format("--columns: there is no '{}' here; there are {}", key, known_keys(*answer)));
  if (!wanted.sort.empty() && !known(wanted.sort))
    return fail(fmt::format("--sort: there is no '{}' here; there are {}", wanted.sort,
                            known_keys(*answer)));
  for (Table& table : answer->tables) {
    size_t by = wanted.sort.empty() ? table.columns.size() : index_of(table, wanted.sort);
    if (table.list && by < table.columns.size())
      std::stable_sort(table.rows.begin(), table.rows.end(),
                       [by](const TableRow& a, const TableRow& b) {
                         if (by >= a.cells.size() || by >= b.cells.size())
                           return a.cells.size() > b.cells.size();
                         return comes_before(a.cells[by], b.cells[by]);
                       });
    if (table.list && wanted.top != 0 && table.rows.size() > wanted.top) {
      table.left_out += table.rows.size() - wanted.top;
      table.rows.resize(wanted.top);
    }
    if (!wanted.columns.empty()) arrange(&table, wanted.columns);
  }
  return {};
}

}  // namespace malloscope::analyze
