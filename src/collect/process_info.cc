// SPDX-License-Identifier: Apache-2.0

#include "collect/process_info.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

namespace malloscope::collect {

static std::string contents(const std::string& path) {
  std::string all;
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return all;
  char buffer[4096];
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0 && all.size() < (1 << 20);)
    all.append(buffer, static_cast<size_t>(n));
  close(fd);
  return all;
}

static std::string link_of(int pid, const char* name) {
  char path[4096];
  ssize_t n = readlink(fmt::format("/proc/{}/{}", pid, name).c_str(), path, sizeof path);
  return n > 0 ? std::string(path, static_cast<size_t>(n)) : std::string();
}

std::string executable_of(int pid) { return link_of(pid, "exe"); }
std::string folder_of(int pid) { return link_of(pid, "cwd"); }

// The file that is mapped there, or empty.
static std::string file_at(int pid, uint64_t address) {
  // start-end perms offset device inode path
  std::istringstream lines(contents(fmt::format("/proc/{}/maps", pid)));
  for (std::string line; std::getline(lines, line);) {
    char* rest = nullptr;
    uint64_t start = strtoull(line.c_str(), &rest, 16);
    uint64_t end = *rest == '-' ? strtoull(rest + 1, nullptr, 16) : 0;
    if (address < start || address >= end) continue;
    size_t slash = line.find('/');
    return slash == std::string::npos ? "" : line.substr(slash);
  }
  return "";
}

std::string absolute_path(int pid, const std::string& folder, const std::string& path,
                          uint64_t address) {
  namespace fs = std::filesystem;
  std::error_code error;
  for (const fs::path from : {folder_of(pid), folder}) {
    if (from.empty() || !fs::is_regular_file(from / path, error)) continue;
    // A link's name stays: it is what the program asked for.
    fs::path place = fs::canonical((from / path).parent_path(), error);
    if (!error) return place / fs::path(path).filename();
  }
  // It was somewhere else in between. What is mapped there by now may be another file.
  fs::path mapped = file_at(pid, address);
  return mapped.filename() == fs::path(path).filename() ? mapped.string() : path;
}

FileId executable_id_of(int pid) {
  struct stat info;
  if (stat(fmt::format("/proc/{}/exe", pid).c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino};
}

bool is_alive(int pid) {
  if (kill(pid, 0) != 0 && errno == ESRCH) return false;
  std::string stat = contents(fmt::format("/proc/{}/stat", pid));
  size_t end = stat.rfind(')');
  return end == std::string::npos || end + 2 >= stat.size() ||
         (stat[end + 2] != 'Z' && stat[end + 2] != 'X');
}

std::vector<std::string> command_of(int pid) {
  std::vector<std::string> command;
  std::string all = contents(fmt::format("/proc/{}/cmdline", pid));
  for (size_t at = 0; at < all.size();) {
    size_t end = all.find('\0', at);
    if (end == std::string::npos) end = all.size();
    command.push_back(all.substr(at, end - at));
    at = end + 1;
  }
  return command;
}

int parent_of(int pid) {
  // pid (name) state ppid; the name may hold anything, so look behind its last parenthesis.
  std::string stat = contents(fmt::format("/proc/{}/stat", pid));
  size_t end = stat.rfind(')');
  if (end == std::string::npos || end + 4 > stat.size()) return 0;
  return atoi(stat.c_str() + end + 4);
}

uint64_t peak_rss_of(int pid) {
  std::string status = contents(fmt::format("/proc/{}/status", pid));
  size_t at = status.find("VmHWM:");
  return at == std::string::npos ? 0 : strtoull(status.c_str() + at + 6, nullptr, 10) * 1024;
}

uint64_t own_pid_namespace() {
  struct stat info;
  return stat("/proc/self/ns/pid", &info) == 0 ? info.st_ino : 0;
}

bool shares_pid_namespace(int pid) {
  auto namespace_of = [](const std::string& process) {
    char name[64];
    ssize_t n =
        readlink(fmt::format("/proc/{}/ns/pid_for_children", process).c_str(), name, sizeof name);
    return n > 0 ? std::string(name, static_cast<size_t>(n)) : std::string();
  };
  std::string theirs = namespace_of(std::to_string(pid));
  return !theirs.empty() && theirs == namespace_of("self");
}

static bool maps(int pid, uint64_t inode) {
  // start-end perms offset device inode path
  std::string all = contents(fmt::format("/proc/{}/maps", pid));
  return all.find(fmt::format(" {} ", inode)) != std::string::npos;
}

int find_process(int pid, uint64_t mapped_inode) {
  if (maps(pid, mapped_inode)) return pid;
  DIR* proc = opendir("/proc");
  int found = proc && access("/proc/self/maps", R_OK) == 0 ? 0 : pid;
  while (proc && found == 0) {
    const dirent* entry = readdir(proc);
    if (!entry) break;
    int candidate = atoi(entry->d_name);
    if (candidate <= 0) continue;
    // NSpid: the pid in each namespace, outermost first.
    std::string status = contents(fmt::format("/proc/{}/status", candidate));
    size_t line = status.find("\nNSpid:");
    if (line == std::string::npos) continue;
    size_t end = status.find('\n', line + 1), last = status.find_last_of(" \t", end);
    if (atoi(status.c_str() + last + 1) == pid && maps(candidate, mapped_inode)) found = candidate;
  }
  if (proc) closedir(proc);
  return found;
}

int open_pidfd(int pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

std::optional<int> exit_status_of(int pidfd) {
  // struct pidfd_info of <linux/pidfd.h>, which is newer than the headers we build with.
  struct Info {
    uint64_t mask, cgroup;
    uint32_t pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
    int32_t exit_code;
  } info = {};
  constexpr uint64_t kExit = 1 << 3;
  info.mask = kExit;
  if (ioctl(pidfd, _IOWR(0xff, 11, Info), &info) != 0 || !(info.mask & kExit)) return std::nullopt;
  return info.exit_code;
}

}  // namespace malloscope::collect
