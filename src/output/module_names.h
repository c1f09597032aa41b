// SPDX-License-Identifier: Apache-2.0
// What modules are called where there is no room for their paths: as their files, and with as many
// folders as it takes to tell them apart ("bin/git" and "git-core/git", which are one file).

#pragma once

#include <map>
#include <set>
#include <string>

namespace malloscope::output {

class ModuleNames {
 public:
  ModuleNames() = default;
  explicit ModuleNames(const std::set<std::string>& paths);

  std::string of(const std::string& path) const;
  // Whether another module's file has the same name.
  bool is_ambiguous(const std::string& path) const { return names_.contains(path); }

 private:
  std::map<std::string, std::string> names_;  // Of those with folders, by path.
};

}  // namespace malloscope::output
