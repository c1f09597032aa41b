// SPDX-License-Identifier: Apache-2.0
// Answers of earlier reports, by build-id, so that nobody waits for the same debug
// information twice.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "symbols/module_names.h"

namespace malloscope::symbols {

// A file that the answers depend on, as it was then; `there` false: there was none.
struct Witness {
  std::string path;
  bool there = false;
  uint64_t bytes = 0;
  uint64_t changed_ns = 0;
  uint64_t inode = 0;

  static Witness of(std::string path);
  bool operator==(const Witness&) const = default;
};

class NameCache {
 public:
  // An empty folder: nothing is kept. `kind` stands for settings that lead to other answers.
  NameCache(std::string folder, std::string kind)
      : folder_(std::move(folder)), kind_(std::move(kind)) {}

  // XDG_CACHE_HOME/malloscope, ~/.cache/malloscope, or empty if there is no home.
  static std::string default_folder();

  struct Entry {
    ModuleNames names;
    std::vector<Witness> witnesses;
  };
  // What is kept of a module, if nothing that it depends on has changed since.
  std::optional<Entry> load(const ModuleFile& file) const;
  // What anybody ever knew of this code, wherever its file lay, if that was more than `known`: the
  // file may have been rebuilt or moved since, but a build-id names the same code for ever. The
  // best that is known of each place; nothing of those that have no name.
  std::optional<ModuleNames> once_known(const ModuleFile& file, Detail known) const;
  // Nobody is told if it cannot be kept.
  void store(Entry entry) const;

  // Of all files together; the oldest go first.
  static constexpr uint64_t kMostBytes = uint64_t{512} << 20;

 private:
  std::string path_of(const ModuleFile& file) const;
  static std::optional<Entry> read(const std::string& path, Detail least = Detail::kNone);

  std::string folder_, kind_;
  // What the folder has, listed when first needed.
  mutable std::vector<std::string> names_;
  mutable bool listed_ = false;
};

}  // namespace malloscope::symbols
