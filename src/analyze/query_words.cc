// SPDX-License-Identifier: Apache-2.0
#include "analyze/query_words.h"

#include <fmt/format.h>

#include <charconv>

#include "analyze/numbers.h"

namespace malloscope::analyze {

Result<Selection> selection_of(std::string_view text, std::string_view option) {
  constexpr std::string_view kImage = "image:";
  std::string_view digits = text;
  bool one_image = digits.starts_with(kImage);
  if (one_image) digits.remove_prefix(kImage.size());
  int number = 0;
  auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || rest != digits.data() + digits.size() || number < 0)
    return fail_usage(fmt::format(
        "{}: {} is neither a pid nor image:N; malloscope info lists the images with both", option,
        text));
  Selection selection;
  if (one_image)
    selection.image = ImageId{static_cast<uint32_t>(number)};
  else
    selection.pid = number;
  return selection;
}

Result<Query> query_of(const QueryWords& words) {
  Query query;
  query.selection = words.selection;
  query.full_names = words.full_names;
  query.symbols = words.symbols;
  query.symbols.cache = words.no_cache ? "" : symbols::NameCache::default_folder();
  std::optional<Error> wrong;
  auto time = [&](const std::string& text, const char* option, std::optional<TimePoint>* point) {
    if (text.empty() || wrong) return;
    if (auto parsed = TimePoint::parse(text, option))
      *point = *parsed;
    else
      wrong = parsed.error();
  };
  auto patterns = [&](const std::vector<std::string>& texts, const char* option,
                      std::vector<Pattern>* list) {
    for (const std::string& text : texts) {
      if (wrong) return;
      if (auto made = Pattern::make(text, option))
        list->push_back(*made);
      else
        wrong = made.error();
    }
  };
  auto size = [&](const std::string& text, const char* option, uint64_t* bytes) {
    if (text.empty() || wrong) return;
    if (auto parsed = bytes_of(text, option))
      *bytes = *parsed;
    else
      wrong = parsed.error();
  };
  time(words.from, "--from", &query.from);
  time(words.to, "--to", &query.to);
  if (!words.at.empty() && (query.from || query.to))
    return fail("--at is one instant; it cannot be combined with --from or --to");
  time(words.at, "--at", &query.to);
  patterns(words.threads, "--thread", &query.threads);
  patterns(words.phases, "--phase", &query.phases);
  patterns(words.modules, "--module", &query.frames.modules);
  patterns(words.focus, "--focus", &query.frames.focus);
  patterns(words.ignore, "--ignore", &query.frames.ignore);
  patterns(words.only_under, "--only-under", &query.frames.only_under);
  patterns(words.hide, "--hide", &query.frames.hide);
  patterns(words.types, "--type", &query.frames.types);
  if (!words.where.empty() && !wrong) {
    if (auto parsed = StackText::parse(words.where, "--where"))
      query.frames.where = std::move(*parsed);
    else
      wrong = parsed.error();
  }
  auto rules = [&](const std::vector<std::string>& texts, auto&& add) {
    for (const std::string& text : texts) {
      if (wrong) return;
      if (Result<void> added = add(text); !added) wrong = added.error();
    }
  };
  rules(words.rules, [&](const std::string& text) { return add_rules(text, &query.rules); });
  rules(words.folds,
        [&](const std::string& text) { return add_fold(text, "--fold", &query.rules); });
  rules(words.renames, [&](const std::string& text) -> Result<void> {
    Result<Rename> made = Rename::make(text, "--rename");
    if (!made) return std::unexpected(made.error());
    query.rules.renames.push_back(*made);
    return {};
  });
  patterns(words.cut_above, "--cut-above", &query.rules.cut_above);
  patterns(words.cut_below, "--cut-below", &query.rules.cut_below);
  size(words.min_size, "--min-size", &query.tally.min_size);
  size(words.max_size, "--max-size", &query.tally.max_size);
  if (!wrong && query.tally.min_size > query.tally.max_size)
    wrong = Error{
        fmt::format("--min-size {} is more than --max-size {}", words.min_size, words.max_size)};
  if (wrong) return std::unexpected(*wrong);
  return query;
}

}  // namespace malloscope::analyze
