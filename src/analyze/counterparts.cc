// SPDX-License-Identifier: Apache-2.0
// A function is the same if its name and the name of its library are (a rebuilt or
// moved library has another path, and after an upgrade another version number); of two
// recordings with one program each, the programs are the same whatever they are called.
//
// A site is a line of a function. Lines move when something above them is edited, all by
// the same distance: the one by which most lines of the function meet. What is left over
// then is matched in the order of the lines.

#include "analyze/counterparts.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>

namespace malloscope::analyze {
namespace {

std::set<std::string> programs_of(const Reading& reading) {
  std::set<std::string> names;
  for (const trace::Image* image : reading.selected())
    names.insert(library_name(image->executable));
  return names;
}

using Sites = std::vector<size_t>;  // Their places, in the order of their lines.

// By how many lines the sites of a function have moved.
int distance_of(const std::vector<SiteKey>& before, const Sites& old_ones,
                const std::vector<SiteKey>& after, const Sites& new_ones) {
  std::map<int, size_t> met;
  for (size_t b : old_ones)
    for (size_t a : new_ones) ++met[after[a].line - before[b].line];
  int best = 0;
  for (const auto& [distance, count] : met)
    if (count > met[best] || (count == met[best] && std::abs(distance) < std::abs(best)))
      best = distance;
  return best;
}

}  // namespace

std::string library_name(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  size_t so = name.find(".so.");
  return so == std::string::npos ? name : name.substr(0, so + 3);
}

Counterparts::Counterparts(const Reading& before, const Reading& after) {
  std::set<std::string> old_ones = programs_of(before), new_ones = programs_of(after), gone, fresh;
  std::set_difference(old_ones.begin(), old_ones.end(), new_ones.begin(), new_ones.end(),
                      std::inserter(gone, gone.end()));
  std::set_difference(new_ones.begin(), new_ones.end(), old_ones.begin(), old_ones.end(),
                      std::inserter(fresh, fresh.end()));
  if (gone.size() != 1 || fresh.size() != 1) return;
  before_ = *gone.begin();
  after_ = *fresh.begin();
}

std::string Counterparts::function(const std::string& full_name, const std::string& module) const {
  std::string library = library_name(module);
  if (library == after_) library = before_;
  return full_name + '\0' + library;
}

std::vector<SitePair> matched(const std::vector<SiteKey>& before,
                              const std::vector<SiteKey>& after) {
  struct Sides {
    Sites before, after;
  };
  std::map<std::string, Sides> by_function;
  for (size_t i = 0; i < before.size(); ++i) by_function[before[i].function].before.push_back(i);
  for (size_t i = 0; i < after.size(); ++i) by_function[after[i].function].after.push_back(i);

  std::vector<SitePair> pairs;
  for (auto& [function, sides] : by_function) {
    Sites& old_ones = sides.before;
    std::ranges::stable_sort(old_ones, {}, [&](size_t i) { return before[i].line; });
    std::ranges::stable_sort(sides.after, {}, [&](size_t i) { return after[i].line; });
    Sites fresh;
    int distance = distance_of(before, old_ones, after, sides.after);
    for (size_t site : sides.after) {
      auto same = std::ranges::find_if(
          old_ones, [&](size_t old) { return before[old].line + distance == after[site].line; });
      if (same == old_ones.end()) {
        fresh.push_back(site);
        continue;
      }
      pairs.push_back({*same, site});
      old_ones.erase(same);
    }
    size_t moved = std::min(old_ones.size(), fresh.size());
    for (size_t i = 0; i < moved; ++i) pairs.push_back({old_ones[i], fresh[i]});
    for (size_t i = moved; i < old_ones.size(); ++i) pairs.push_back({old_ones[i], std::nullopt});
    for (size_t i = moved; i < fresh.size(); ++i) pairs.push_back({std::nullopt, fresh[i]});
  }
  return pairs;
}

MergedTree::MergedTree(const FunctionTree& before, const FunctionTree& after,
                       const Counterparts& names)
    : FunctionTree(after), node_of_(before.nodes().size()) {
  std::unordered_map<std::string, SymbolId> known;
  for (uint32_t i = 0; i < symbols_.size(); ++i)
    known.try_emplace(names.function(symbols_[i].full, symbols_[i].module), SymbolId{i});
  std::vector<SymbolId> symbol_of(before.symbols());
  for (uint32_t i = 0; i < symbol_of.size(); ++i) {
    const Symbol& symbol = before.symbol(SymbolId{i});
    auto [place, fresh] = known.try_emplace(names.function(symbol.full, symbol.module),
                                            SymbolId{static_cast<uint32_t>(symbols_.size())});
    if (fresh) symbols_.push_back(symbol);
    symbol_of[i] = place->second;
  }

  ChildTable below(nodes_.size() + node_of_.size());
  for (uint32_t i = kRoot + 1; i < nodes_.size(); ++i)
    below.find_or_add(nodes_[i].parent, nodes_[i].symbol, i);
  for (uint32_t i = kRoot + 1; i < node_of_.size(); ++i) {
    uint32_t parent = node_of_[before.nodes()[i].parent];
    SymbolId symbol = symbol_of[static_cast<uint32_t>(before.nodes()[i].symbol)];
    auto next = static_cast<uint32_t>(nodes_.size());
    node_of_[i] = below.find_or_add(parent, symbol, next);
    if (node_of_[i] == next) nodes_.push_back({parent, symbol, 0});
  }
}

}  // namespace malloscope::analyze
