// SPDX-License-Identifier: Apache-2.0
// The words of a command line, and what verbs that read a trace have in common.

#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/answer.h"
#include "analyze/numbers.h"
#include "analyze/query.h"
#include "analyze/query_words.h"
#include "analyze/sites.h"
#include "analyze/suppressions.h"
#include "cli/commands.h"

namespace malloscope::cli {

using analyze::bytes_of;
using analyze::query_of;
using analyze::QueryWords;

// Parses `words`; an exit code if there is nothing more to do.
std::optional<int> parse(CLI::App& app, Words words, std::string_view example);

// One of `words`; the help says so in its own way.
CLI::Validator one_of(Words words);
// Words with commas between them, none of them empty.
CLI::Validator list_of_words();

// The keys of a map from the words of an option, and the same in one text.
template <typename Map>
Words keys_of(const Map& map) {
  Words words;
  for (const auto& [key, unused] : map) words.push_back(key);
  return words;
}
std::string listed(const Words& words);
// "What is counted [peak]:" and what each metric is.
std::string metrics_help(const std::map<std::string, analyze::Metric>& metrics,
                         std::string_view by_default = "peak");

CLI::Option* add_color(CLI::App& app, Color* color);
CLI::Option* add_trace(CLI::App& app, std::string* trace);
CLI::Option* add_json(CLI::App& app, bool* json, std::string_view what = "One JSON object");
// Of a process all images, or by its number one: an exec keeps the pid, and recordings that were
// merged may share one.
CLI::Option* add_process(CLI::App& app, analyze::Selection* selection);
// "process 4711", "image 3".
std::string selection_text(const analyze::Selection& selection);

// Where to find symbols; --no-cache.
void add_symbols(CLI::App& app, symbols::SymbolOptions* options, bool* no_cache);
void add_query(CLI::App& app, QueryWords* words);

// --columns, --sort, --top.
struct ShapeWords {
  std::string columns;
  std::string sort;
  size_t top = 0;
};
void add_shape(CLI::App& app, ShapeWords* words, std::string_view top_help);
analyze::Shape shape_of(const ShapeWords& words);

// --suppressions, --no-default-suppressions.
struct SuppressionWords {
  std::vector<std::string> files;
  bool no_defaults = false;
};
void add_suppressions(CLI::App& app, SuppressionWords* words);
// The user's lines first: they are to be counted, where one of ours would do as well.
Result<analyze::Suppressions> suppressions_of(const SuppressionWords& words);
// What the recorded programs bring themselves and what is shipped, unless not wanted.
void add_defaults(const SuppressionWords& words, const analyze::Reading& reading,
                  analyze::Suppressions* suppressions, std::vector<std::string>* notes);

}  // namespace malloscope::cli
