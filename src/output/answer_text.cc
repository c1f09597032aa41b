// SPDX-License-Identifier: Apache-2.0
#include "output/answer_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "output/fitted_names.h"
#include "output/module_names.h"
#include "output/style.h"
#include "output/words.h"
#include "symbols/readable_name.h"

namespace malloscope::output {
namespace {

using analyze::Cell;
using analyze::Column;
using analyze::NamedFrame;
using Kind = Column::Kind;

bool is_words(Kind kind) { return kind == Kind::kText || kind == Kind::kFrame; }

std::string number_text(uint64_t number, Kind kind) {
  switch (kind) {
    case Kind::kBytes:
      return bytes_text(number);
    case Kind::kDuration:
    case Kind::kTime:
      return duration_text(number);
    default:
      return grouped(number);
  }
}

// "load.cc:40 [libfoo.so]", or what is known of it; with a column "load.cc:40:7 ...".
std::string place_text(const NamedFrame& frame, const std::string& module,
                       bool with_column = false) {
  std::string text;
  if (!frame.file.empty())
    text = frame.line > 0 ? fmt::format("{}:{}", base_name(frame.file), frame.line)
                          : base_name(frame.file);
  if (with_column && frame.line > 0 && frame.column > 0) text += fmt::format(":{}", frame.column);
  if (!module.empty()) text += fmt::format("{}[{}]", text.empty() ? "" : " ", module);
  return printable(text);
}

std::string rate_text(const analyze::Rate& rate, Kind kind) {
  double size = std::abs(rate.amount);
  std::string text = kind == Kind::kBytes      ? analyze::bytes_rate_text(size)
                     : kind == Kind::kDuration ? duration_text(static_cast<uint64_t>(size))
                                               : analyze::rate_text(size);
  if (!rate.difference) return text;
  return rate.amount == 0 ? "=" : (rate.amount < 0 ? "-" : "+") + text;
}

std::string cell_text(const Cell& cell, Kind kind) {
  if (const auto* n = std::get_if<uint64_t>(&cell)) return number_text(*n, kind);
  if (const auto* n = std::get_if<int64_t>(&cell)) {
    uint64_t size = *n < 0 ? uint64_t{0} - static_cast<uint64_t>(*n) : static_cast<uint64_t>(*n);
    return *n == 0 ? "=" : (*n < 0 ? "-" : "+") + number_text(size, kind);
  }
  if (const auto* s = std::get_if<analyze::Share>(&cell)) return percent_text(s->part, s->whole);
  if (const auto* d = std::get_if<double>(&cell)) return fmt::format("{:.2f}", *d);
  if (const auto* r = std::get_if<analyze::Rate>(&cell)) return rate_text(*r, kind);
  if (const auto* s = std::get_if<std::string>(&cell)) return printable(*s);
  if (const auto* f = std::get_if<NamedFrame>(&cell)) return printable(f->function);
  return "";
}

class TextWriter {
 public:
  TextWriter(const TextOptions& options, Sink* sink)
      : options_(options), style_{options.color}, sink_(*sink) {}

  void write(const analyze::Answer& answer) {
    for (const std::string& line : lines_of(answer.headline)) sink_.write(style_.bold(line) + "\n");
    for (const analyze::Table& table : answer.tables)
      if (table.in_text) write_table(table);
    if (!answer.notes.empty()) sink_.write("\n");
    for (const std::string& note : answer.notes)
      for (const std::string& line : lines_of(note)) sink_.write(style_.dim(line) + "\n");
  }

 private:
  // Of a frame: in general, and where it is not what the rows are about.
  static constexpr size_t kLeastFrame = 24, kFewestFrame = 16;
  // Ranges, names of threads and pieces of advice are no longer than the first of these.
  static constexpr size_t kMostWords = 24, kLeastWords = 10;

  std::vector<std::string> lines_of(const std::string& sentence) const {
    return wrapped_lines(printable(sentence), options_.wrap ? options_.width : SIZE_MAX);
  }

