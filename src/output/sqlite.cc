// SPDX-License-Identifier: Apache-2.0
// A database with the tables of igprof-analyse --sqlite (files, symbols, mainrows, parents,
// children, summary), which igprof-navigator and the queries people have written for it know, and
// one more, amounts, with all metrics. It is made in memory and written as one piece: its size
// is that of the program's functions, not of its stacks.

#include <fmt/format.h>
#include <sqlite3.h>

#include <memory>
#include <span>
#include <unordered_map>

#include "output/igprof_table.h"
#include "output/words.h"

namespace malloscope::output {
namespace {

constexpr const char* kTables = R"(
CREATE TABLE summary (counter TEXT, total_count INTEGER, total_freq INTEGER, tick_period REAL);
CREATE TABLE files (id INTEGER, name TEXT);
CREATE TABLE symbols (id INTEGER, name TEXT,
  filename_id INTEGER CONSTRAINT file_id_exists REFERENCES files(id));
CREATE TABLE mainrows (id INTEGER PRIMARY KEY,
  symbol_id INTEGER CONSTRAINT symbol_id_exists REFERENCES symbols(id),
  self_count INTEGER, cumulative_count INTEGER, kids INTEGER, self_calls INTEGER,
  total_calls INTEGER, self_paths INTEGER, total_paths INTEGER, pct REAL);
CREATE TABLE children (self_id INTEGER CONSTRAINT self_exists REFERENCES mainrows(id),
  parent_id INTEGER CONSTRAINT parent_exists REFERENCES mainrows(id),
  from_parent_count INTEGER, from_parent_calls INTEGER, from_parent_paths INTEGER, pct REAL);
CREATE TABLE parents (self_id INTEGER CONSTRAINT self_exists REFERENCES mainrows(id),
  child_id INTEGER CONSTRAINT child_exists REFERENCES mainrows(id),
  to_child_count INTEGER, to_child_calls INTEGER, to_child_paths INTEGER, pct REAL);
)";
constexpr const char* kIndexes = R"(
COMMIT;
CREATE UNIQUE INDEX fileIndex ON files (id);
CREATE UNIQUE INDEX symbolsIndex ON symbols (id);
CREATE INDEX selfCountIndex ON mainrows(self_count);
CREATE INDEX totalCountIndex ON mainrows(cumulative_count);
)";

// CREATE TABLE amounts (..., self_allocations INTEGER, ..., cumulative_allocations INTEGER, ...);
std::string table_of_amounts(std::span<const AmountField> fields) {
  std::string sql =
      "CREATE TABLE amounts (mainrow_id INTEGER PRIMARY KEY REFERENCES mainrows(id), module TEXT, "
      "line INTEGER";
  for (const char* whose : {"self", "cumulative"})
    for (const AmountField& field : fields)
      sql += fmt::format(", {}_{} INTEGER", whose, field.name);
  return sql + "); BEGIN;";
}

class Database {
 public:
  Database() { check(sqlite3_open(":memory:", &db_)); }
  ~Database() { sqlite3_close_v2(db_); }
  Database(const Database&) = delete;

  void check(int code) {
    if (code != SQLITE_OK && code != SQLITE_DONE && error_.empty()) error_ = sqlite3_errmsg(db_);
  }
  void run(const char* sql) { check(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr)); }
  sqlite3* handle() { return db_; }

  Result<void> write(Sink* sink) {
    sqlite3_int64 size = 0;
    unsigned char* bytes = sqlite3_serialize(db_, "main", &size, 0);
    if (!bytes && error_.empty()) error_ = "out of memory";
    if (!error_.empty()) return fail(fmt::format("the database could not be made: {}", error_));
    sink->write({reinterpret_cast<const char*>(bytes), static_cast<size_t>(size)});
    sqlite3_free(bytes);
    return {};
  }

 private:
  sqlite3* db_ = nullptr;
  std::string error_;
};

