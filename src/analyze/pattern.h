// SPDX-License-Identifier: Apache-2.0
// A user's regular expression, searched for anywhere in a name. By RE2: names come
// from files that anybody may have written and are up to 30 kB long, and RE2 takes
// linear time and bounded memory on all of them.

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace re2 {
class RE2;
}

namespace malloscope::analyze {

class Pattern {
 public:
  // `option` is what the user typed it for, such as "--focus".
  static Result<Pattern> make(const std::string& text, std::string_view option);

  bool matches(std::string_view name) const;
  bool matches_whole(std::string_view name) const;
  const std::string& text() const { return text_; }

 private:
  Pattern(std::string text, std::shared_ptr<const re2::RE2> compiled)
      : text_(std::move(text)), compiled_(std::move(compiled)) {}

  std::string text_;
  std::shared_ptr<const re2::RE2> compiled_;
};

// Any of them.
bool matches_any(const std::vector<Pattern>& patterns, std::string_view name);

}  // namespace malloscope::analyze
