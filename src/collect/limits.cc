// SPDX-License-Identifier: Apache-2.0
// Only what bounds our own work is raised. The limit on the stack is not: it decides how the
// memory of an exec'd program is laid out, and nobody here needs more.

#include "collect/limits.h"

#include <errno.h>
#include <fmt/format.h>

#include <cstring>

namespace malloscope::collect {
namespace {

constexpr rlim_t kMiB = 1 << 20;

// A limit by what the kernel says when it is met.
struct Limit {
  int error;
  __rlimit_resource resource;
  const char* on;
  char letter;    // As `ulimit` knows it.
  rlim_t enough;  // To record a few processes.
  bool in_bytes;
};
constexpr Limit kTold[] = {
    {EMFILE, RLIMIT_NOFILE, "open files", 'n', 64, false},
    {EFBIG, RLIMIT_FSIZE, "file sizes", 'f', 64 * kMiB, true},
    {ENOMEM, RLIMIT_AS, "address space", 'v', 512 * kMiB, true},
};
constexpr __rlimit_resource kRaised[] = {RLIMIT_NOFILE, RLIMIT_FSIZE, RLIMIT_AS,
                                         RLIMIT_NPROC,  RLIMIT_DATA,  RLIMIT_CPU};

std::string amount(rlim_t value, bool in_bytes) {
  if (!in_bytes) return fmt::format("{}", value);
  return value % kMiB ? fmt::format("{} KiB", value / 1024) : fmt::format("{} MiB", value / kMiB);
}

}  // namespace

RaisedLimits::RaisedLimits() {
  for (__rlimit_resource resource : kRaised) {
    rlimit before;
    if (getrlimit(resource, &before) != 0 || before.rlim_cur == before.rlim_max) continue;
    rlimit most = {before.rlim_max, before.rlim_max};
    if (setrlimit(resource, &most) == 0) raised_.push_back({resource, before});
  }
}

void RaisedLimits::restore() const {
  for (const Raised& limit : raised_) setrlimit(limit.resource, &limit.before);
}

std::string limit_behind(int error) {
  for (const Limit& limit : kTold) {
    rlimit now;
    if (limit.error != error || getrlimit(limit.resource, &now) != 0) continue;
    if (now.rlim_max >= limit.enough) continue;  // RLIM_INFINITY is the largest number.
    return fmt::format(
        "the hard limit on {} (ulimit -H{}) is {}; start malloscope where it is {} or more",
        limit.on, limit.letter, amount(now.rlim_max, limit.in_bytes),
        amount(limit.enough, limit.in_bytes));
  }
  return {};
}

// For the standard ones, the memory, the socket, the launcher, the trace; and to meet one process.
std::string hopeless_limit() {
  constexpr rlim_t kFewestDescriptors = 16;
  rlimit now;
  bool few = getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_max < kFewestDescriptors;
  return few ? limit_behind(EMFILE) : "";
}

std::string with_reason(const std::string& what) {
  int error = errno;
  std::string limit = limit_behind(error);
  return fmt::format("{}: {}", what, limit.empty() ? strerror(error) : limit);
}

}  // namespace malloscope::collect
