// SPDX-License-Identifier: Apache-2.0
// The whole tree as JSON. Flat, each node naming its parent: nested, a deep recursion would be
// too deep for most parsers.

#include "output/exports.h"
#include "output/json.h"
#include "output/json_writer.h"

namespace malloscope::output {

using Layout = JsonWriter::Layout;

static void write_amounts(JsonWriter* json, analyze::Metric metric,
                          const analyze::Amounts& amounts) {
  for (const AmountField& field : amount_fields(metric))
    json->member(field.name, amounts.*field.member);
}

static void write_text(JsonWriter* json, const char* key, const std::string& text) {
  json->key(key);
  text.empty() ? json->null() : json->value(text);
}

Result<void> write_tree_json(const Export& what, Sink* sink) {
  analyze::CallTree tree = export_tree(what, true);
  JsonWriter json(sink);
  json.begin_object();
  write_json_preamble(*what.reading, &json);
  json.key("totals").begin_object(Layout::kLine);
  write_amounts(&json, what.metric, tree.total());
  json.end();
  json.key("symbols").begin_array();
  for (uint32_t i = 0; i < tree.symbols(); ++i) {
    const analyze::Symbol& symbol = tree.symbol(analyze::SymbolId{i});
    json.begin_object(Layout::kLine);
    json.member("function", symbol.full);
    write_text(&json, "file", symbol.file);
    json.key("line");
    symbol.line > 0 ? json.value(symbol.line) : json.null();
    write_text(&json, "module", symbol.module);
    json.end();
  }
  json.end();
  // nodes[0] is the root of all and has no symbol; a parent stands before its children.
  json.key("nodes").begin_array();
  for (uint32_t n = 0; n < tree.nodes().size(); ++n) {
    const analyze::CallTree::Node& node = tree.nodes()[n];
    json.begin_object(Layout::kLine);
    json.key("parent");
    n == analyze::CallTree::kRoot ? json.null() : json.value(node.parent);
    json.key("symbol");
    n == analyze::CallTree::kRoot ? json.null() : json.value(static_cast<uint32_t>(node.symbol));
    if (!is_empty(tree.self(n))) write_amounts(&json, what.metric, tree.self(n));
    json.end();
  }
  json.end();
  json.end();
  return {};
}

}  // namespace malloscope::output
