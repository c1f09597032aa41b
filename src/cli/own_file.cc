// SPDX-License-Identifier: Apache-2.0
// Where the files are that were installed with us: the recorder, the player.

#include <sys/auxv.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>

#include "cli/commands.h"

namespace malloscope::cli {

// Installed, they lie in the library folder; built, beside our own folder.
std::string own_file(const char* name) {
  char self[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n <= 0) {
    // Without /proc, the path that the kernel was given.
    const char* given = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
    if (!given || !realpath(given, self)) return {};
    n = static_cast<ssize_t>(strlen(self));
  }
  std::string folder(self, static_cast<size_t>(n));
  folder.resize(folder.rfind('/'));
  for (const char* place : {"/../lib/malloscope/", MSCOPE_RECORDER_FOLDER}) {
    std::string candidate = folder + place + name;
    char real[PATH_MAX];
    if (access(candidate.c_str(), R_OK) == 0 && realpath(candidate.c_str(), real)) return real;
  }
  return {};
}

}  // namespace malloscope::cli
