// SPDX-License-Identifier: Apache-2.0
// A script is judged by its interpreter, as the kernel follows it; everything else
// by its ELF file.

#include "collect/program_check.h"

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

#include "base/elf.h"
#include "wire/event.h"

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

// The loader ignores LD_PRELOAD in a program that gains rights by being executed.
bool gains_rights(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return false;
  if ((info.st_mode & S_ISUID) && info.st_uid != geteuid()) return true;
  if ((info.st_mode & S_ISGID) && info.st_gid != getegid()) return true;
  return geteuid() != 0 && getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

void judge(const MappedFile& file, ProgramCheck* check) {
  const std::string& path = check->path;
  Obstacle obstacle = obstacle_in(file.bytes());
  if (obstacle != Obstacle::kNone)
    check->obstacle = fmt::format("{} {}", path, words_for(static_cast<uint64_t>(obstacle)));
  else if (gains_rights(path))
    check->obstacle = fmt::format("{} {}", path, words_for(wire::kGainsRights));
  else if (ElfFile(file.bytes()).defines("malloc"))
    check->warning = fmt::format(
        "{} brings its own allocator (it defines malloc itself), whose calls inside the program "
        "cannot be seen",
        path);
}

}  // namespace

const char* words_for(uint64_t why) {
  if (why == wire::kGainsRights)
    return "runs with other rights than yours (setuid, setgid or capabilities)";
  if (why == wire::kUnreachable)
    return "was started where the recorder cannot be seen (chroot, or another user)";
  if (why == wire::kSandboxed)
    return "was started from inside a sandbox (seccomp), which might kill it for joining";
  switch (static_cast<Obstacle>(why)) {
    case Obstacle::kNone:
      break;
    case Obstacle::kNotElf:
      return "is not an ELF program";
    case Obstacle::k32Bit:
      return "is a 32-bit program";
    case Obstacle::kOtherCpu:
      return "is a program for another CPU";
    case Obstacle::kStatic:
      return "is statically linked";
    case Obstacle::kMusl:
      return "uses the musl C library, not glibc";
    case Obstacle::kSanitizer:
      return "was built with a sanitizer";
  }
  return "cannot take the recorder";
}

std::expected<ProgramCheck, NoProgram> check_program(const std::string& command) {
  ProgramCheck check;
  check.path = find_in_path(command);
  struct stat info;
  if (check.path.empty() || stat(check.path.c_str(), &info) != 0)
    return std::unexpected(
        NoProgram{fmt::format("there is no program '{}'{}", command,
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
    auto bytes = file.bytes();
    if (bytes.size() < 2 || bytes[0] != '#' || bytes[1] != '!') {
      judge(file, &check);
      check.path = program;
      return check;
    }
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
        std::string real =
            find_in_path(line.substr(name, end == std::string::npos ? end : end - name));
        if (!real.empty()) interpreter = real;
      }
    }
    check.path = interpreter;
  }
  check.path = program;
  return check;
}

}  // namespace malloscope::collect
