// SPDX-License-Identifier: Apache-2.0
// The same questions that the launcher asks of the first program, asked here
// with raw system calls, since this runs in the target, perhaps in a vfork child.

#include "record/exec_check.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "base/syscall.h"

namespace malloscope::record {
namespace {

constexpr size_t kPathRoom = 512;

// The whole file, readable for as long as this lives.
class MappedFile {
 public:
  explicit MappedFile(int fd) {
    if (sys::failed(sys::call(SYS_fstat, fd, sys::arg(&info_))) || !S_ISREG(info_.st_mode) ||
        info_.st_size <= 0)
      return;
    memory_ = sys::map(static_cast<size_t>(info_.st_size), MAP_PRIVATE, fd, PROT_READ);
  }
  ~MappedFile() {
    if (memory_) sys::unmap(memory_, static_cast<size_t>(info_.st_size));
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const char> bytes() const {
    if (!memory_) return {};
    return {static_cast<const char*>(memory_), static_cast<size_t>(info_.st_size)};
  }
  bool gains_rights() const {
    return ((info_.st_mode & S_ISUID) &&
            info_.st_uid != static_cast<uid_t>(sys::call(SYS_geteuid))) ||
           ((info_.st_mode & S_ISGID) &&
            info_.st_gid != static_cast<gid_t>(sys::call(SYS_getegid)));
  }

 private:
  struct stat info_ = {};
  void* memory_ = nullptr;
};

bool is_script(std::span<const char> bytes) {
  return bytes.size() > 2 && bytes[0] == '#' && bytes[1] == '!';
}

// The interpreter of a script; false if it cannot be read off its first line.
bool interpreter_of(std::span<const char> script, char path[kPathRoom]) {
  size_t at = 2, length = 0;
  while (at < script.size() && (script[at] == ' ' || script[at] == '\t')) ++at;
  while (at < script.size() && length + 1 < kPathRoom && !strchr(" \t\n", script[at]))
    path[length++] = script[at++];
  path[length] = 0;
  return length > 0;
}

int open_in_path(const char* file) {
  for (const char* c = file; *c; ++c)
    if (*c == '/') return sys::open(file, O_RDONLY);
  const char* list = "/bin:/usr/bin";
  for (char** variable = environ; variable && *variable; ++variable)
    if (strncmp(*variable, "PATH=", 5) == 0) list = *variable + 5;
  size_t name = strlen(file);
  for (const char* folder = list;;) {
    size_t length = 0;
    while (folder[length] && folder[length] != ':') ++length;
    char path[kPathRoom];
    if (length + name + 2 <= kPathRoom) {
      memcpy(path, folder, length);
      path[length] = '/';
      memcpy(path + length + 1, file, name + 1);
      const char* candidate = length ? path : file;
      if (!sys::failed(sys::call(SYS_faccessat, AT_FDCWD, sys::arg(candidate), X_OK)))
        return sys::open(candidate, O_RDONLY);
    }
    if (!folder[length]) return -1;
    folder += length + 1;
  }
}

}  // namespace

ExecCheck check_exec(int fd) {
  MappedFile file(fd);
  ExecCheck check;
  if (file.bytes().empty()) return check;
  if (is_script(file.bytes())) {
    // The kernel follows one interpreter after another, but two are enough for us.
    char path[kPathRoom];
    if (!interpreter_of(file.bytes(), path)) return check;
    int next = sys::open(path, O_RDONLY);
    if (next < 0) return check;
    MappedFile interpreter(next);
    sys::close(next);
    if (!interpreter.bytes().empty() && !is_script(interpreter.bytes()))
      check.obstacle = obstacle_in(interpreter.bytes());
    return check;
  }
  check.obstacle = obstacle_in(file.bytes());
  check.gains_rights = file.gains_rights();
  return check;
}

ExecCheck check_exec(const char* file, bool search) {
  if (!file) return {};
  int fd = search ? open_in_path(file) : sys::open(file, O_RDONLY);
  if (fd < 0) return {};
  ExecCheck check = check_exec(fd);
  sys::close(fd);
  return check;
}

}  // namespace malloscope::record
