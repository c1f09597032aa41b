// SPDX-License-Identifier: Apache-2.0
// The names in a column of a table, made to fit without looking alike: what mostly goes first,
// template arguments, may be all that two of them differ in.

#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "output/words.h"
#include "symbols/readable_name.h"

namespace malloscope::output {

class FittedNames {
 public:
  // To be called for every row before the first is written.
  // `full` is the whole name, if that is not it.
  void add(std::string_view name, std::string_view full, size_t room) {
    if (full.empty()) full = name;
    auto [known, fresh] = names_.try_emplace(fitted(name, room), full);
    if (!fresh && known->second != full) alike_.insert(known->first);
  }

  std::string of(std::string_view name, std::string_view full, size_t room) const {
    std::string text = fitted(name, room);
    if (!alike_.contains(text)) return text;
    return cut_middle(full.empty() ? name : printable(symbols::short_name(full, SIZE_MAX)), room);
  }

 private:
  static std::string fitted(std::string_view name, size_t room) {
    return cut_middle(symbols::fitted_name(name, room), room);
  }

  std::map<std::string, std::string> names_;  // By what they look like.
  std::set<std::string> alike_;
};

}  // namespace malloscope::output
