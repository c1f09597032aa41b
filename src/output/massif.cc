// SPDX-License-Identifier: Apache-2.0
// massif.out, for ms_print and massif-visualizer: the heap over time, and what it was made of at
// the peak and at the end, each as a tree of callers. Such a tree is turned around: innermost
// functions first, below each those that called it. It is made by sorting stacks into heaps by
// their innermost frame, those again by the next, and so on, and only as far as a heap is worth
// a line; the whole of it would be far larger than the tree it is made from.

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "output/exports.h"
#include "output/words.h"

namespace malloscope::output {
namespace {

using analyze::CallTree;
using analyze::Metric;

// Massif writes 30 levels. Perl warns of recursion in ms_print from 100 on.
constexpr unsigned kMostLevels = 90;
// A share of less gets no line of its own.
constexpr double kLeastShare = 0.001;

class CallerTree {
 public:
  CallerTree(const CallTree& tree, Metric metric, uint64_t whole, Sink* sink)
      : tree_(tree), whole_(whole), sink_(*sink) {
    for (uint32_t n = 1; n < tree.nodes().size(); ++n)
      if (uint64_t bytes = analyze::value(tree.self(n), metric)) all_.push_back({n, bytes});
  }

  void write() {
    uint64_t listed = 0;
    for (const Stack& stack : all_) listed += stack.bytes;
    std::vector<Heap> heaps = sorted(all_);
    Rest rest = take_rest(&heaps);
    // What a filter left out; the snapshot is of the whole heap.
    if (listed < whole_) rest.bytes += whole_ - listed, ++rest.places;
    line(0, heaps.size() + (rest.places > 0), whole_,
         "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.");
    below(heaps, rest, 1);
  }

 private:
  struct Stack {
    uint32_t node;  // Where it is to be continued.
    uint64_t bytes;
  };
  struct Heap {
    analyze::SymbolId symbol;
    uint64_t bytes = 0;
    std::vector<Stack> stacks;
  };
  struct Rest {
    uint64_t bytes = 0;
    uint64_t places = 0;
  };

  // By their innermost frame, the heaviest first.
  std::vector<Heap> sorted(const std::vector<Stack>& stacks) const {
    std::vector<Heap> heaps;
    std::unordered_map<analyze::SymbolId, size_t> places;
    for (const Stack& stack : stacks) {
      if (stack.node == CallTree::kRoot) continue;
      const CallTree::Node& node = tree_.nodes()[stack.node];
      auto [place, fresh] = places.try_emplace(node.symbol, heaps.size());
      if (fresh) heaps.emplace_back().symbol = node.symbol;
      Heap& heap = heaps[place->second];
      heap.bytes += stack.bytes;
      heap.stacks.push_back({node.parent, stack.bytes});
    }
    std::sort(heaps.begin(), heaps.end(), [](const Heap& a, const Heap& b) {
      return a.bytes != b.bytes ? a.bytes > b.bytes : a.symbol < b.symbol;
    });
    return heaps;
  }

  Rest take_rest(std::vector<Heap>* heaps) const {
    Rest rest;
    while (!heaps->empty() &&
           static_cast<double>(heaps->back().bytes) < kLeastShare * static_cast<double>(whole_)) {
      rest.bytes += heaps->back().bytes;
      ++rest.places;
      heaps->pop_back();
    }
    return rest;
  }

  void below(const std::vector<Heap>& heaps, const Rest& rest, unsigned level) {
    for (const Heap& heap : heaps) {
      std::vector<Heap> callers;
      if (level < kMostLevels) callers = sorted(heap.stacks);
      Rest callers_rest = take_rest(&callers);
      line(level, callers.size() + (callers_rest.places > 0), heap.bytes,
           frame_text(tree_.symbol(heap.symbol)));
      below(callers, callers_rest, level + 1);
    }
    if (rest.places > 0)
      line(level, 0, rest.bytes,
           fmt::format("in {} places, all below massif's threshold ({:.2f}%)", rest.places,
                       kLeastShare * 100));
  }

  void line(unsigned level, size_t children, uint64_t bytes, const std::string& text) {
    sink_.write(fmt::format("{:{}}n{}: {} {}\n", "", level, children, bytes, text));
  }

  static std::string frame_text(const analyze::Symbol& symbol) {
    std::string where = symbol.file.empty() ? "in " + (symbol.module.empty() ? "?" : symbol.module)
                        : symbol.line > 0   ? fmt::format("{}:{}", symbol.file, symbol.line)
                                            : symbol.file;
    return fmt::format("0x0: {} ({})", printable(symbol.full), printable(where));
  }

  const CallTree& tree_;
  uint64_t whole_;
  Sink& sink_;
  std::vector<Stack> all_;
};

}  // namespace

Result<void> write_massif(const Export& what, Sink* sink) {
  const analyze::Reading& reading = *what.reading;
  const trace::Tables& tables = reading.tables();
  CallTree tree = export_tree(what, true);
  analyze::Peak peak = reading.accounts().peak();
  uint64_t end_tick = std::min(reading.end_tick(), reading.accounts().window().to_tick);

  sink->write(fmt::format("desc: recorded by malloscope {}; bytes as they were asked for\n",
                          MSCOPE_VERSION));
  sink->write(fmt::format("cmd: {}\n", printable(command_of(reading))));
  sink->write("time_unit: ms\n");
  size_t number = 0;
  auto snapshot = [&](uint64_t tick, uint64_t bytes, const char* kind) {
    sink->write(
        fmt::format("#-----------\nsnapshot={}\n#-----------\ntime={:.3f}\nmem_heap_B={}\n"
                    "mem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree={}\n",
                    number++, static_cast<double>(tables.time_ns(tick)) / 1e6, bytes, kind));
  };
  bool peak_shown = false;
  auto show_peak = [&] {
    snapshot(peak.tick, peak.bytes, "peak");
    CallerTree(tree, Metric::kPeak, peak.bytes, sink).write();
    peak_shown = true;
  };
  for (const analyze::Curve::Point& point : what.curve->of_all()) {
    if (point.tick > end_tick) break;
    if (!peak_shown && point.bytes == peak.bytes)
      show_peak();
    else
      snapshot(point.tick, point.bytes, "empty");
  }
  if (!peak_shown) show_peak();
  // All that was never freed, also in processes that have ended.
  uint64_t live = reading.accounts().totals().live_bytes;
  snapshot(std::max(end_tick, peak.tick), live, "detailed");
  CallerTree(tree, Metric::kLive, live, sink).write();
  return {};
}

}  // namespace malloscope::output
