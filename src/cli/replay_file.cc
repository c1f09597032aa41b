// SPDX-License-Identifier: Apache-2.0
#include "cli/replay_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/whole_file.h"
#include "cli/output_file.h"
#include "cli/replay_answer.h"
#include "output/answer_json.h"
#include "output/json.h"
#include "output/json_writer.h"
#include "output/sink.h"

namespace malloscope::cli {
namespace {

namespace fs = std::filesystem;

// Ours say so at their head. A file that cannot be read is nobody's.
bool holds_results(const std::string& path) {
  char head[256] = {};
  std::ifstream file(path, std::ios::binary);
  file.read(head, sizeof head);
  std::string_view text(head, static_cast<size_t>(file.gcount()));
  return text.starts_with('{') && text.contains(fmt::format("\"format\": \"{}\"", kReplayFormat));
}

}  // namespace

std::string usual_results(const std::string& input) { return input + ".replay.json"; }

std::string obstacle_to_results(const std::string& path, const std::string& input, bool usual,
                                bool force) {
  std::error_code error;
  if (usual && !force && fs::is_regular_file(path, error)) {
    if (holds_results(path)) return {};
    return fmt::format(
        "{} is there and holds no results of a replay; --force overwrites it, -o names another "
        "file",
        path);
  }
  return obstacle(path, {input}, force);
}

Result<void> store_results(const std::string& path, const analyze::Answer& answer) {
  output::StringSink sink;
  output::JsonWriter writer(&sink);
  writer.begin_object();
  writer.member("malloscope", output::kJsonSchema);
  output::write_answer_members(answer, &writer);
  writer.end();
  WholeFile file(path);
  file.write(sink.text().data(), sink.text().size(), 0);
  if (file.finish()) return {};
  return fail(fmt::format("{} cannot be written: {}", path, strerror(errno)));
}

}  // namespace malloscope::cli
