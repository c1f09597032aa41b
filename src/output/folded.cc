// SPDX-License-Identifier: Apache-2.0
// Folded stacks, as flamegraph.pl and speedscope read them: a line a stack, the root first,
// "main;load;parse 4096".

#include <fmt/format.h>

#include <string>
#include <vector>

#include "output/exports.h"
#include "output/words.h"

namespace malloscope::output {

Result<void> write_folded(const Export& what, Sink* sink) {
  analyze::CallTree tree = export_tree(what, false);
  std::vector<std::string> names(tree.symbols());
  for (size_t i = 0; i < names.size(); ++i)
    names[i] = printable(tree.symbol(analyze::SymbolId{static_cast<uint32_t>(i)}).full, ';');
  std::vector<analyze::SymbolId> path;
  std::string line;
  for (uint32_t n = 1; n < tree.nodes().size(); ++n) {
    uint64_t value = analyze::value(tree.self(n), what.metric);
    if (value == 0) continue;
    tree.path(n, &path);
    line.clear();
    for (size_t i = path.size(); i-- > 0;) {
      line += names[static_cast<size_t>(path[i])];
      line += i == 0 ? ' ' : ';';
    }
    sink->write(line += fmt::format("{}\n", value));
  }
  return {};
}

}  // namespace malloscope::output