  void write_table(const analyze::Table& table) {
    if (table.rows.empty() && table.title.empty()) return;  // The headline says it.
    sink_.write("\n");
    if (!table.title.empty()) sink_.write(style_.bold(printable(table.title)) + "\n");
    if (table.rows.empty()) {
      sink_.write("  (none)\n");
      return;
    }
    measure(table);
    fit_names(table);
    write_heads(table);
    for (const analyze::TableRow& row : table.rows) {
      if (row.begins_block && &row != &table.rows.front()) sink_.write("\n");
      write_row(table, row);
    }
    if (table.left_out > 0)
      sink_.write(style_.dim(fmt::format("  ... and {}; --top N shows more\n",
                                         count_text(table.left_out, "more row", "more rows"))));
    if (!gone_.empty())
      for (const std::string& line :
           wrapped_lines(fmt::format("no room for {}: see --columns", gone_), options_.width - 2))
        sink_.write(style_.dim("  " + line) + "\n");
  }

  bool is_shown(size_t column) const { return shown_[column]; }

  // How wide each column is, and which have no room. First goes what the view can do without
  // (may_go), then words are cut to what most of them need; only then does the rest suffer.
  void measure(const analyze::Table& table) {
    widths_.assign(table.columns.size(), 0);
    shown_.assign(table.columns.size(), false);
    gone_.clear();
    std::vector<size_t> wanted(table.columns.size(), 0);
    std::set<std::string> modules;
    least_frame_ = kLeastFrame;
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const Column& column = table.columns[c];
      shown_[c] = column.shown && column.kind != Kind::kStack;
      if (!is_shown(c)) continue;
      if (column.kind == Kind::kFrame) {
        for (const analyze::TableRow& row : table.rows)
          if (const auto* f = frame_in(row, c)) modules.insert(f->module);
        continue;
      }
      wanted[c] = columns(column.title);
      for (const analyze::TableRow& row : table.rows)
        if (c < row.cells.size())
          wanted[c] = std::max(wanted[c], columns(cell_text(row.cells[c], column.kind)));
      widths_[c] = column.kind == Kind::kText
                       ? std::min(wanted[c], std::max(options_.width / 2, kMostWords))
                       : wanted[c];
    }
    modules_ = ModuleNames(modules);

    auto is_frame = [](const Column& column) { return column.kind == Kind::kFrame; };
    std::vector<bool> all = shown_;
    drop_columns(table, [&](const Column& column) { return column.may_go && !is_frame(column); });
    if (line_width(table) > options_.width &&
        std::ranges::any_of(table.columns,
                            [&](const Column& c) { return is_frame(c) && c.may_go; }))
      least_frame_ = kFewestFrame;
    drop_columns(table, [&](const Column& column) { return column.may_go && is_frame(column); });
    cut_words(table, kMostWords);
    drop_columns(table, [&](const Column& column) {
      return !column.asked && !is_frame(column) && column.kind != Kind::kText;
    });
    cut_words(table, kLeastWords);
    use_what_is_left(table, all, wanted);
    for (size_t c = 0; c < table.columns.size(); ++c) {
      // What has no title belongs to its neighbour.
      const std::string& title = table.columns[c].title;
      if (all[c] && !shown_[c] && !title.empty()) gone_ += (gone_.empty() ? "" : ", ") + title;
    }
  }

  size_t line_width(const analyze::Table& table) const {
    size_t line = 0;
    for (size_t c = 0; c < table.columns.size(); ++c)
      if (is_shown(c))
        line += 2 + (table.columns[c].kind == Kind::kFrame ? least_frame_ : widths_[c]);
    return line;
  }

  // The last ones first; never the first of all.
  void drop_columns(const analyze::Table& table, auto&& may_go) {
    for (size_t c = table.columns.size(); c-- > 1 && line_width(table) > options_.width;)
      if (may_go(table.columns[c])) shown_[c] = false;
  }

  void cut_words(const analyze::Table& table, size_t least) {
    for (size_t c = 0; c < table.columns.size(); ++c) {
      size_t line = line_width(table);
      if (line <= options_.width) return;
      if (is_shown(c) && table.columns[c].kind == Kind::kText && widths_[c] > least)
        widths_[c] -= std::min(widths_[c] - least, line - options_.width);
    }
  }

