// SPDX-License-Identifier: Apache-2.0
#include "output/answer_json.h"

namespace malloscope::output {
namespace {

using analyze::Cell;
using analyze::Column;
using analyze::NamedFrame;
using Layout = JsonWriter::Layout;

void write_text(JsonWriter* json, std::string_view key, const std::string& text) {
  json->key(key);
  text.empty() ? json->null() : json->value(text);
}

void write_frame(JsonWriter* json, const NamedFrame& frame) {
  json->member("function", frame.function);
  write_text(json, "file", frame.file);
  json->key("line");
  frame.line > 0 ? json->value(frame.line) : json->null();
  write_text(json, "module", frame.module);
}

void write_cell(JsonWriter* json, const Cell& cell) {
  if (const auto* n = std::get_if<uint64_t>(&cell)) return json->value(*n);
  if (const auto* n = std::get_if<int64_t>(&cell)) return json->value(*n);
  if (const auto* d = std::get_if<double>(&cell)) return json->value(*d);
  if (const auto* s = std::get_if<std::string>(&cell)) return json->value(*s);
  if (const auto* s = std::get_if<analyze::Share>(&cell))
    return json->value(
        s->whole == 0 ? 0.0 : static_cast<double>(s->part) / static_cast<double>(s->whole));
  if (const auto* stack = std::get_if<std::vector<NamedFrame>>(&cell)) {
    json->begin_array();
    for (const NamedFrame& frame : *stack) {
      json->begin_object(Layout::kLine);
      write_frame(json, frame);
      json->end();
    }
    return json->end();
  }
  if (const auto* frame = std::get_if<NamedFrame>(&cell)) {
    json->begin_object(Layout::kLine);
    write_frame(json, *frame);
    return json->end();
  }
  json->null();
}

void write_row(JsonWriter* json, const analyze::Table& table, const analyze::TableRow& row) {
  bool has_stack = false;
  for (const Column& column : table.columns) has_stack |= column.kind == Column::Kind::kStack;
  json->begin_object(has_stack ? Layout::kLines : Layout::kLine);
  for (size_t c = 0; c < table.columns.size(); ++c) {
    const Column& column = table.columns[c];
    static const Cell kNothing;
    const Cell& cell = c < row.cells.size() ? row.cells[c] : kNothing;
    if (column.kind == Column::Kind::kShare) continue;
    if (const auto* frame = std::get_if<NamedFrame>(&cell);
        frame && column.kind == Column::Kind::kFrame) {
      write_frame(json, *frame);
      continue;
    }
    json->key(column.key);
    write_cell(json, cell);
  }
  json->end();
}

// Neighbours "a.x" and "a.y" are the members of one object "a".
void write_facts(const std::vector<std::pair<std::string, Cell>>& facts, JsonWriter* json) {
  std::string open;
  for (const auto& [key, cell] : facts) {
    size_t dot = key.find('.');
    std::string object = dot == std::string::npos ? "" : key.substr(0, dot);
    if (object != open && !open.empty()) json->end();
    if (object != open && !object.empty()) json->key(object).begin_object();
    open = object;
    json->key(dot == std::string::npos ? key : key.substr(dot + 1));
    write_cell(json, cell);
  }
  if (!open.empty()) json->end();
}

}  // namespace

void write_answer_members(const analyze::Answer& answer, JsonWriter* json) {
  write_facts(answer.facts, json);
  for (const analyze::Table& table : answer.tables) {
    json->key(table.key).begin_array();
    for (const analyze::TableRow& row : table.rows) write_row(json, table, row);
    json->end();
    if (table.left_out > 0) json->member(table.key + "_left_out", table.left_out);
  }
  json->key("notes").begin_array();
  for (const std::string& note : answer.notes) json->value(note);
  json->end();
}

}  // namespace malloscope::output
