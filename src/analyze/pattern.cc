// SPDX-License-Identifier: Apache-2.0
#include "analyze/pattern.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

namespace malloscope::analyze {

static re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

Result<Pattern> Pattern::make(const std::string& text, std::string_view option) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  auto compiled = std::make_shared<const re2::RE2>(piece(text), options);
  if (!compiled->ok())
    return fail(
        fmt::format("{} '{}' is not a regular expression: {}", option, text, compiled->error()));
  return Pattern(text, std::move(compiled));
}

bool Pattern::matches(std::string_view name) const {
  return re2::RE2::PartialMatch(piece(name), *compiled_);
}

bool Pattern::matches_whole(std::string_view name) const {
  return re2::RE2::FullMatch(piece(name), *compiled_);
}

bool matches_any(const std::vector<Pattern>& patterns, std::string_view name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const Pattern& pattern) { return pattern.matches(name); });
}

}  // namespace malloscope::analyze
