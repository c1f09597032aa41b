// SPDX-License-Identifier: Apache-2.0
// api/replay: what `malloscope replay` left beside the trace, as it is.

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "serve/answers.h"

namespace malloscope::serve {

static std::string results_of(const std::string& trace) { return trace + ".replay.json"; }

bool has_replay(const std::string& trace) {
  std::error_code error;
  return std::filesystem::is_regular_file(results_of(trace), error);
}

Result<std::string> replay_answer(const std::string& trace) {
  constexpr uintmax_t kMostBytes = 256 << 20;
  std::string path = results_of(trace);
  std::error_code error;
  if (!has_replay(trace))
    return fail_usage(fmt::format("there is no {}: malloscope replay {} makes it", path, trace));
  if (std::filesystem::file_size(path, error) > kMostBytes || error)
    return fail_usage(fmt::format("{} is too large to be shown", path));
  std::ifstream in(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  // Whatever else somebody has put there is not ours to show.
  if (text.substr(0, 200).find("\"malloscope-replay\"") == std::string::npos)
    return fail_usage(fmt::format("{} is not what malloscope replay writes", path));
  return text;
}

}  // namespace malloscope::serve
