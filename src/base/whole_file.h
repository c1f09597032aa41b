// SPDX-License-Identifier: Apache-2.0
// A file that others see whole or not at all, whatever interrupts its writer. For the tools.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace malloscope {

class WholeFile {
 public:
  // For the user alone (0600). Nothing is to be seen at `path` before finish().
  explicit WholeFile(std::string path);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;

  // False from the first failure on.
  bool ok() const { return fd_ >= 0 && ok_; }
  void write(const void* bytes, size_t size, uint64_t offset);
  // To read back what was written.
  int fd() const { return fd_; }

  // Puts it in the place of what was at `path`. False if anything has failed.
  bool finish();

 private:
  std::string path_, beside_;
  int fd_ = -1;
  bool nameless_ = false;
  bool ok_ = true;
};

}  // namespace malloscope
