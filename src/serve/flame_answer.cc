// SPDX-License-Identifier: Apache-2.0
// api/flame: the tree of functions, as much of it as can be drawn.

#include <charconv>
#include <string_view>
#include <unordered_map>

#include "analyze/flame.h"
#include "serve/answers.h"
#include "serve/columns.h"
#include "serve/names.h"

namespace malloscope::serve {
namespace {

using analyze::Explorer;
using analyze::FlameNode;
using analyze::FlameOptions;
using analyze::SymbolId;

constexpr size_t kMostNodes = 50'000;

Result<FlameOptions> options_of(const Parameters& parameters, const analyze::FunctionTree& tree) {
  FlameOptions options;
  using Shape = FlameOptions::Shape;
  if (word(parameters, "inverted") == "1") options.shape = Shape::kOutwards;
  for (auto [name, shape] :
       {std::pair("callers_of", Shape::kCallers), std::pair("callees_of", Shape::kCallees)}) {
    if (word(parameters, name).empty()) continue;
    Result<uint64_t> symbol = number(parameters, name, 0);
    if (!symbol) return std::unexpected(symbol.error());
    if (*symbol >= tree.symbols()) return fail_usage("there is no such function in this tree");
    options.shape = shape;
    options.symbol = SymbolId{static_cast<uint32_t>(*symbol)};
  }
  Result<uint64_t> root = number(parameters, "root", analyze::FunctionTree::kRoot);
  Result<uint64_t> most = number(parameters, "most", kMostNodes);
  if (!root) return std::unexpected(root.error());
  if (!most) return std::unexpected(most.error());
  if (*root >= tree.nodes().size()) return fail_usage("there is no such node in this tree");
  options.root = static_cast<uint32_t>(*root);
  options.most = std::clamp<size_t>(*most, 1, kMostNodes);
  // "12.5.7": the symbols from the root on.
  std::string way = word(parameters, "way");
  for (const char *at = way.data(), *end = at + way.size(); at < end; ++at) {
    uint32_t symbol = 0;
    auto [next, error] = std::from_chars(at, end, symbol);
    if (error != std::errc() || (next < end && *next != '.') || symbol >= tree.symbols())
      return fail_usage("way= is not a way through this tree");
    options.way.push_back(SymbolId{symbol});
    at = next;
  }
  return options;
}

// What is to be drawn.
struct Drawn {
  std::shared_ptr<const void> owner;  // Of the tree and who is below whom in it.
  const analyze::FunctionTree* tree = nullptr;
  const analyze::NodeChildren* children = nullptr;
  analyze::NodeValues values, before;  // The latter only if two are compared.
};

using Asked = const Explorer::Question&;
using Progress = const Explorer::Progress&;

// A range of one recording, perhaps with another range.
Result<Drawn> of_one(Explorer* explorer, Asked question,
                     const std::optional<Explorer::Question>& before_question,
                     const Explorer::Amounted& amounts, Progress progress) {
  Explorer::Treeing tree = explorer->tree(question);
  Drawn drawn = {tree,
                 tree->tree.get(),
                 tree->children.get(),
                 explorer->values(*tree, amounts, question.metric),
                 {}};
  if (!before_question) return drawn;
  Result<Explorer::Amounting> then =
      explorer->amounts(*before_question, Explorer::Wanted::kMetric, progress);
  if (!then) return std::unexpected(then.error());
  drawn.before = explorer->values(*tree, **then, question.metric);
  return drawn;
}

// A recording with the one before.
Result<Drawn> since_then(analyze::Comparison* comparison, Asked question, Asked before_question,
                         const Explorer::Amounted& amounts, Progress progress) {
  Result<Explorer::Amounting> then =
      comparison->before().amounts(before_question, Explorer::Wanted::kMetric, progress);
  if (!then) return std::unexpected(then.error());
  analyze::Comparison::Treeing tree = comparison->tree(question);
  return Drawn{tree, &tree->tree, &tree->children,
               comparison->values_after(*tree, amounts, question.metric),
               comparison->values_before(*tree, **then, question.metric)};
}

}  // namespace

Result<std::string> flame_answer(const Context& context, const Parameters& parameters) {
  Result<Explorer::Question> question = question_of(parameters, context.names);
  if (!question) return std::unexpected(question.error());
  auto before_question = question_before(parameters, context.names);
  if (!before_question) return std::unexpected(before_question.error());
  Result<bool> since_base = is_since_base(context, parameters);
  if (!since_base) return std::unexpected(since_base.error());
  Jobs::Running job(&context.jobs, "building the flame graph", context.asked);
  auto progress = [&](std::string_view what, double share) { job.show(what, share); };

  Explorer& explorer = context.explorer;
  Result<Explorer::Amounting> amounts =
      explorer.amounts(*question, Explorer::Wanted::kMetric, progress);
  if (!amounts) return std::unexpected(amounts.error());
  Result<Drawn> drawn =
      *since_base
          ? since_then(context.comparison, *question,
                       *before_question ? **before_question : *question, **amounts, progress)
          : of_one(&explorer, *question, *before_question, **amounts, progress);
  if (!drawn) return std::unexpected(drawn.error());
  context.let_others();
  const analyze::FunctionTree& tree = *drawn->tree;
  Result<FlameOptions> options = options_of(parameters, tree);
  if (!options) return std::unexpected(options.error());
  std::vector<FlameNode> nodes =
      analyze::flame(tree, *drawn->children, drawn->values, drawn->before, *options);
  bool compared = !drawn->before.empty();

  Columns columns;
  size_t n = nodes.size();
  std::vector<uint32_t> parent(n), symbol(n), id(n);
  std::vector<uint8_t> kind(n);
  std::vector<double> total(n), self(n), was(n);
  std::unordered_map<uint32_t, uint32_t> place_of;  // By SymbolId.
  std::vector<SymbolId> symbols;
  uint64_t others = 0, other_stacks = 0;
  for (size_t i = 0; i < n; ++i) {
    const FlameNode& node = nodes[i];
    parent[i] = node.parent;
    kind[i] = static_cast<uint8_t>(node.kind);
    id[i] = node.id;
    total[i] = static_cast<double>(node.total);
    self[i] = static_cast<double>(node.self);
    was[i] = static_cast<double>(node.before);
    if (node.kind == FlameNode::Kind::kOthers) {
      others += node.total;
      other_stacks += node.stacks;
      symbol[i] = static_cast<uint32_t>(node.stacks);
    } else if (node.kind == FlameNode::Kind::kFunction) {
      auto [place, fresh] = place_of.try_emplace(static_cast<uint32_t>(node.symbol),
                                                 static_cast<uint32_t>(symbols.size()));
      if (fresh) symbols.push_back(node.symbol);
      symbol[i] = place->second;
    }
  }
  columns.add("parent", parent);
  columns.add("symbol", symbol);
  columns.add("kind", kind);
  columns.add("total", total);
  columns.add("self", self);
  columns.add("id", id);
  if (compared) columns.add("before", was);
  return columns.finish([&](output::JsonWriter* json) {
    write_metric_members(question->metric, json);
    json->member("total", n > 0 ? nodes[0].total : 0);
    if (compared) json->member("total_before", n > 0 ? nodes[0].before : 0);
    json->member("unfiltered", value((*amounts)->unfiltered, question->metric));
    json->member("nodes_of_all", tree.nodes().size());
    json->key("others").begin_object();
    json->member("stacks", other_stacks);
    json->member("amount", others);
    json->end();
    NamesWriter names(json, "symbols");
    for (SymbolId each : symbols)
      names.add(static_cast<uint32_t>(each), analyze::named(tree.symbol(each)));
    names.finish();
  });
}

}  // namespace malloscope::serve
