// SPDX-License-Identifier: Apache-2.0
// What the kernel tells about another process. All of it is optional: /proc may
// not be mounted, the process may be gone.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace malloscope::collect {

std::string executable_of(int pid);

// The program file itself, whatever it is called by now.
struct FileId {
  uint64_t device = 0, inode = 0;  // 0: not known.
  bool known() const { return inode != 0; }
  bool operator==(const FileId&) const = default;
};
FileId executable_id_of(int pid);

// False also for one that has ended and not been waited for yet.
bool is_alive(int pid);

std::vector<std::string> command_of(int pid);
// The folder it works in now.
std::string folder_of(int pid);
// Where the file is that a process has at `address` and calls by a relative `path`: from the folder
// it works in now, else from `folder`, where it began, else as the kernel says. `path` itself if
// there is no such file.
std::string absolute_path(int pid, const std::string& folder, const std::string& path,
                          uint64_t address);
int parent_of(int pid);
uint64_t peak_rss_of(int pid);

// A number for the namespace that pids are ours in; 0 if nobody can tell.
uint64_t own_pid_namespace();
// Whether the children of `pid` are numbered as we see them. False also if nobody can tell.
bool shares_pid_namespace(int pid);

// The process that calls itself `pid`, in whatever pid namespace it is, and has the file with
// this inode mapped. 0 if there is none (any more); `pid` itself if /proc cannot tell.
int find_process(int pid, uint64_t mapped_inode);

// A descriptor that becomes readable when the process ends; -1 if it is gone.
int open_pidfd(int pid);

// How the process behind a pidfd ended, as from wait(). The kernel tells once the process
// has been waited for, and only since Linux 6.15.
std::optional<int> exit_status_of(int pidfd);

}  // namespace malloscope::collect
