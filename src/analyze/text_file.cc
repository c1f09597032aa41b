// SPDX-License-Identifier: Apache-2.0
#include "analyze/text_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>

namespace malloscope::analyze {

Result<std::string> read_text_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kLargestTextFile + 1, '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.gcount() == 0 && (errno != 0 || file.bad()))
    return fail(errno ? std::strerror(errno) : "it is no file");
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kLargestTextFile) return fail("it is larger than any such file, 16 MiB");
  return text;
}

}  // namespace malloscope::analyze
