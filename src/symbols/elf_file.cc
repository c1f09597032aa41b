// SPDX-License-Identifier: Apache-2.0

#include "symbols/elf_file.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace malloscope::symbols {

ElfFile::Descriptor::~Descriptor() {
  if (fd >= 0) close(fd);
}

Result<ElfFile> ElfFile::open(const std::string& path) {
  static const bool known_version = elf_version(EV_CURRENT) != EV_NONE;
  if (!known_version) return fail("libelf is too old");

  // Not blocking, so that a path that is now a pipe does not hang us.
  ElfFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  int fd = file.descriptor_.fd;
  if (fd < 0) return fail(strerror(errno));
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return fail("not a regular file");
  file.path_ = path;
  file.bytes_ = static_cast<uint64_t>(status.st_size);
  file.elf_.reset(elf_begin(fd, ELF_C_READ_MMAP, nullptr));
  if (!file.elf_ || elf_kind(file.elf()) != ELF_K_ELF) return fail("not an ELF file");
  GElf_Ehdr header;
  if (!gelf_getehdr(file.elf(), &header)) return fail("its ELF header is damaged");
  return file;
}

std::string ElfFile::build_id() const {
  const void* bytes = nullptr;
  ssize_t count = dwelf_elf_gnu_build_id(elf(), &bytes);
  std::string hex;
  for (ssize_t i = 0; i < count; ++i)
    hex += fmt::format("{:02x}", static_cast<const uint8_t*>(bytes)[i]);
  return hex;
}

Elf_Scn* ElfFile::section(const char* name) const {
  size_t names = 0;
  if (elf_getshdrstrndx(elf(), &names) != 0) return nullptr;
  for (Elf_Scn* s = nullptr; (s = elf_nextscn(elf(), s));) {
    GElf_Shdr header;
    if (!gelf_getshdr(s, &header)) continue;
    const char* found = elf_strptr(elf(), names, header.sh_name);
    if (found && strcmp(found, name) == 0) return s;
  }
  return nullptr;
}

bool ElfFile::has_section(const char* name) const {
  GElf_Shdr header;
  Elf_Scn* found = section(name);
  return found && gelf_getshdr(found, &header) && header.sh_type != SHT_NOBITS &&
         header.sh_size > 0;
}

// Sections rather than segments where there are any: with some linkers the code's
// segment begins with the file's headers, at address 0, where discarded functions
// seem to be.
std::vector<ElfFile::Range> ElfFile::code_ranges() const {
  std::vector<Range> ranges;
  auto add = [&](uint64_t start, uint64_t bytes) {
    if (bytes > 0 && start + bytes > start) ranges.push_back({start, start + bytes});
  };
  for (Elf_Scn* s = nullptr; (s = elf_nextscn(elf(), s));) {
    GElf_Shdr header;
    if (gelf_getshdr(s, &header) && (header.sh_flags & SHF_EXECINSTR) &&
        (header.sh_flags & SHF_ALLOC))
      add(header.sh_addr, header.sh_size);
  }
  size_t segments = 0;
  if (ranges.empty() && elf_getphdrnum(elf(), &segments) == 0) {
    for (size_t i = 0; i < segments; ++i) {
      GElf_Phdr header;
      if (gelf_getphdr(elf(), static_cast<int>(i), &header) && header.p_type == PT_LOAD &&
          (header.p_flags & PF_X))
        add(header.p_vaddr, header.p_memsz);
    }
  }
  std::ranges::sort(ranges, {}, &Range::start);
  return ranges;
}

bool contains(const std::vector<ElfFile::Range>& ranges, uint64_t address) {
  auto after = std::ranges::upper_bound(ranges, address, {}, &ElfFile::Range::start);
  return after != ranges.begin() && address < std::prev(after)->end;
}

}  // namespace malloscope::symbols
