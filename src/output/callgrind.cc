// SPDX-License-Identifier: Apache-2.0
// Callgrind's format, for KCachegrind and callgrind_annotate. A function's lines have what was
// asked for there and, for each function called from there, what was asked for below the call;
// on one stack the same call counts once, however often it recurs. A function's calls of itself are
// left out: callgrind_annotate adds up all calls of a function to what it did inclusively.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <unordered_map>

#include "output/exports.h"
#include "output/tree_walk.h"
#include "output/words.h"

namespace malloscope::output {
namespace {

using analyze::Amounts;
using analyze::SymbolId;

struct Event {
  const char* name;
  const char* what;
  uint64_t Amounts::* member;
};
// The first is what viewers sort by.
constexpr Event kEvents[] = {
    {"Peak", "Bytes at the peak", &Amounts::peak_bytes},
    {"Live", "Bytes still live", &Amounts::live_bytes},
    {"LiveBlocks", "Blocks still live", &Amounts::live_blocks},
    {"Allocated", "Bytes allocated", &Amounts::allocated_bytes},
    {"Allocations", "Allocations", &Amounts::allocations},
    {"Reallocations", "Reallocations", &Amounts::reallocations},
    {"Temporary", "Temporary allocations", &Amounts::temporary},
};
constexpr Event kCpuEvents[] = {
    {"Cpu", "Nanoseconds of CPU time", &Amounts::cpu_ns},
    {"Samples", "Samples", &Amounts::cpu_samples},
};
using Events = std::span<const Event>;

std::string costs(Events events, const Amounts& amounts) {
  std::string text;
  for (const Event& event : events) text += fmt::format(" {}", amounts.*event.member);
  return text + '\n';
}

// "(12) name" where it comes first, then "(12)".
class Names {
 public:
  std::string operator()(const std::string& name) {
    auto [found, fresh] = ids_.try_emplace(name, ids_.size() + 1);
    if (!fresh) return fmt::format("({})", found->second);
    return fmt::format("({}) {}", found->second, name.empty() ? "???" : printable(name));
  }

 private:
  std::unordered_map<std::string, size_t> ids_;
};

// A function in a file: symbols that differ in nothing but the line.
struct Function {
  const analyze::Symbol* symbol = nullptr;
  std::vector<SymbolId> lines;
};

class Writer {
 public:
  Writer(const analyze::CallTree& tree, Events events, Sink* sink)
      : tree_(tree), events_(events), sink_(*sink) {
    find_functions();
    find_costs();
  }

  void write() {
    for (const Function& function : functions_) {
      sink_.write(fmt::format("\nob={}\nfl={}\nfn={}\n", objects_(function.symbol->module),
                              files_(function.symbol->file), names_(function.symbol->full)));
      for (SymbolId line : function.lines) write_line(line);
    }
  }

 private:
  void find_functions() {
    std::map<std::tuple<std::string_view, std::string_view, std::string_view>, uint32_t> ids;
    for (uint32_t i = 0; i < tree_.symbols(); ++i) {
      const analyze::Symbol& symbol = tree_.symbol(SymbolId{i});
      auto [found, fresh] = ids.try_emplace({symbol.full, symbol.file, symbol.module},
                                            static_cast<uint32_t>(functions_.size()));
      if (fresh) functions_.emplace_back().symbol = &symbol;
      functions_[found->second].lines.push_back(SymbolId{i});
      function_of_.push_back(found->second);
    }
    for (Function& function : functions_)
      std::sort(function.lines.begin(), function.lines.end(), [&](SymbolId a, SymbolId b) {
        return tree_.symbol(a).line < tree_.symbol(b).line;
      });
  }

  void find_costs() {
    const auto& nodes = tree_.nodes();
    std::vector<Amounts> below = tree_.cumulative();
    std::unordered_map<uint64_t, uint32_t> on_path;
    self_.resize(tree_.symbols());
    calls_.resize(tree_.symbols());
    auto edge = [&](uint32_t n) {
      return uint64_t{static_cast<uint32_t>(nodes[nodes[n].parent].symbol)} << 32 |
             function_of_[static_cast<size_t>(nodes[n].symbol)];
    };
    walk(
        tree_,
        [&](uint32_t n) {
          self_[static_cast<size_t>(nodes[n].symbol)] += tree_.self(n);
          if (nodes[n].parent == analyze::CallTree::kRoot || on_path[edge(n)]++ > 0) return;
          auto caller = static_cast<size_t>(nodes[nodes[n].parent].symbol);
          uint32_t callee = function_of_[static_cast<size_t>(nodes[n].symbol)];
          if (function_of_[caller] != callee) calls_[caller][callee] += below[n];
        },
        [&](uint32_t n) {
          if (nodes[n].parent != analyze::CallTree::kRoot) --on_path[edge(n)];
        });
  }

  void write_line(SymbolId id) {
    auto i = static_cast<size_t>(id);
    int line = std::max(0, tree_.symbol(id).line);
    if (!is_empty(self_[i])) sink_.write(fmt::format("{}{}", line, costs(events_, self_[i])));
    for (const auto& [callee, amounts] : calls_[i]) {
      const analyze::Symbol& called = *functions_[callee].symbol;
      // How often it was called is not known; how often it asked for memory is, or was met.
      uint64_t calls =
          std::max<uint64_t>(1, amounts.allocations + amounts.reallocations + amounts.cpu_samples);
      sink_.write(fmt::format("cob={}\ncfi={}\ncfn={}\ncalls={} {}\n{}{}", objects_(called.module),
                              files_(called.file), names_(called.full), calls,
                              std::max(0, called.line), line, costs(events_, amounts)));
    }
  }

  const analyze::CallTree& tree_;
  Events events_;
  Sink& sink_;
  std::vector<Function> functions_;
  std::vector<uint32_t> function_of_;               // By SymbolId.
  std::vector<Amounts> self_;                       // By SymbolId.
  std::vector<std::map<uint32_t, Amounts>> calls_;  // By SymbolId, then by function.
  Names objects_, files_, names_;
};

}  // namespace

Result<void> write_callgrind(const Export& what, Sink* sink) {
  analyze::CallTree tree = export_tree(what, true);
  const Events events = what.metric == analyze::Metric::kCpu ? Events(kCpuEvents) : Events(kEvents);
  sink->write(
      fmt::format("# callgrind format\nversion: 1\ncreator: malloscope {}\n"
                  "cmd: {}\npositions: line\n",
                  MSCOPE_VERSION, printable(command_of(*what.reading))));
  for (const Event& event : events)
    sink->write(fmt::format("event: {} : {}\n", event.name, event.what));
  sink->write("events:");
  for (const Event& event : events) sink->write(fmt::format(" {}", event.name));
  sink->write(fmt::format("\nsummary:{}", costs(events, tree.total())));
  Writer(tree, events, sink).write();
  sink->write(fmt::format("\ntotals:{}", costs(events, tree.total())));
  return {};
}

}  // namespace malloscope::output
