// SPDX-License-Identifier: Apache-2.0
// An ELF file opened for reading through libelf.

#pragma once

#include <gelf.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace malloscope::symbols {

class ElfFile {
 public:
  // The error says only what is wrong ("Permission denied", "not an ELF file").
  static Result<ElfFile> open(const std::string& path);

  Elf* elf() const { return elf_.get(); }
  const std::string& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }

  // Lower-case hexadecimal, or empty.
  std::string build_id() const;

  // nullptr if there is none with that name.
  Elf_Scn* section(const char* name) const;
  // Also false if the section is there but has no bytes in this file.
  bool has_section(const char* name) const;

  // Where code can be: [start, end) pairs in the file's own addresses, in order.
  struct Range {
    uint64_t start;
    uint64_t end;
  };
  std::vector<Range> code_ranges() const;

 private:
  struct Descriptor {
    explicit Descriptor(int number) : fd(number) {}
    Descriptor(Descriptor&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
      std::swap(fd, other.fd);
      return *this;
    }
    ~Descriptor();
    int fd;
  };
  struct End {
    void operator()(Elf* elf) const { elf_end(elf); }
  };
  explicit ElfFile(int fd) : descriptor_(fd) {}

  std::string path_;
  uint64_t bytes_ = 0;
  Descriptor descriptor_;  // Kept open: libdw looks for related files next to what it refers to.
  std::unique_ptr<Elf, End> elf_;
};

// `ranges` as from code_ranges().
bool contains(const std::vector<ElfFile::Range>& ranges, uint64_t address);

}  // namespace malloscope::symbols
