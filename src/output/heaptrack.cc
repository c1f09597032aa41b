// SPDX-License-Identifier: Apache-2.0
// heaptrack's own text format, as heaptrack_interpret writes it, for heaptrack_gui and
// heaptrack_print. Unlike all others it is a list of events, so the trace is read once more: the
// first reading has told the stacks, and the call tree is written as heaptrack's tree of
// stacks. All numbers are hexadecimal:
//
//     s name                 the next string
//     i pc module fn file n  the next place in the program; here a line of a function
//     t place caller         the next stack: a place and the stack that called it
//     a size stack           the next kind of block
//     + kind, - kind         a block of that kind is allocated, freed
//     c ms, R pages          the time, the resident size
//
// It knows no reallocation, which is a free and an allocation. It knows one process; what others
// leave behind when they end stays in its sum.

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "output/exports.h"
#include "output/words.h"
#include "trace/event_stream.h"

namespace malloscope::output {
namespace {

using analyze::Block;
using analyze::CallTree;

constexpr uint64_t kPageBytes = 4096;

// Of rows, and of blocks: the strand counts only as far as there is a row for each.
struct RowKey {
  ImageId image;
  StackId stack;
  analyze::StrandId strand;
  bool operator==(const RowKey&) const = default;
};
struct RowKeyHash {
  size_t operator()(const RowKey& key) const {
    uint64_t h = (uint64_t{raw(key.image)} << 32 | raw(key.stack)) * 0x9e3779b97f4a7c15;
    h ^= uint64_t{raw(key.strand)} * 0xd6e8feb86659fd93;
    return h ^ h >> 29;
  }
};
using NodeOf = std::unordered_map<RowKey, uint32_t, RowKeyHash>;

class Strings {
 public:
  explicit Strings(Sink* sink) : sink_(*sink) {}
  uint64_t operator()(const std::string& text) {
    if (text.empty()) return 0;
    auto [found, fresh] = ids_.try_emplace(text, ids_.size() + 1);
    if (fresh) sink_.write(fmt::format("s {}\n", printable(text)));
    return found->second;
  }

 private:
  Sink& sink_;
  std::unordered_map<std::string, uint64_t> ids_;
};

void write_stacks(const CallTree& tree, Sink* sink) {
  Strings strings(sink);
  for (uint32_t i = 0; i < tree.symbols(); ++i) {
    const analyze::Symbol& symbol = tree.symbol(analyze::SymbolId{i});
    uint64_t module = strings(symbol.module), function = strings(symbol.full),
             file = strings(symbol.file);
    sink->write(fmt::format("i {:x} {:x} {:x} {:x} {:x}\n", i + 1, module, function, file,
                            std::max(0, symbol.line)));
  }
  for (uint32_t n = 1; n < tree.nodes().size(); ++n)
    sink->write(fmt::format("t {:x} {:x}\n", static_cast<uint32_t>(tree.nodes()[n].symbol) + 1,
                            tree.nodes()[n].parent));
}

class EventWriter : public analyze::HeapObserver {
 public:
  EventWriter(const analyze::Reading& reading, NodeOf nodes, Sink* sink)
      : tables_(reading.tables()),
        options_(reading.accounts().tally().options()),
        from_ms_(tables_.time_ns(reading.accounts().window().from_tick) / 1'000'000),
        nodes_(std::move(nodes)),
        sink_(*sink) {
    for (const trace::Image* image : reading.selected())
      rss_.insert(rss_.end(), image->rss.begin(), image->rss.end());
    std::sort(rss_.begin(), rss_.end(),
              [](const auto& a, const auto& b) { return a.tick < b.tick; });
  }

  void made(ImageId image, const Block& block, const wire::Event& event, bool) override {
    time(event.tick);
    write('+', image, block);
  }
  void changed(ImageId image, const Block& before, const Block& now, const wire::Event& event,
               bool) override {
    time(event.tick);
    write('-', image, before);
    write('+', image, now);
  }
  void gone(ImageId image, const Block& block, End, const wire::Event& event, bool) override {
    time(event.tick);
    write('-', image, block);
  }

 private:
  // What was before the window all happens as it begins.
  void time(uint64_t tick) {
    uint64_t ms = tables_.time_ns(tick) / 1'000'000;
    ms = ms > from_ms_ ? ms - from_ms_ : 0;
    if (ms > last_ms_) sink_.write(fmt::format("c {:x}\n", last_ms_ = ms));
    for (; next_rss_ < rss_.size() && rss_[next_rss_].tick <= tick; ++next_rss_)
      sink_.write(fmt::format("R {:x}\n", rss_[next_rss_].bytes / kPageBytes));
  }

  void write(char sign, ImageId image, const Block& block) {
    if (block.size < options_.min_size || block.size > options_.max_size) return;
    auto node = nodes_.find({image, block.stack, options_.told_apart(block.strand)});
    if (node == nodes_.end()) return;  // A filter left it out.
    auto [kind, fresh] = kinds_.try_emplace({block.size, node->second}, kinds_.size());
    if (fresh) sink_.write(fmt::format("a {:x} {:x}\n", block.size, node->second));
    sink_.write(fmt::format("{} {:x}\n", sign, kind->second));
  }

  struct KindHash {
    size_t operator()(const std::pair<uint64_t, uint32_t>& kind) const {
      uint64_t h = kind.first * 0x9e3779b97f4a7c15 + kind.second * 0xd6e8feb86659fd93;
      return h ^ h >> 29;
    }
  };

  const trace::Tables& tables_;
  analyze::TallyOptions options_;
  uint64_t from_ms_, last_ms_ = 0;
  NodeOf nodes_;
  Sink& sink_;
  std::unordered_map<std::pair<uint64_t, uint32_t>, size_t, KindHash> kinds_;
  std::vector<trace::MemorySample> rss_;
  size_t next_rss_ = 0;
};

}  // namespace

Result<void> write_heaptrack(const Export& what, Sink* sink) {
  const analyze::Reading& reading = *what.reading;
  NodeOf nodes;
  auto remember = [&](const analyze::Row& row, uint32_t node) {
    nodes.emplace(RowKey{row.image, row.stack, row.strand}, node);
  };
  CallTree tree(what.reading, *what.query, {true, what.fold, true, remember});
  // Written as by heaptrack 1.4 in version 2, the newest in which strings have no length.
  sink->write("v 10400 2\n");
  sink->write(fmt::format("X {}\nI {:x} {:x}\n", printable(command_of(reading)), kPageBytes, 0));
  write_stacks(tree, sink);
  EventWriter events(reading, std::move(nodes), sink);
  analyze::Heap heap(reading.accounts().selection(), reading.accounts().window());
  heap.add_observer(&events);
  Result<trace::Tables> tables = trace::stream(reading.path(), &heap);
  if (!tables) return std::unexpected(tables.error());
  return {};
}

}  // namespace malloscope::output