  // For columns that were dropped for one that took more than enough, then for words that are cut;
  // but frames fill the line by themselves.
  void use_what_is_left(const analyze::Table& table, const std::vector<bool>& all,
                        const std::vector<size_t>& wanted) {
    bool has_frames = false;
    for (size_t c = 0; c < table.columns.size(); ++c)
      has_frames = has_frames || (is_shown(c) && table.columns[c].kind == Kind::kFrame);
    if (has_frames) return;
    for (bool titled : {true, false})  // A share follows from its neighbour, so it comes last.
      for (size_t c = 0; c < table.columns.size(); ++c) {
        const Column& column = table.columns[c];
        if (!all[c] || is_shown(c) || column.kind == Kind::kFrame) continue;
        if (column.title.empty() != titled && line_width(table) + 2 + widths_[c] <= options_.width)
          shown_[c] = true;
      }
    for (size_t c = 0; c < table.columns.size(); ++c)
      if (size_t line = line_width(table); is_shown(c) && line < options_.width)
        widths_[c] += std::min(wanted[c] - widths_[c], options_.width - line);
  }

  void write_heads(const analyze::Table& table) {
    std::string line;
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const Column& column = table.columns[c];
      if (!is_shown(c)) continue;
      line += "  ";
      if (column.kind == Kind::kFrame && widths_[c] == 0)
        line += cut_end(column.title, std::max(least_frame_, options_.width - columns(line)));
      else if (is_words(column.kind))
        line += fmt::format("{:<{}}", cut_end(column.title, widths_[c]), widths_[c]);
      else
        line += fmt::format("{:>{}}", column.title, widths_[c]);
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    if (!line.empty()) sink_.write(style_.dim(line) + "\n");
  }

