// SPDX-License-Identifier: Apache-2.0
#include "analyze/rules.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <cstring>
#include <sstream>

#include "analyze/text_file.h"

namespace malloscope::analyze {
namespace {

struct Shipped {
  std::string_view name;
  std::string_view text;
};
// Made from the files in rules/.
constexpr Shipped kShipped[] = {
#include "shipped_rules.inc"
};

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

// Up to the next `end` that no backslash stands before; "\/" becomes "/". False if there is none.
bool take_part(std::string_view* rest, char end, std::string* part) {
  for (size_t i = 0; i < rest->size(); ++i) {
    char c = (*rest)[i];
    if (c == end) {
      rest->remove_prefix(i + 1);
      return true;
    }
    if (c == '\\' && i + 1 < rest->size()) {
      ++i;
      if ((*rest)[i] != end) *part += '\\';
    }
    *part += (*rest)[i];
  }
  return false;
}

Result<void> add_line(std::string_view line, std::string_view origin, Rules* rules) {
  size_t space = line.find_first_of(" \t");
  std::string verb(line.substr(0, space));
  std::vector<Pattern>* list = verb == "plumbing"    ? &rules->plumbing
                               : verb == "cut-above" ? &rules->cut_above
                               : verb == "cut-below" ? &rules->cut_below
                                                     : nullptr;
  if (!list && verb != "fold") {
    if (line[0] == 's' && line.size() > 1 && !std::isalnum(static_cast<unsigned char>(line[1]))) {
      Result<Rename> made = Rename::make(std::string(line), origin);
      if (!made) return std::unexpected(made.error());
      rules->renames.push_back(*made);
      return {};
    }
    return fail(fmt::format(
        "{}: '{}' is no rule; those are s/REGEX/WITH/, fold, cut-above, cut-below and plumbing",
        origin, line));
  }
  size_t start = space == line.npos ? line.npos : line.find_first_not_of(" \t", space);
  if (start == line.npos) return fail(fmt::format("{}: '{}' needs a REGEX", origin, verb));
  std::string regex(line.substr(start));
  if (!list) return add_fold(regex, origin, rules);
  Result<Pattern> made = Pattern::make(regex, origin);
  if (!made) return std::unexpected(made.error());
  list->push_back(*made);
  return {};
}

}  // namespace

Result<Rename> Rename::make(const std::string& text, std::string_view option) {
  std::string regex, with;
  std::string_view rest = text;
  bool good = rest.size() > 2 && rest[0] == 's' && rest[1] != '\\';
  if (good) {
    char slash = rest[1];
    rest.remove_prefix(2);
    good = take_part(&rest, slash, &regex) && take_part(&rest, slash, &with) &&
           (rest.empty() || rest == "g") && !regex.empty();
  }
  if (!good) return fail(fmt::format("{} '{}' is not of the form s/REGEX/WITH/", option, text));
  re2::RE2::Options options;
  options.set_log_errors(false);
  auto compiled = std::make_shared<const re2::RE2>(piece(regex), options);
  if (!compiled->ok())
    return fail(
        fmt::format("{} '{}' is not a regular expression: {}", option, regex, compiled->error()));
  std::string error;
  if (!compiled->CheckRewriteString(piece(with), &error))
    return fail(fmt::format("{} '{}' cannot be put in: {}", option, with, error));
  return Rename(std::move(compiled), std::move(with), rest == "g");
}

bool Rename::apply(std::string* name) const {
  // A rule may make names longer, and another longer again: not without end.
  constexpr size_t kLongest = 1 << 20;
  if (name->size() > kLongest) return false;
  return all_ ? re2::RE2::GlobalReplace(name, *compiled_, piece(with_)) > 0
              : re2::RE2::Replace(name, *compiled_, piece(with_));
}

void rename(const Rules& rules, std::string* name) {
  if (rules.renames.empty()) return;
  std::string before = *name;
  for (const Rename& rule : rules.renames) rule.apply(name);
  if (name->empty()) *name = std::move(before);
}

Result<void> add_fold(const std::string& text, std::string_view option, Rules* rules) {
  constexpr std::string_view kModule = "module:";
  bool module = text.starts_with(kModule);
  Result<Pattern> made = Pattern::make(module ? text.substr(kModule.size()) : text, option);
  if (!made) return std::unexpected(made.error());
  (module ? rules->fold_modules : rules->fold).push_back(*made);
  return {};
}

Result<void> add_rule_lines(std::string_view text, std::string_view origin, Rules* rules) {
  for (size_t number = 1; !text.empty(); ++number) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())))
      line.remove_suffix(1);
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.front())))
      line.remove_prefix(1);
    if (line.empty() || line[0] == '#') continue;
    if (auto added = add_line(line, fmt::format("{}:{}", origin, number), rules); !added)
      return added;
  }
  return {};
}

static Result<void> add_rule_file(const std::string& path, Rules* rules) {
  Result<std::string> text = read_text_file(path);
  if (!text) {
    std::string names;
    for (const std::string& name : shipped_rules()) names += (names.empty() ? "" : ", ") + name;
    return fail(fmt::format("--rules '{}' is neither a file ({}) nor one of {}", path,
                            text.error().sentence, names));
  }
  return add_rule_lines(*text, path, rules);
}

Result<void> add_rules(const std::string& words, Rules* rules) {
  std::istringstream list(words);
  for (std::string word; std::getline(list, word, ',');) {
    if (word.empty()) continue;
    if (word == "none") {
      *rules = Rules();
      continue;
    }
    const Shipped* shipped = nullptr;
    for (const Shipped& known : kShipped)
      if (known.name == word) shipped = &known;
    auto added = shipped ? add_rule_lines(shipped->text, word, rules) : add_rule_file(word, rules);
    if (!added) return added;
  }
  return {};
}

const Rules& default_rules() {
  static const Rules kRules = [] {
    Rules rules;
    Result<void> added = add_rules("allocators", &rules);
    return added ? rules : Rules();  // A test reads all shipped sets.
  }();
  return kRules;
}

std::vector<std::string> shipped_rules() {
  std::vector<std::string> names;
  for (const Shipped& known : kShipped) names.emplace_back(known.name);
  return names;
}

}  // namespace malloscope::analyze
