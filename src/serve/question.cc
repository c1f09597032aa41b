// SPDX-License-Identifier: Apache-2.0
#include "serve/question.h"

#include <fmt/format.h>

#include <charconv>

namespace malloscope::serve {

using analyze::Explorer;
using analyze::QueryWords;

std::string word(const Parameters& parameters, const std::string& name,
                 const std::string& otherwise) {
  auto found = parameters.find(name);
  return found == parameters.end() || found->second.empty() ? otherwise : found->second;
}

Result<uint64_t> number(const Parameters& parameters, const std::string& name, uint64_t otherwise) {
  std::string text = word(parameters, name);
  if (text.empty()) return otherwise;
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return fail_usage(fmt::format("{}={} is not a whole number", name, text));
  return value;
}

Result<QueryWords> query_words(const Parameters& parameters, const QueryWords& names) {
  QueryWords words = names;
  auto all = [&](const std::string& name, std::vector<std::string>* list) {
    auto [from, to] = parameters.equal_range(name);
    for (auto it = from; it != to; ++it)
      if (!it->second.empty()) list->push_back(it->second);
  };
  words.from = word(parameters, "from");
  words.to = word(parameters, "to");
  words.at = word(parameters, "at");
  words.where = word(parameters, "where");
  all("hide", &words.hide), all("under", &words.only_under), all("thread", &words.threads),
      all("phase", &words.phases);
  all("module", &words.modules), all("type", &words.types);
  words.min_size = word(parameters, "min_size");
  words.max_size = word(parameters, "max_size");
  if (word(parameters, "full_names") == "1") words.full_names = true;
  if (std::string pid = word(parameters, "process"); !pid.empty()) {
    Result<analyze::Selection> selection = analyze::selection_of(pid, "--process");
    if (!selection) return std::unexpected(selection.error());
    words.selection = *selection;
  }
  return words;
}

// Whatever is wrong with it, it is the question and not the trace.
static Result<Explorer::Question> made(const QueryWords& words, analyze::Metric metric) {
  Result<Explorer::Question> question = Explorer::Question::make(words, metric);
  if (!question) return fail_usage(question.error().sentence);
  return question;
}

Result<Explorer::Question> question_of(const Parameters& parameters, const QueryWords& names) {
  Result<QueryWords> words = query_words(parameters, names);
  if (!words) return std::unexpected(words.error());
  std::string metric = word(parameters, "metric", "peak");
  // What is live is so at an instant; what leaked was made in the range.
  if (metric == "live") words->from.clear();
  if (metric == "leaked") metric = "live";
  static const auto kMetrics = analyze::metrics();
  auto found = kMetrics.find(metric);
  if (found == kMetrics.end()) return fail_usage(fmt::format("there is no metric '{}'", metric));
  return made(*words, found->second);
}

Result<std::optional<Explorer::Question>> question_before(const Parameters& parameters,
                                                          const QueryWords& names) {
  if (word(parameters, "before_from").empty() && word(parameters, "before_to").empty())
    return std::nullopt;
  Parameters other = parameters;
  other.erase("from");
  other.erase("to");
  other.emplace("from", word(parameters, "before_from"));
  other.emplace("to", word(parameters, "before_to"));
  Result<Explorer::Question> question = question_of(other, names);
  if (!question) return std::unexpected(question.error());
  return std::move(*question);
}

}  // namespace malloscope::serve
