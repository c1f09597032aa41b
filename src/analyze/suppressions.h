// SPDX-License-Identifier: Apache-2.0
// Which leaks are known and not to be told: lines of suppression files, those of
// LeakSanitizer among them.
//
//     # a comment
//     leak:PATTERN        function, file or module of any frame, as LeakSanitizer matches it
//     originator:REGEX    the function that is blamed for the leak
//     any:REGEX           the function of any frame
//     module:REGEX        the library or program of the function that is blamed

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/frames.h"
#include "analyze/pattern.h"
#include "base/error.h"

namespace malloscope::analyze {

struct Suppression {
  enum class Kind { kLeak, kOriginator, kAny, kModule };
  Kind kind;
  Pattern pattern;
  std::string line;   // As it was written.
  std::string where;  // "glibc.supp:12".
};

class Suppressions {
 public:
  // `name` is for sentences and for where().
  Result<void> add(std::string_view text, const std::string& name);
  Result<void> add_file(const std::string& path);
  void add_shipped();

  const std::vector<Suppression>& list() const { return list_; }

 private:
  std::vector<Suppression> list_;
};

// Which suppression a stack meets first, in the order of the list. Asks each about each frame
// only once.
class SuppressionMatcher {
 public:
  static constexpr size_t kNone = SIZE_MAX;

  // Both must outlive it.
  SuppressionMatcher(const Suppressions& suppressions, const FrameTable& frames)
      : list_(suppressions.list()), frames_(frames) {}

  // `stack` is whole, `site` the frame that is blamed.
  size_t match(const std::vector<FrameId>& stack, FrameId site);

 private:
  using Known = std::vector<uint32_t>;  // By FrameId: 1 + place in the list; see ask().
  size_t ask(Known* known, FrameId frame, bool as_site);

  const std::vector<Suppression>& list_;
  const FrameTable& frames_;
  Known as_frame_, as_site_;
};

// The files of share/suppressions/, compiled in.
struct ShippedSuppressions {
  const char* name;
  const char* text;
};
std::vector<ShippedSuppressions> shipped_suppressions();

}  // namespace malloscope::analyze
