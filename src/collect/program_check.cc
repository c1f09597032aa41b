// SPDX-License-Identifier: Apache-2.0
// A script is judged by its interpreter, as the kernel follows it. Everything
// else is read from the ELF file: its class, whether it names a dynamic loader
// and which, whether it brings a sanitizer or an allocator of its own.

#include "collect/program_check.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace malloscope::collect {
namespace {

// A whole file in memory, for as long as this lives. Empty if it cannot be had.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
      void* memory =
          mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
      if (memory != MAP_FAILED)
        bytes_ = {static_cast<const char*>(memory), static_cast<size_t>(info.st_size)};
    }
    if (fd >= 0) close(fd);
  }
  ~MappedFile() {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // `count` objects at `offset`, or nothing if they are not all in the file.
  template <typename T>
  std::span<const T> at(uint64_t offset, uint64_t count = 1) const {
    if (offset > bytes_.size() || count > (bytes_.size() - offset) / sizeof(T)) return {};
    return {reinterpret_cast<const T*>(bytes_.data() + offset), count};
  }
  std::string_view text(uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    const char* start = bytes_.data() + offset;
    return {start, strnlen(start, bytes_.size() - offset)};
  }
  std::span<const char> bytes() const { return bytes_; }

 private:
  std::span<const char> bytes_;
};

std::string find_in_path(const std::string& command) {
  if (command.find('/') != std::string::npos) return command;
  const char* path = getenv("PATH");
  std::string_view rest = path ? path : "/usr/local/bin:/usr/bin:/bin";
  while (true) {
    size_t end = rest.find(':');
    std::string folder(rest.substr(0, end));
    std::string candidate = (folder.empty() ? "." : folder) + "/" + command;
    struct stat info;
    if (access(candidate.c_str(), X_OK) == 0 && stat(candidate.c_str(), &info) == 0 &&
        S_ISREG(info.st_mode))
      return candidate;
    if (end == std::string_view::npos) return {};
    rest.remove_prefix(end + 1);
  }
}

// What a dynamic ELF file says of itself.
struct Dynamic {
  std::string interpreter;
  std::vector<std::string> needed;
  bool defines_malloc = false;
};

uint64_t file_offset(std::span<const Elf64_Phdr> segments, uint64_t address) {
  for (const Elf64_Phdr& s : segments)
    if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz)
      return address - s.p_vaddr + s.p_offset;
  return UINT64_MAX;
}

// The number of dynamic symbols is told only by the hash tables.
uint64_t count_symbols(const MappedFile& file, std::span<const Elf64_Phdr> segments,
                       uint64_t gnu_hash) {
  auto head = file.at<uint32_t>(gnu_hash, 4);
  if (head.empty()) return 0;
  uint64_t buckets_at = gnu_hash + 16 + head[2] * uint64_t{8};
  auto buckets = file.at<uint32_t>(buckets_at, head[0]);
  uint32_t last = 0;
  for (uint32_t bucket : buckets) last = std::max(last, bucket);
  if (last < head[1]) return head[1];
  for (uint64_t chain = buckets_at + head[0] * uint64_t{4};; ++last) {
    auto value = file.at<uint32_t>(chain + (last - head[1]) * uint64_t{4});
    if (value.empty() || (value[0] & 1)) return last + uint64_t{1};
  }
  (void)segments;
}

Dynamic read_dynamic(const MappedFile& file, std::span<const Elf64_Phdr> segments) {
  Dynamic result;
  uint64_t strings = UINT64_MAX, symbols = UINT64_MAX, gnu_hash = UINT64_MAX;
  std::vector<uint64_t> needed;
  for (const Elf64_Phdr& s : segments) {
    if (s.p_type == PT_INTERP) result.interpreter = file.text(s.p_offset);
    if (s.p_type != PT_DYNAMIC) continue;
    for (const Elf64_Dyn& d : file.at<Elf64_Dyn>(s.p_offset, s.p_filesz / sizeof(Elf64_Dyn))) {
      if (d.d_tag == DT_NULL) break;
      if (d.d_tag == DT_NEEDED) needed.push_back(d.d_un.d_val);
      if (d.d_tag == DT_STRTAB) strings = file_offset(segments, d.d_un.d_ptr);
      if (d.d_tag == DT_SYMTAB) symbols = file_offset(segments, d.d_un.d_ptr);
      if (d.d_tag == DT_GNU_HASH) gnu_hash = file_offset(segments, d.d_un.d_ptr);
    }
  }
  if (strings == UINT64_MAX) return result;
  for (uint64_t name : needed) result.needed.emplace_back(file.text(strings + name));
  if (symbols == UINT64_MAX || gnu_hash == UINT64_MAX) return result;
  for (const Elf64_Sym& symbol :
       file.at<Elf64_Sym>(symbols, count_symbols(file, segments, gnu_hash)))
    if (symbol.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC &&
        file.text(strings + symbol.st_name) == "malloc")
      result.defines_malloc = true;
  return result;
}

