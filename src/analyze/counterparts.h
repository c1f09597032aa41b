// SPDX-License-Identifier: Apache-2.0
// Which function, and which site, of a recording is which of another one. By name, so that a
// rebuilt program is still the same program.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "analyze/call_tree.h"
#include "analyze/reading.h"

namespace malloscope::analyze {

// "/opt/app-2/libfoo.so.1.2" -> "libfoo.so".
std::string library_name(const std::string& path);

// What functions and sites of two recordings are known by.
class Counterparts {
 public:
  Counterparts(const Reading& before, const Reading& after);

  // Of the same function on both sides it is the same.
  std::string function(const std::string& full_name, const std::string& module) const;

 private:
  // The program of `after` that has no namesake in `before`, and the one there that is taken for
  // it.
  std::string before_, after_;
};

struct SiteKey {
  std::string function;  // As Counterparts has it.
  int line = 0;
};

// One of them may be missing.
struct SitePair {
  std::optional<size_t> before, after;
};
std::vector<SitePair> matched(const std::vector<SiteKey>& before,
                              const std::vector<SiteKey>& after);

// The functions of two recordings in one tree: first that of `after`, as it is, and then what only
// `before` has.
class MergedTree : public FunctionTree {
 public:
  MergedTree(const FunctionTree& before, const FunctionTree& after, const Counterparts& names);
  // Of a node of `before`.
  uint32_t node_of(uint32_t node) const { return node_of_[node]; }

 private:
  std::vector<uint32_t> node_of_;
};

}  // namespace malloscope::analyze
