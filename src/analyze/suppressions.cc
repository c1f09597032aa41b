// SPDX-License-Identifier: Apache-2.0
// LeakSanitizer's patterns are no regular expressions: a plain text to be found
// anywhere, in which * stands for anything, ^ at the front for the beginning and $ for the
// end. They become regular expressions here, so that all lines are matched in the same,
// linear, way.

#include "analyze/suppressions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "analyze/text_file.h"

namespace malloscope::analyze {
namespace {

constexpr std::string_view kSpace = " \t\r\f\v";

std::string_view trimmed(std::string_view text) {
  size_t first = text.find_first_not_of(kSpace);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// The same names as LeakSanitizer's template; what stands behind a $ is not looked at, as there.
std::string regex_of_template(std::string_view text) {
  std::string regex = "(?s)";
  if (text.starts_with('^')) {
    regex += "\\A";
    text.remove_prefix(1);
  }
  for (char c : text) {
    if (c == '$') return regex + "\\z";
    auto byte = static_cast<unsigned char>(c);
    if (c == '*')
      regex += "\\C*";  // Also bytes that are no text.
    else if (byte >= 0x80 || isalnum(byte) || c == '_')
      regex += c;
    else
      regex += fmt::format("\\x{{{:x}}}", byte);
  }
  return regex;
}

struct Prefix {
  std::string_view text;
  Suppression::Kind kind;
};
constexpr Prefix kPrefixes[] = {{"leak:", Suppression::Kind::kLeak},
                                {"originator:", Suppression::Kind::kOriginator},
                                {"any:", Suppression::Kind::kAny},
                                {"module:", Suppression::Kind::kModule}};

}  // namespace

Result<void> Suppressions::add(std::string_view text, const std::string& name) {
  for (size_t number = 1; !text.empty(); ++number) {
    size_t end = text.find('\n');
    std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.empty() || line.starts_with('#')) continue;
    std::string where = fmt::format("{}:{}", name, number);
    const Prefix* prefix = std::find_if(std::begin(kPrefixes), std::end(kPrefixes),
                                        [&](const Prefix& p) { return line.starts_with(p.text); });
    if (prefix == std::end(kPrefixes))
      return fail(
          fmt::format("{}: '{}' is no suppression; a line is leak:PATTERN, "
                      "originator:REGEX, any:REGEX, module:REGEX or a # comment",
                      where, line.substr(0, 200)));
    std::string pattern(line.substr(prefix->text.size()));
    if (pattern.empty())
      return fail(
          fmt::format("{}: '{}' has no pattern and would suppress everything", where, line));
    Result<Pattern> compiled = Pattern::make(
        prefix->kind == Suppression::Kind::kLeak ? regex_of_template(pattern) : pattern,
        where + ":");
    if (!compiled) return std::unexpected(compiled.error());
    list_.push_back({prefix->kind, std::move(*compiled), std::string(line), std::move(where)});
  }
  return {};
}

Result<void> Suppressions::add_file(const std::string& path) {
  Result<std::string> text = read_text_file(path);
  if (!text)
    return fail(fmt::format("--suppressions {} cannot be read: {}", path, text.error().sentence));
  return add(*text, path);
}

void Suppressions::add_shipped() {
  for (const ShippedSuppressions& file : shipped_suppressions())
    if (!add(file.text, file.name)) continue;  // Never: a test reads them all.
}

size_t SuppressionMatcher::ask(Known* known, FrameId frame, bool as_site) {
  constexpr uint32_t kNotAsked = 0, kNobody = UINT32_MAX;
  auto i = static_cast<size_t>(frame);
  if (i >= known->size()) known->resize(std::max(i + 1, known->size() * 2), kNotAsked);
  uint32_t& first = (*known)[i];
  if (first == kNotAsked) {
    const Frame& named = frames_.frame(frame);
    auto suppresses = [&](const Suppression& s) {
      switch (s.kind) {
        case Suppression::Kind::kLeak:
          return !as_site && (s.pattern.matches(named.function) ||
                              (!named.file.empty() && s.pattern.matches(named.file)) ||
                              (!named.module.empty() && s.pattern.matches(named.module)));
        case Suppression::Kind::kAny:
          return !as_site && s.pattern.matches(named.function);
        case Suppression::Kind::kOriginator:
          return as_site && s.pattern.matches(named.function);
        case Suppression::Kind::kModule:
          return as_site && s.pattern.matches(named.module);
      }
      return false;
    };
    auto found = std::find_if(list_.begin(), list_.end(), suppresses);
    first = found == list_.end() ? kNobody : static_cast<uint32_t>(found - list_.begin() + 1);
  }
  return first == kNobody ? kNone : first - 1;
}

size_t SuppressionMatcher::match(const std::vector<FrameId>& stack, FrameId site) {
  if (list_.empty()) return kNone;
  size_t first = ask(&as_site_, site, /*as_site=*/true);
  for (FrameId frame : stack) first = std::min(first, ask(&as_frame_, frame, /*as_site=*/false));
  return first;
}

}  // namespace malloscope::analyze
