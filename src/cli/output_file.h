// SPDX-License-Identifier: Apache-2.0
// Files that verbs write: never over what they read, and traces under another name until they
// are whole.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wire/chunk.h"

namespace malloscope::cli {

// Whether two names are of one file, also of one that is yet to be made. Devices are no files: any
// number of outputs may go to /dev/null.
bool same_file(const std::string& a, const std::string& b);

// What --force may replace: a file that begins so, as far as it goes. Without words, any file but a
// recording.
struct Replaceable {
  std::string_view beginning, name;
};
inline constexpr Replaceable kTraces = {{wire::kFileMagic, sizeof wire::kFileMagic}, "trace"};

// Why a file that is there is not to be replaced by what is no recording, as a sentence; else
// nothing.
std::string refusal_to_replace(const std::string& output);

// What is wrong with the place for a file made from `inputs`, as a sentence; else nothing.
std::string obstacle(const std::string& output, const std::vector<std::string>& inputs, bool force,
                     const Replaceable& replaceable = {});

// A trace that is there and good is not lost by a failure: the new one takes its place when it is
// whole, and is removed if it never is.
class PartialFile {
 public:
  explicit PartialFile(std::string path);
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;

  const std::string& name() const { return name_; }
  // Made anew, for its owner alone. -1, with errno: it could not be.
  int create();
  // Whether it now has the name it was made for; else errno says why not.
  bool keep();

 private:
  std::string path_, name_;
  bool made_ = false;
};

}  // namespace malloscope::cli
