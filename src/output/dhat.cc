// SPDX-License-Identifier: Apache-2.0
// DHAT's JSON, version 2, as dh_view.html and the Firefox Profiler read it. Times are in
// microseconds. What a stack held at its own highest moment is summed over the stacks that
// differ in nothing but instructions, and then an upper bound.

#include <fmt/format.h>

#include "output/exports.h"
#include "output/json_writer.h"
#include "output/words.h"

namespace malloscope::output {

using Layout = JsonWriter::Layout;

// "0x0: parse (parse.cc:12)": both readers expect an address, but several lines have one each.
static std::string frame_text(const analyze::Symbol& symbol) {
  std::string where = symbol.file.empty() ? "in " + (symbol.module.empty() ? "?" : symbol.module)
                      : symbol.line > 0   ? fmt::format("{}:{}", symbol.file, symbol.line)
                                          : symbol.file;
  return fmt::format("0x0: {} ({})", printable(symbol.full), printable(where));
}

Result<void> write_dhat(const Export& what, Sink* sink) {
  const trace::Tables& tables = what.reading->tables();
  auto microseconds = [&](uint64_t tick) { return tables.time_ns(tick) / 1000; };
  std::vector<analyze::Details> details;
  auto add = [&](const analyze::Row& row, uint32_t node) {
    if (node >= details.size()) details.resize(std::max<size_t>(node + 1, details.size() * 2));
    details[node] += row.details;
  };
  analyze::CallTree tree(what.reading, *what.query, {true, what.fold, true, add});
  details.resize(tree.nodes().size());

  JsonWriter json(sink);
  json.begin_object();
  json.member("dhatFileVersion", 2);
  json.member("mode", "heap");
  json.member("verb", "Allocated");
  json.member("bklt", true);
  json.member("bkacc", false);
  json.member("tu", "\xc2\xb5s");
  json.member("Mtu", "s");
  json.member("tuth", 100);  // Blocks that live shorter are "short-lived".
  json.member("cmd", command_of(*what.reading));
  std::vector<const trace::Image*> images = what.reading->selected();
  json.member("pid", images.empty() ? 0 : images[0]->pid);
  json.member("tg", microseconds(what.reading->accounts().peak().tick));
  json.member("te", microseconds(what.reading->end_tick()));
  json.key("pps").begin_array();
  std::vector<analyze::SymbolId> path;
  for (uint32_t n = 1; n < tree.nodes().size(); ++n) {
    const analyze::Amounts& amounts = tree.self(n);
    if (is_empty(amounts)) continue;
    auto lifetime = static_cast<double>(details[n].lifetime_ticks) * tables.header.ns_per_tick;
    json.begin_object(Layout::kLine);
    json.member("tb", amounts.allocated_bytes);
    json.member("tbk", amounts.allocations);
    json.member("tl", static_cast<uint64_t>(lifetime / 1000));
    json.member("mb", details[n].most_bytes);
    json.member("mbk", details[n].most_blocks);
    json.member("gb", amounts.peak_bytes);
    json.member("gbk", details[n].peak_blocks);
    json.member("eb", amounts.live_bytes);
    json.member("ebk", amounts.live_blocks);
    tree.path(n, &path);
    json.key("fs").begin_array();
    for (analyze::SymbolId id : path) json.value(static_cast<uint32_t>(id) + 1);
    json.end();
    json.end();
  }
  json.end();
  json.key("ftbl").begin_array();
  json.value("[root]");
  for (uint32_t i = 0; i < tree.symbols(); ++i)
    json.value(frame_text(tree.symbol(analyze::SymbolId{i})));
  json.end();
  json.end();
  return {};
}

}  // namespace malloscope::output
