// SPDX-License-Identifier: Apache-2.0
// The limits (ulimit) that a program is started under are meant for it. The launcher and the
// collector have work of their own to do, and so raise theirs as far as they may.

#pragma once

#include <sys/resource.h>

#include <string>
#include <vector>

namespace malloscope::collect {

// Raises the limits of this process, and of those that it forks, to the hard ones.
class RaisedLimits {
 public:
  RaisedLimits();
  // As they were: for the program, before it is exec'd.
  void restore() const;

 private:
  struct Raised {
    __rlimit_resource resource;
    rlimit before;
  };
  std::vector<Raised> raised_;
};

// "`what`: why", where errno says why. If a hard limit is behind it, which, and what would do.
std::string with_reason(const std::string& what);

// The hard limit that may be behind an error, as a sentence; empty if there is none so low.
std::string limit_behind(int error);

// The same of a limit that need not be tried: a collector would start but could meet nobody.
std::string hopeless_limit();

}  // namespace malloscope::collect
