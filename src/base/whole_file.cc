// SPDX-License-Identifier: Apache-2.0
// It has no name until it is whole (O_TMPFILE), so that nothing is left of one whose writer was
// killed; where a file system cannot do that, it is written under a name of its own. A rename
// then puts it in its place at once: of two writers the later wins.

#include "base/whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

namespace malloscope {

static std::string folder_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == path.npos ? "." : path.substr(0, slash + 1);
}

WholeFile::WholeFile(std::string path)
    : path_(std::move(path)), beside_(path_ + "." + std::to_string(getpid()) + ".new") {
  // By /proc it is given a name in the end.
  if (access("/proc/self/fd", X_OK) == 0)
    fd_ = open(folder_of(path_).c_str(), O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
  nameless_ = fd_ >= 0;
  if (!nameless_)
    fd_ = open(beside_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

WholeFile::~WholeFile() {
  if (fd_ < 0) return;
  close(fd_);
  if (!nameless_) unlink(beside_.c_str());  // Not there any more if it is in its place.
}

void WholeFile::write(const void* bytes, size_t size, uint64_t offset) {
  const auto* from = static_cast<const char*>(bytes);
  while (size > 0 && ok()) {
    ssize_t n = pwrite(fd_, from, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      ok_ = false;
      return;
    }
    from += n;
    size -= static_cast<size_t>(n);
    offset += static_cast<uint64_t>(n);
  }
}

bool WholeFile::finish() {
  if (!ok()) return false;
  if (nameless_) {
    std::string self = "/proc/self/fd/" + std::to_string(fd_);
    if (linkat(AT_FDCWD, self.c_str(), AT_FDCWD, beside_.c_str(), AT_SYMLINK_FOLLOW) != 0)
      return false;
    nameless_ = false;
  }
  return rename(beside_.c_str(), path_.c_str()) == 0;
}

}  // namespace malloscope
