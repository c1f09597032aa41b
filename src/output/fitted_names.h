// SPDX-License-Identifier: Apache-2.0
// The names in a column of a table, made to fit without looking alike: what mostly goes first,
// template arguments, may be all that two of them differ in.

#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "output/words.h"
#include "symbols/readable_name.h"

namespace malloscope::output {

class FittedNames {
 public:
  // To be called for every row before the first is written. `full` is the whole name, if `name` is
  // not.
  void add(std::string_view name, std::string_view full, size_t room) {
    if (full.empty()) full = name;
    std::set<std::string>& names = names_[fitted(name, room)];
    if (names.empty() || !names.contains(std::string(full))) names.emplace(full);
  }

  std::string of(std::string_view name, std::string_view full, size_t room) const {
    std::string text = fitted(name, room);
    auto group = names_.find(text);
    if (group == names_.end() || group->second.size() < 2) return text;
    std::string own = plain(full.empty() ? name : full);
    size_t alike = 0;  // As far as it is like one of the others.
    for (const std::string& other : group->second)
      if (std::string theirs = plain(other); theirs != own)
        alike = std::max(alike,
                         static_cast<size_t>(std::ranges::mismatch(own, theirs).in1 - own.begin()));
    if (columns(own) <= room) return own;
    // Its beginning, and then from shortly before it becomes another.
    constexpr size_t kBefore = 6;
    size_t front = room / 3, from = alike > kBefore ? alike - kBefore : 0;
    if (from <= front) return cut_end(own, room);
    while (from < own.size() && (own[from] & 0xc0) == 0x80) ++from;  // Not within a character.
    return cut_end(cut_end(own, front) + own.substr(from), room);
  }

 private:
  static std::string fitted(std::string_view name, size_t room) {
    return cut_middle(symbols::fitted_name(name, room), room);
  }
  static std::string plain(std::string_view name) { return printable(symbols::simplified(name)); }

  std::map<std::string, std::set<std::string>> names_;  // Whole names by what they look like.
};

}  // namespace malloscope::output
