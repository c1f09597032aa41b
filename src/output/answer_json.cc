// SPDX-License-Identifier: Apache-2.0
#include "output/answer_json.h"

#include <string>
#include <vector>

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
  json->member("function", frame.full.empty() ? frame.function : frame.full);
  write_text(json, "file", frame.file);
  json->key("line");
  frame.line > 0 ? json->value(frame.line) : json->null();
  json->key("column");
  frame.column > 0 ? json->value(frame.column) : json->null();
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
  if (const auto* rate = std::get_if<analyze::Rate>(&cell)) return json->value(rate->amount, 15);
  if (const auto* stack = std::get_if<analyze::Stack>(&cell)) {
    json->begin_array();
    for (const NamedFrame& frame : (*stack)()) {
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

// Members whose keys begin with the same word and a dot are one object: "before.live" and
// "before.peak". They must stand side by side.
class Members {
 public:
  explicit Members(JsonWriter* json) : json_(*json) {}
  ~Members() { close_to(0); }

  // To be followed by the value.
  void key(std::string_view name) {
    std::vector<std::string_view> outer;
    for (size_t dot; (dot = name.find('.')) != std::string_view::npos; name.remove_prefix(dot + 1))
      outer.push_back(name.substr(0, dot));
    size_t same = 0;
    while (same < outer.size() && same < open_.size() && open_[same] == outer[same]) ++same;
    close_to(same);
    for (size_t i = same; i < outer.size(); ++i) {
      json_.key(outer[i]).begin_object(Layout::kLine);
      open_.emplace_back(outer[i]);
    }
    json_.key(name);
  }

 private:
  void close_to(size_t depth) {
    for (; open_.size() > depth; open_.pop_back()) json_.end();
  }

  JsonWriter& json_;
  std::vector<std::string> open_;
};

void write_row(JsonWriter* json, const analyze::Table& table, const analyze::TableRow& row) {
  bool has_stack = false;
  for (const Column& column : table.columns) has_stack |= column.kind == Column::Kind::kStack;
  json->begin_object(has_stack ? Layout::kLines : Layout::kLine);
  {
    Members members(json);
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
      members.key(column.key);
      write_cell(json, cell);
    }
  }
  json->end();
}

}  // namespace

void write_answer_members(const analyze::Answer& answer, JsonWriter* json) {
  {
    Members members(json);
    for (const auto& [key, cell] : answer.facts) {
      members.key(key);
      write_cell(json, cell);
    }
  }
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