  void write_row(const analyze::Table& table, const analyze::TableRow& row) {
    std::string line;
    size_t used = 0;
    const analyze::Stack* stack = nullptr;
    for (size_t c = 0; c < table.columns.size(); ++c) {
      const Column& column = table.columns[c];
      static const Cell kNothing;
      const Cell& cell = c < row.cells.size() ? row.cells[c] : kNothing;
      if (column.kind == Kind::kStack && column.shown) stack = std::get_if<analyze::Stack>(&cell);
      if (!is_shown(c)) continue;
      line += "  ";
      if (column.kind == Kind::kFrame) {
        FrameText frame = frame_text(cell, row, c, used + 2);
        line += frame.text;
        if (widths_[c] > frame.columns) line.append(widths_[c] - frame.columns, ' ');
        used += 2 + widths_[c];
        continue;
      }
      std::string text = cell_text(cell, column.kind);
      if (is_words(column.kind) && columns(text) > widths_[c]) text = cut_middle(text, widths_[c]);
      std::string gap(widths_[c] - std::min(widths_[c], columns(text)), ' ');
      line += is_words(column.kind) ? text + gap : gap + text;
      used += 2 + widths_[c];
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    sink_.write(line + "\n");
    if (stack) write_stack((*stack)());
  }

  // Nothing for what has no name: it is called after its module already.
  std::string module_of(const NamedFrame& frame) const {
    std::string module = modules_.of(frame.module);
    return frame.function.starts_with(module + "+0x") ? "" : module;
  }

  struct FrameLine {
    std::string indent, name, place;
    size_t room;  // For the name.
  };
  FrameLine lay_out(const NamedFrame& frame, const analyze::TableRow& row, size_t column,
                    size_t used) const {
    for (size_t c = column + 1; c < widths_.size(); ++c)
      if (is_shown(c)) used += 2 + widths_[c];
    // A deep tree would leave no room for names: from there on only its depth is told.
    size_t all = options_.width > used ? options_.width - used : 0;
    auto deepest = static_cast<unsigned>(std::clamp<size_t>(all / 4, 2, 20));
    std::string indent(std::min(row.depth, deepest) * 2, ' ');
    if (row.depth > deepest) indent += fmt::format("({}) ", row.depth);
    size_t room = std::max(all > indent.size() ? all - indent.size() : 0, least_frame_);
    std::string name = printable(frame.function), place = place_text(frame, module_of(frame));
    if (options_.full_names) return {indent, name, place, columns(name)};
    auto too_long = [&] { return columns(name) + 2 + columns(place) > room; };
    // First the library goes, unless it may be all that two rows differ in; then of the name
    // what its ends do not tell.
    if (too_long() && !modules_.is_ambiguous(frame.module)) place = place_text(frame, "");
    if (too_long() && columns(place) > room / 3)
      place = cut_beginning(place, std::max<size_t>(room / 3, 10));
    size_t taken = place.empty() ? 0 : columns(place) + 2;
    return {indent, name, place, std::max(room > taken ? room - taken : 0, least_frame_ / 2)};
  }

  // What every frame will look like; and how wide they are, if something comes after them.
  void fit_names(const analyze::Table& table) {
    names_ = {};
    size_t used = 2;
    for (size_t c = 0; c < table.columns.size(); ++c) {
      if (!is_shown(c)) continue;
      bool is_last = std::find(shown_.begin() + static_cast<ptrdiff_t>(c) + 1, shown_.end(),
                               true) == shown_.end();
      for (const analyze::TableRow& row : table.rows)
        if (const auto* frame = frame_in(row, c)) {
          FrameLine line = lay_out(*frame, row, c, used);
          names_.add(line.name, frame->full, line.room);
        }
      if (table.columns[c].kind == Kind::kFrame && !is_last) {
        size_t widest = std::min(columns(table.columns[c].title), least_frame_);
        for (const analyze::TableRow& row : table.rows)
          if (c < row.cells.size())
            widest = std::max(widest, frame_text(row.cells[c], row, c, used).columns);
        widths_[c] = widest;
      }
      used += 2 + widths_[c];
    }
  }

  static const NamedFrame* frame_in(const analyze::TableRow& row, size_t column) {
    return column < row.cells.size() ? std::get_if<NamedFrame>(&row.cells[column]) : nullptr;
  }

  struct FrameText {
    std::string text;
    size_t columns;
  };
  FrameText frame_text(const Cell& cell, const analyze::TableRow& row, size_t column,
                       size_t used) const {
    const auto* frame = std::get_if<NamedFrame>(&cell);
    if (!frame) {
      std::string text = cell_text(cell, Kind::kText);
      return {text, columns(text)};
    }
    FrameLine line = lay_out(*frame, row, column, used);
    std::string name = names_.of(line.name, frame->full, line.room);
    std::string text = line.indent + (row.main ? style_.name(name) : name);
    size_t width = line.indent.size() + columns(name);
    if (line.place.empty()) return {text, width};
    return {text + "  " + style_.dim(line.place), width + 2 + columns(line.place)};
  }

  void write_stack(const std::vector<NamedFrame>& stack) {
    constexpr std::string_view kIndent = "        ";
    for (size_t i = 1; i < stack.size(); ++i) {
      std::string name = printable(stack[i].function);
      std::string place = place_text(stack[i], module_of(stack[i]), true);
      size_t left = options_.width * 2 / 3, room = options_.width - kIndent.size();
      if (!options_.full_names && columns(name) + 2 + columns(place) > room)
        place = place_text(stack[i], "", true);
      if (!options_.full_names && columns(name) > left)
        name = cut_middle(symbols::fitted_name(name, left), left);
      sink_.write(
          fmt::format("{}{}{}\n", kIndent, name, place.empty() ? "" : "  " + style_.dim(place)));
    }
  }

  const TextOptions& options_;
  Style style_;
  Sink& sink_;
  std::vector<size_t> widths_;
  std::vector<bool> shown_;  // Beside widths_.
  size_t least_frame_ = kLeastFrame;
  std::string gone_;     // Columns that were left out for want of room.
  ModuleNames modules_;  // Of the table.
  FittedNames names_;
};

}  // namespace

void write_answer(const analyze::Answer& answer, const TextOptions& options, Sink* sink) {
  TextWriter(options, sink).write(answer);
}

}  // namespace malloscope::output
