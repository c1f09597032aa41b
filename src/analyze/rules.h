// SPDX-License-Identifier: Apache-2.0
// What the user, or a set of rules that comes with us, wants done with frames: rename
// them, fold them into their callers, cut stacks short, take them for the allocator's.
// Whatever the rules do to names and stacks, the sums stay what they are.
// docs/rules.md tells the lines of a file.

#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/pattern.h"
#include "base/error.h"

namespace malloscope::analyze {

// s/REGEX/WITH/ or s/REGEX/WITH/g, with any character for the slash. \1 is the first group.
class Rename {
 public:
  static Result<Rename> make(const std::string& text, std::string_view option);
  // Whether it changed anything.
  bool apply(std::string* name) const;

 private:
  Rename(std::shared_ptr<const re2::RE2> compiled, std::string with, bool all)
      : compiled_(std::move(compiled)), with_(std::move(with)), all_(all) {}

  std::shared_ptr<const re2::RE2> compiled_;
  std::string with_;
  bool all_;
};

struct Rules {
  std::vector<Pattern> plumbing;      // Of own names: whoever calls such a function is the site.
  std::vector<Pattern> fold;          // Frames that are their caller's.
  std::vector<Pattern> fold_modules;  // The same, by the path of the module.
  std::vector<Pattern> cut_above;     // Callers of the outermost match are not shown.
  std::vector<Pattern> cut_below;     // What the outermost match calls is not shown.
  std::vector<Rename> renames;

  // Whether they do more than to choose sites.
  bool reshape() const {
    return !fold.empty() || !fold_modules.empty() || !cut_above.empty() || !cut_below.empty() ||
           !renames.empty();
  }
};

// What holds unless the user says otherwise: the set "allocators".
const Rules& default_rules();

// Adds a rule as it stands behind --fold: "module:REGEX" is for modules.
Result<void> add_fold(const std::string& text, std::string_view option, Rules* rules);

// Adds the lines of a rules file; `origin` is named in the error.
Result<void> add_rule_lines(std::string_view text, std::string_view origin, Rules* rules);

// Adds what was typed behind --rules: names of shipped sets and of files, separated by commas.
// "none" takes away all rules so far, also those that hold by default.
Result<void> add_rules(const std::string& words, Rules* rules);

// Names of the shipped sets, in order.
std::vector<std::string> shipped_rules();

// Applies all renames, in order.
void rename(const Rules& rules, std::string* name);

}  // namespace malloscope::analyze
