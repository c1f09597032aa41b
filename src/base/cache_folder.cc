// SPDX-License-Identifier: Apache-2.0
// Other processes write and delete here at the same time, so whatever is gone by now is passed
// over. A mark may stand anywhere in a name: what a killed writer has left has more behind it.

#include "base/cache_folder.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace malloscope {

namespace fs = std::filesystem;

bool make_cache_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(fs::path(folder).parent_path(), error);
  return mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST;
}

void make_room(const std::string& folder, const std::string& mark, uint64_t most_bytes,
               const std::string& spared) {
  struct Kept {
    fs::path path;
    uint64_t bytes;
    fs::file_time_type used;
  };
  std::vector<Kept> files;
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename();
    if (name.find(mark) == name.npos || at->path() == spared) continue;
    std::error_code gone;
    Kept file = {at->path(), at->file_size(gone), at->last_write_time(gone)};
    if (gone) continue;
    bytes += file.bytes;
    files.push_back(std::move(file));
  }
  std::ranges::sort(files, {}, &Kept::used);
  for (const Kept& file : files) {
    if (bytes <= most_bytes) return;
    if (fs::remove(file.path, error)) bytes -= file.bytes;
  }
}

}  // namespace malloscope
