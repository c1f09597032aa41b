// SPDX-License-Identifier: Apache-2.0
#include "serve/file_rows.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "analyze/index_curves.h"
#include "serve/columns.h"
#include "serve/names.h"

namespace malloscope::serve {

using analyze::Explorer;
using analyze::FunctionTree;
using analyze::IndexSums;

enum : uint8_t { kFunction = 0, kOthers = 1, kRoot = 2 };

FileRows::FileRows(const Context& context, size_t most) : context_(context) {
  Explorer& explorer = context.explorer;
  question_ = *Explorer::Question::make(context.names, analyze::Metric::kPeak);
  amounts_ = *explorer.amounts(question_, Explorer::Wanted::kAll, [](std::string_view, double) {});
  auto cpu = *Explorer::Question::make(context.names, analyze::Metric::kCpu);
  if (analyze::has_cpu(explorer.reading().tables()))
    if (auto found =
            explorer.amounts(cpu, Explorer::Wanted::kMetric, [](std::string_view, double) {}))
      cpu_ = *found;
  tree_ = explorer.tree(question_);
  sites_ = explorer.groups(question_, analyze::By::kSite);
  keep(most);
}

void FileRows::keep(size_t most) {
  const Explorer& explorer = context_.explorer;
  size_t all = explorer.rows().size();
  // A stack's weight is its largest share of anything.
  std::vector<float> weight(all);
  auto weigh = [&](const std::vector<uint64_t>& amounts) {
    double sum = 0;
    for (uint64_t amount : amounts) sum += static_cast<double>(amount);
    for (size_t row = 0; sum > 0 && row < all; ++row)
      weight[row] =
          std::max(weight[row], static_cast<float>(static_cast<double>(amounts[row]) / sum));
  };
  for (const std::vector<uint64_t>& amounts : amounts_->counted) weigh(amounts);
  if (cpu_) weigh(cpu_->timed);
  std::vector<uint32_t> order(all);
  std::iota(order.begin(), order.end(), 0u);
  kept_ = std::min(most, all);
  folded_ = all - kept_;
  if (folded_ > 0)
    std::ranges::nth_element(order, order.begin() + static_cast<ptrdiff_t>(kept_),
                             [&](uint32_t a, uint32_t b) {
                               return weight[a] != weight[b] ? weight[a] > weight[b] : a < b;
                             });
  std::vector<bool> is_kept(all);
  for (size_t i = 0; i < kept_; ++i) is_kept[order[i]] = true;

  // The nodes on the way to what is kept, in the order of the tree: parents first.
  const std::vector<FunctionTree::Node>& nodes = tree_->tree->nodes();
  std::vector<bool> is_needed(nodes.size());
  is_needed[FunctionTree::kRoot] = true;
  for (size_t row = 0; row < all; ++row)
    if (is_kept[row])
      for (uint32_t node = tree_->node_of_row[row]; !is_needed[node]; node = nodes[node].parent)
        is_needed[node] = true;
  std::vector<uint32_t> file_node(nodes.size());
  for (uint32_t node = 0; node < nodes.size(); ++node) {
    if (!is_needed[node]) continue;
    file_node[node] = static_cast<uint32_t>(parent_.size());
    parent_.push_back(file_node[nodes[node].parent]);
    symbol_.push_back(static_cast<uint32_t>(nodes[node].symbol));
    kind_.push_back(node == FunctionTree::kRoot ? kRoot : kFunction);
  }
  // What is folded is where its way leaves the tree that is kept; the processes stay apart.
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> others;  // By node and image: the row.
  file_row_of_row_.resize(all);
  for (uint32_t row = 0; row < all; ++row) {
    uint32_t image = raw(explorer.rows()[row].image) - 1, node = tree_->node_of_row[row];
    if (is_kept[row]) {
      file_row_of_row_[row] = static_cast<uint32_t>(rows_.size());
      rows_.push_back({file_node[node], sites_->group_of_row[row], image});
      continue;
    }
    while (!is_needed[node]) node = nodes[node].parent;
    auto [place, fresh] = others.try_emplace({node, image}, static_cast<uint32_t>(rows_.size()));
    if (fresh) {
      rows_.push_back({static_cast<uint32_t>(parent_.size()), Explorer::kNobody, image});
      parent_.push_back(file_node[node]);
      symbol_.push_back(0);
      kind_.push_back(kOthers);
    }
    ++symbol_[rows_[place->second].node];
    file_row_of_row_[row] = place->second;
  }
}

size_t FileRows::sites() const {
  std::vector<bool> has_blocks(sites_->groups.size());
  for (size_t row = 0; row < sites_->group_of_row.size(); ++row)
    if (uint32_t site = sites_->group_of_row[row];
        site != Explorer::kNobody && !context_.explorer.is_of_cpu(row))
      has_blocks[site] = true;
  return static_cast<size_t>(std::ranges::count(has_blocks, true));
}

std::string FileRows::tree() const {
  Columns columns;
  const FunctionTree& calls = *tree_->tree;
  std::vector<uint32_t> place_of(calls.symbols(), Explorer::kNobody), symbols, symbol = symbol_;
  for (size_t i = 0; i < symbol.size(); ++i) {
    if (kind_[i] == kRoot) symbol[i] = 0;
    if (kind_[i] != kFunction) continue;
    uint32_t& place = place_of[symbol[i]];
    if (place == Explorer::kNobody) {
      place = static_cast<uint32_t>(symbols.size());
      symbols.push_back(symbol[i]);
    }
    symbol[i] = place;
  }
  std::vector<uint32_t> row_node, row_site, row_image;
  for (const FileRow& row : rows_) {
    row_node.push_back(row.node);
    row_site.push_back(row.site);
    row_image.push_back(row.image);
  }
  columns.add("parent", parent_);
  columns.add("symbol", symbol);
  columns.add("kind", kind_);
  columns.add("row_node", row_node);
  columns.add("row_site", row_site);
  columns.add("row_image", row_image);
  constexpr const char* kNames[] = {"allocations", "reallocations", "temporary", "allocated",
                                    "live",        "live_blocks",   "peak"};
  auto add = [&](const char* name, const std::vector<uint64_t>& amounts) {
    std::vector<double> sums(rows_.size());
    for (size_t row = 0; row < file_row_of_row_.size(); ++row)
      sums[file_row_of_row_[row]] += static_cast<double>(amounts[row]);
    columns.add(name, sums);
  };
  for (size_t i = 0; i < IndexSums::kAmounts; ++i) add(kNames[i], amounts_->counted[i]);
  if (cpu_) add("cpu", cpu_->timed);
  return columns.finish([&](output::JsonWriter* json) {
    NamesWriter names(json, "symbols");
    for (uint32_t id : symbols) names.add(id, analyze::named(calls.symbol(analyze::SymbolId{id})));
    names.finish();
    NamesWriter sites(json, "sites");
    for (uint32_t i = 0; i < sites_->groups.size(); ++i) sites.add(i, sites_->groups[i].site);
    sites.finish();
    json->key("images").begin_array();
    for (const trace::Image& image : context_.explorer.reading().tables().images)
      json->value(image.pid);
    json->end();
    json->key("others").begin_object();
    json->member("stacks", folded_);
    json->end();
  });
}

std::optional<std::string> FileRows::slices(uint32_t count, size_t most_entries) const {
  Explorer& explorer = context_.explorer;
  if (!explorer.index()) return std::nullopt;
  struct Change {
    uint64_t allocations = 0, reallocations = 0, temporary = 0, allocated = 0;
    int64_t live = 0, live_blocks = 0;
    uint64_t cpu = 0;
  };
  std::vector<Change> changes(rows_.size());
  std::vector<bool> is_touched(rows_.size());
  std::vector<uint32_t> touched;
  std::vector<uint32_t> first, row;
  std::vector<int64_t> allocations, reallocations, temporary, live_blocks;
  std::vector<double> allocated, live;
  std::vector<double> cpu;
  const uint32_t width = analyze::kSlices / count;
  struct Used {
    uint32_t row;
    uint64_t nanoseconds;
  };
  std::vector<std::vector<Used>> used(count);
  explorer.for_each_sample([&](uint32_t of, uint32_t slice, uint64_t nanoseconds) {
    used[slice / width].push_back({file_row_of_row_[of], nanoseconds});
  });
  auto touch = [&](uint32_t to) -> Change& {
    if (!is_touched[to]) touched.push_back(to);
    is_touched[to] = true;
    return changes[to];
  };
  for (uint32_t slice = 0; slice < count; ++slice) {
    first.push_back(static_cast<uint32_t>(row.size()));
    bool known = explorer.for_each_change(slice * width, (slice + 1) * width,
                                          [&](size_t of, const analyze::IndexEntry& entry) {
                                            Change& change = touch(file_row_of_row_[of]);
                                            change.allocations += entry.allocations;
                                            change.reallocations += entry.reallocations;
                                            change.temporary += entry.temporary;
                                            change.allocated += entry.allocated_bytes;
                                            change.live += entry.live_bytes;
                                            change.live_blocks += entry.live_blocks;
                                          });
    for (const Used& some : used[slice]) touch(some.row).cpu += some.nanoseconds;
    if (!known || row.size() + touched.size() > most_entries) return std::nullopt;
    std::ranges::sort(touched);
    for (uint32_t to : touched) {
      const Change& change = changes[to];
      row.push_back(to);
      allocations.push_back(static_cast<int64_t>(change.allocations));
      reallocations.push_back(static_cast<int64_t>(change.reallocations));
      temporary.push_back(static_cast<int64_t>(change.temporary));
      allocated.push_back(static_cast<double>(change.allocated));
      live.push_back(static_cast<double>(change.live));
      live_blocks.push_back(change.live_blocks);
      cpu.push_back(static_cast<double>(change.cpu));
      changes[to] = {};
      is_touched[to] = false;
    }
    touched.clear();
  }
  first.push_back(static_cast<uint32_t>(row.size()));
  std::vector<uint32_t> late_row, late_made, late_freed, late_blocks;
  explorer.for_each_straddler([&](uint32_t of, uint32_t made, uint32_t freed, uint32_t blocks) {
    if (made / width == freed / width) return;
    late_row.push_back(file_row_of_row_[of]);
    late_made.push_back(made / width);
    late_freed.push_back(freed / width);
    late_blocks.push_back(blocks);
  });
  Columns columns;
  columns.add("late_row", late_row);
  columns.add("late_made", late_made);
  columns.add("late_freed", late_freed);
  columns.add("late_blocks", late_blocks);
  columns.add("first", first);
  columns.add("row", row);
  columns.add_numbers("allocations", allocations);
  columns.add_numbers("reallocations", reallocations);
  columns.add_numbers("temporary", temporary);
  columns.add("allocated", allocated);
  columns.add("live", live);
  columns.add_numbers("live_blocks", live_blocks);
  if (cpu_) columns.add("cpu", cpu);
  return columns.finish([&](output::JsonWriter* json) { json->member("slices", count); });
}

std::vector<uint32_t> heaviest_sites(const Context& context, size_t most) {
  Explorer& explorer = context.explorer;
  Explorer::Question question = *Explorer::Question::make(context.names, analyze::Metric::kPeak);
  Explorer::Amounting amounts =
      *explorer.amounts(question, Explorer::Wanted::kAll, [](std::string_view, double) {});
  Explorer::Grouping groups = explorer.groups(question, analyze::By::kSite);
  std::vector<std::pair<uint64_t, uint32_t>> sites(groups->groups.size());
  std::vector<bool> has_blocks(sites.size());
  for (uint32_t i = 0; i < sites.size(); ++i) sites[i].second = i;
  for (size_t row = 0; row < groups->group_of_row.size(); ++row)
    if (uint32_t site = groups->group_of_row[row]; site != Explorer::kNobody) {
      sites[site].first += amounts->counted[IndexSums::kPeakBytes][row];
      if (!explorer.is_of_cpu(row)) has_blocks[site] = true;
    }
  std::erase_if(sites, [&](const auto& site) { return !has_blocks[site.second]; });
  std::ranges::stable_sort(sites, [](auto& a, auto& b) { return a.first > b.first; });
  std::vector<uint32_t> found;
  for (size_t i = 0; i < std::min(most, sites.size()); ++i) found.push_back(sites[i].second);
  return found;
}

}  // namespace malloscope::serve
