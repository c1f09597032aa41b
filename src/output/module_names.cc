// SPDX-License-Identifier: Apache-2.0
#include "output/module_names.h"

#include <vector>

#include "output/words.h"

namespace malloscope::output {

// The file and so many folders that it is in, or the whole path.
static std::string ending(const std::string& path, size_t folders) {
  size_t slash = path.rfind('/');
  for (; folders > 0 && slash != 0 && slash != std::string::npos; --folders)
    slash = path.rfind('/', slash - 1);
  return folders > 0 || slash == std::string::npos ? path : path.substr(slash + 1);
}

ModuleNames::ModuleNames(const std::set<std::string>& paths) {
  std::map<std::string, std::vector<std::string>> by_file;
  for (const std::string& path : paths) by_file[base_name(path)].push_back(path);
  for (const auto& [file, same] : by_file) {
    if (same.size() < 2) continue;
    std::set<std::string> different;
    for (size_t folders = 1; different.size() < same.size(); ++folders) {
      different.clear();
      for (const std::string& path : same) different.insert(names_[path] = ending(path, folders));
    }
  }
}

std::string ModuleNames::of(const std::string& path) const {
  auto name = names_.find(path);
  return name == names_.end() ? base_name(path) : name->second;
}

}  // namespace malloscope::output
