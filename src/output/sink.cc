// SPDX-License-Identifier: Apache-2.0
#include "output/sink.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace malloscope::output {

void FileSink::write(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= 64 << 10) flush();
}

void FileSink::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty() && !error_) {
    ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written >= 0)
      rest.remove_prefix(static_cast<size_t>(written));
    else if (errno != EINTR)
      error_ = errno;
  }
  buffer_.clear();
}

Result<void> FileSink::finish() {
  flush();
  if (!error_) return {};
  if (error_ == EPIPE)
    return fail(fmt::format("{} was closed by its reader before the end", name_));
  return fail(fmt::format("{} could not be written to its end: {}", name_, std::strerror(error_)));
}

}  // namespace malloscope::output
