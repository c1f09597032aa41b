// SPDX-License-Identifier: Apache-2.0
// Which stacks somebody looks for, as text: words that their functions' names have in them, joined
// by and, or, not.
//
//     parse                       a function with "parse" in its name, whatever its case
//     Parse "operator new"        both; a capital letter is meant as one, a blank needs quotes
//     parse -std::                one with, and none with; also: parse and not std::
//     (json or /^xml::.*Node$/)   either; between slashes, a regular expression
//
// Each word is looked for in every function of a stack by itself, so a stack is told by which words
// it has met: a number with a bit for each.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/pattern.h"
#include "base/error.h"

namespace malloscope::analyze {

class StackText {
 public:
  static constexpr size_t kMostWords = 64;

  // `option` is what the user typed it for, such as "--where".
  static Result<StackText> parse(std::string_view text, std::string_view option);

  // The words that a function's name has in it.
  uint64_t words_in(std::string_view function) const;
  // Whether that is what was looked for, of a stack whose functions have these words.
  bool holds(uint64_t words) const;

 private:
  friend class StackTextParser;

  // What to do with the truths found so far, the last ones first.
  struct Step {
    enum class What : uint8_t { kWord, kNot, kAnd, kOr };
    What what = What::kWord;
    uint8_t word = 0;
  };

  std::vector<Pattern> words_;
  std::vector<Step> steps_;
};

}  // namespace malloscope::analyze
