// SPDX-License-Identifier: Apache-2.0
// A manual page for each verb, made from what --help is made from.

#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace malloscope::cli {

// Given as its only word, a verb prints its page. Not for users: the build asks, see man_pages().
inline constexpr std::string_view kManPage = "--man-page";

struct VerbSummary {
  std::string_view name;
  std::string_view summary;  // As in `malloscope --help`.
};

// All verbs, in the order of `malloscope --help`.
std::vector<VerbSummary> verb_summaries();

// The page of a verb, in the language of man(7).
std::string man_page(const CLI::App& app, std::string_view example);
// The page of malloscope itself.
std::string man_page();

}  // namespace malloscope::cli