bool has_word(const MappedFile& file, std::string_view word) {
  return memmem(file.bytes().data(), file.bytes().size(), word.data(), word.size()) != nullptr;
}

void judge(const MappedFile& file, ProgramCheck* check) {
  auto header = file.at<Elf64_Ehdr>(0);
  const std::string& path = check->path;
  if (header.empty() || memcmp(header[0].e_ident, ELFMAG, SELFMAG) != 0) {
    check->obstacle = fmt::format("{} is not an ELF program", path);
    return;
  }
  if (header[0].e_ident[EI_CLASS] != ELFCLASS64) {
    check->obstacle = fmt::format("{} is a 32-bit program", path);
    return;
  }
  if (header[0].e_machine != EM_X86_64) {
    check->obstacle = fmt::format("{} is a program for another CPU", path);
    return;
  }
  auto segments = file.at<Elf64_Phdr>(header[0].e_phoff, header[0].e_phnum);
  Dynamic dynamic = read_dynamic(file, segments);
  if (dynamic.interpreter.empty()) {
    check->obstacle = fmt::format("{} is statically linked", path);
    return;
  }
  if (dynamic.interpreter.find("musl") != std::string::npos) {
    check->obstacle = fmt::format("{} uses the musl C library, not glibc", path);
    return;
  }
  for (const std::string& library : dynamic.needed)
    for (const char* sanitizer : {"libasan", "libtsan", "libmsan", "liblsan", "libhwasan"})
      if (library.find(sanitizer) != std::string::npos) {
        check->obstacle = fmt::format("{} was built with a sanitizer ({})", path, library);
        return;
      }
  if (dynamic.defines_malloc)
    for (const char* runtime : {"__asan_init", "__tsan_init", "__msan_init", "__lsan_init"})
      if (has_word(file, runtime)) {
        check->obstacle = fmt::format("{} was built with a sanitizer", path);
        return;
      }
  struct stat info;
  if (stat(path.c_str(), &info) == 0 &&
      (((info.st_mode & S_ISUID) && info.st_uid != geteuid()) ||
       ((info.st_mode & S_ISGID) && info.st_gid != getegid()))) {
    check->obstacle = fmt::format("{} changes its user (setuid or setgid)", path);
    return;
  }
  if (getxattr(path.c_str(), "security.capability", nullptr, 0) > 0 && geteuid() != 0) {
    check->obstacle = fmt::format("{} has file capabilities", path);
    return;
  }
  if (dynamic.defines_malloc)
    check->warning = fmt::format(
        "{} brings its own allocator (it defines malloc itself), whose calls inside the program "
        "cannot be seen",
        path);
}

}  // namespace

std::expected<ProgramCheck, NoProgram> check_program(const std::string& command) {
  ProgramCheck check;
  check.path = find_in_path(command);
  struct stat info;
  if (check.path.empty() || stat(check.path.c_str(), &info) != 0)
    return std::unexpected(NoProgram{
        fmt::format("there is no program '{}'{}", command,
                    command.find('/') == std::string::npos ? " in PATH" : ""),
        true});
  if (S_ISDIR(info.st_mode))
    return std::unexpected(NoProgram{fmt::format("'{}' is a folder", check.path), false});
  if (access(check.path.c_str(), X_OK) != 0)
    return std::unexpected(
        NoProgram{fmt::format("'{}' may not be executed: {}", check.path, strerror(errno)), false});

  std::string program = check.path;
  for (int depth = 0; depth < 5; ++depth) {
    MappedFile file(check.path);
    auto start = file.at<char>(0, 2);
    if (start.empty() || start[0] != '#' || start[1] != '!') {
      judge(file, &check);
      check.path = program;
      return check;
    }
    auto bytes = file.bytes();
    std::string line(bytes.data() + 2, std::min<size_t>(bytes.size() - 2, 255));
    line.resize(std::min(line.size(), line.find('\n')));
    size_t from = line.find_first_not_of(" \t");
    if (from == std::string::npos) break;
    size_t to = line.find_first_of(" \t", from);
    std::string interpreter = line.substr(from, to == std::string::npos ? to : to - from);
    // `#!/usr/bin/env python3` means python3.
    if (interpreter.ends_with("/env") && to != std::string::npos) {
      size_t name = line.find_first_not_of(" \t", to);
      size_t end = name == std::string::npos ? name : line.find_first_of(" \t", name);
      if (name != std::string::npos && line[name] != '-') {
        std::string real = find_in_path(line.substr(name, end == std::string::npos ? end : end - name));
        if (!real.empty()) interpreter = real;
      }
    }
    check.path = interpreter;
  }
  check.path = program;
  return check;
}

}  // namespace malloscope::collect
