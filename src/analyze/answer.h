// SPDX-License-Identifier: Apache-2.0
// What every view gives: a sentence that is the answer, and tables that prove it.
// Text, JSON and the viewer each render any answer (output/answer_text.h, answer_json.h), so a
// view knows nothing of widths, colours or brackets.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"

namespace malloscope::analyze {

// A frame of a stack, for people and for JSON; innermost first where there are several.
struct NamedFrame {
  std::string function;  // As it is shown; never empty.
  std::string file;      // Empty if not known.
  int line = 0;
  std::string module;
  std::string full{};  // The whole name, for JSON; empty if it is shown whole.
  int column = 0;      // 0 if not known.
};

struct Share {
  uint64_t part = 0;
  uint64_t whole = 0;
};

// An amount for each of the user's units, which is no whole number; or a difference of two.
struct Rate {
  double amount = 0;
  bool difference = false;
};

// A stack, innermost first. It is named when it is written: those of a deep recursion, all at
// once, would need more memory than anybody has. What it refers to must live until then.
using Stack = std::function<std::vector<NamedFrame>()>;
inline Stack named_stack(std::vector<NamedFrame> frames) {
  return [frames = std::move(frames)] { return frames; };
}

// Nothing, a number, a signed difference, a share, a ratio, a rate, words, one frame, a stack.
using Cell = std::variant<std::monostate, uint64_t, int64_t, Share, double, Rate, std::string,
                          NamedFrame, Stack>;

struct Column {
  enum class Kind {
    kCount,
    kBytes,
    kDuration,  // Nanoseconds.
    kTime,      // Nanoseconds since the recording began.
    kShare,     // Not in JSON: it follows from the others.
    kRatio,
    kText,
    kFrame,  // Fills what is left of the line; "function  file:line [module]".
    kStack,  // In JSON an array; as text, lines below the row, if it is shown.
  };
  std::string key;    // In JSON ("a.b" is b in an object a), and for --columns and --sort.
  std::string title;  // Above the column.
  Kind kind = Kind::kCount;
  bool shown = true;    // As text, unless --columns says otherwise; JSON has all.
  bool may_go = false;  // The last of these goes first where a line has no room for all.
  bool asked = false;   // By --columns: it stays.
};

struct TableRow {
  std::vector<Cell> cells;    // One for each column; those missing at the end are empty.
  unsigned depth = 0;         // Of a tree: how far to indent.
  bool main = true;           // False: set apart, such as a caller above the function it calls.
  bool begins_block = false;  // Of several rows that belong together: the first.
};

struct Table {
  std::string key;    // In JSON: the name of the array.
  std::string title;  // A heading, or empty.
  std::vector<Column> columns;
  std::vector<TableRow> rows;
  uint64_t left_out = 0;  // Rows that --top cut off; the text says so.
  // Whether rows may be sorted and cut (not those of trees and of callers and callees).
  bool list = true;
  bool in_text = true;  // Else it is for programs, and for a picture.
};

struct Answer {
  std::string headline;  // The answer in a sentence or two.
  // JSON members beside the tables; neighbours "a.x" and "a.y" become one object "a".
  std::vector<std::pair<std::string, Cell>> facts;
  std::vector<Table> tables;
  std::vector<std::string> notes;  // What the reader should know, below the tables.
};

// What the user wants of the tables; applied to every answer in the same way.
struct Shape {
  std::vector<std::string> columns;  // Keys, in this order; empty: as the view has them.
  std::string sort;                  // A key; empty: as the view has them. Numbers heaviest first.
  size_t top = 0;                    // Rows of each list; 0: all.
};
// An error if a key is in none of the tables.
Result<void> shape(Answer* answer, const Shape& wanted);

}  // namespace malloscope::analyze