// INSERT INTO a table, a row at a time.
class Insert {
 public:
  Insert(Database* database, const char* table, int columns) : db_(*database) {
    std::string sql = fmt::format("INSERT INTO {} VALUES (?", table);
    for (int i = 1; i < columns; ++i) sql += ",?";
    db_.check(sqlite3_prepare_v2(db_.handle(), (sql + ")").c_str(), -1, &statement_, nullptr));
  }
  ~Insert() { sqlite3_finalize(statement_); }
  Insert(const Insert&) = delete;

  template <typename... Values>
  void operator()(const Values&... values) {
    (bind(values), ...);
    finish();
  }
  void bind(uint64_t number) {
    db_.check(sqlite3_bind_int64(statement_, ++column_, static_cast<sqlite3_int64>(number)));
  }
  void bind(double number) { db_.check(sqlite3_bind_double(statement_, ++column_, number)); }
  void bind(const std::string& text) {
    std::string valid = valid_utf8(text);
    db_.check(sqlite3_bind_text64(statement_, ++column_, valid.data(), valid.size(),
                                  SQLITE_TRANSIENT, SQLITE_UTF8));
  }
  void finish() {
    db_.check(sqlite3_step(statement_));
    sqlite3_reset(statement_);
    column_ = 0;
  }

 private:
  Database& db_;
  sqlite3_stmt* statement_ = nullptr;
  int column_ = 0;
};

}  // namespace

Result<void> write_sqlite(const Export& what, Sink* sink) {
  IgprofTable table(what);
  auto percent = [&](uint64_t count) {
    return table.total.count == 0
               ? 0.0
               : 100.0 * static_cast<double>(count) / static_cast<double>(table.total.count);
  };
  Database database;
  database.run(kTables);
  const std::span<const AmountField> fields = amount_fields(what.metric);
  database.run(table_of_amounts(fields).c_str());
  {
    Insert summary(&database, "summary", 4), files(&database, "files", 2),
        symbols(&database, "symbols", 3), mainrows(&database, "mainrows", 10),
        children(&database, "children", 6), parents(&database, "parents", 6),
        all(&database, "amounts", 3 + 2 * static_cast<int>(fields.size()));
    summary(table.counter, table.total.count, table.total.calls, 1.0);
    // IgProf's files are those of libraries and programs, unless it knows better.
    std::unordered_map<std::string, uint64_t> file_ids;
    for (size_t i = 0; i < table.rows.size(); ++i) {
      const IgprofRow& row = table.rows[i];
      uint64_t rank = i + 1;
      const std::string& file = row.symbol->file.empty() ? row.symbol->module : row.symbol->file;
      auto [file_id, fresh] = file_ids.try_emplace(file, file_ids.size() + 1);
      if (fresh) files(file_id->second, file);
      symbols(rank, row.symbol->full, file_id->second);
      mainrows(rank, rank, row.self.count, row.cumulative.count,
               row.cumulative.count - row.self.count, row.self.calls, row.cumulative.calls,
               row.self.paths, row.cumulative.paths, percent(row.cumulative.count));
      for (const IgprofRow::Edge& edge : row.callers)
        parents(uint64_t{edge.rank}, rank, edge.amounts.count, edge.amounts.calls,
                edge.amounts.paths, percent(edge.amounts.count));
      for (const IgprofRow::Edge& edge : row.callees)
        children(uint64_t{edge.rank}, rank, edge.amounts.count, edge.amounts.calls,
                 edge.amounts.paths, percent(edge.amounts.count));
      all.bind(rank);
      all.bind(row.symbol->module);
      all.bind(static_cast<uint64_t>(std::max(0, row.symbol->line)));
      for (const AmountField& field : fields) all.bind(row.all_self.*field.member);
      for (const AmountField& field : fields) all.bind(row.all_cumulative.*field.member);
      all.finish();
    }
  }
  database.run(kIndexes);
  return database.write(sink);
}

}  // namespace malloscope::output
