// SPDX-License-Identifier: Apache-2.0
// A row a stack with all amounts, the place to blame and the stack itself, by the rules of
// RFC 4180. Names come from the program that was recorded: what a terminal might obey is escaped,
// and as spreadsheets run what begins with = + - @, such a name gets an apostrophe, by which they
// know text.

#include <fmt/format.h>

#include "output/exports.h"
#include "output/words.h"

namespace malloscope::output {

static std::string cell(std::string_view text) {
  std::string out = printable(text);
  if (!out.empty() && std::string_view("=+-@").find(out[0]) != std::string_view::npos)
    out.insert(0, 1, '\'');
  if (out.find_first_of(",\"") == std::string::npos) return out;
  std::string quoted = "\"";
  for (char c : out) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

Result<void> write_csv(const Export& what, Sink* sink) {
  analyze::CallTree tree = export_tree(what, true);
  std::string line;
  const std::span<const AmountField> fields = amount_fields(what.metric);
  for (const AmountField& field : fields) line += std::string(field.name) + ',';
  sink->write(line + "function,file,line,module,stack\r\n");
  std::vector<analyze::SymbolId> path;
  for (uint32_t n = 1; n < tree.nodes().size(); ++n) {
    const analyze::Amounts& amounts = tree.self(n);
    if (is_empty(amounts)) continue;
    tree.path(n, &path);
    analyze::SymbolId blamed = path[0];
    for (analyze::SymbolId id : path) {
      // Who computes has used the time, plumbing or not.
      if (what.metric != analyze::Metric::kCpu && tree.symbol(id).plumbing) continue;
      blamed = id;
      break;
    }
    line.clear();
    for (const AmountField& field : fields) line += fmt::format("{},", amounts.*field.member);
    const analyze::Symbol& site = tree.symbol(blamed);
    line += fmt::format("{},{},{},{},", cell(site.full), cell(site.file),
                        site.line > 0 ? std::to_string(site.line) : "", cell(site.module));
    std::string stack;
    for (size_t i = path.size(); i-- > 0;)
      stack += printable(tree.symbol(path[i]).full, ';') + (i == 0 ? "" : ";");
    sink->write(line + cell(stack) + "\r\n");
  }
  return {};
}

}  // namespace malloscope::output
