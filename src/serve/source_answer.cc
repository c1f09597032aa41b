// SPDX-License-Identifier: Apache-2.0
// api/source: the lines around a place in the program's sources. Only of files that the trace
// names, and only where the user lets it look: an address that asks for anything else gets nothing.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "output/json_writer.h"
#include "output/sink.h"
#include "output/words.h"
#include "serve/answers.h"

namespace malloscope::serve {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kAround = 12;
constexpr uintmax_t kMostBytes = 64 << 20;
constexpr size_t kLongestLine = 2000;

bool is_named(analyze::FrameTable& frames, const std::string& file) {
  for (size_t i = 0; i < frames.size(); ++i)
    if (frames.frame(analyze::FrameId{static_cast<uint32_t>(i)}).file == file) return true;
  return false;
}

// Whether `path`, with all links followed, is below a folder of which the same is true.
bool is_inside(const fs::path& path, const fs::path& folder) {
  auto [rest, end] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return rest == folder.end();
}

// The file itself, or what a folder has under the end of its name: another machine built it, or
// another user.
fs::path find(const std::string& file, const std::vector<std::string>& folders) {
  std::error_code error;
  const fs::path whole(file);
  const std::vector<fs::path> parts(whole.begin(), whole.end());
  for (const std::string& name : folders) {
    fs::path folder = fs::canonical(name, error);
    if (error) continue;
    for (size_t skipped = 0; skipped < parts.size(); ++skipped) {
      fs::path tail;
      for (size_t i = skipped; i < parts.size(); ++i) tail /= parts[i];
      fs::path found = fs::canonical(tail.is_absolute() ? tail : folder / tail, error);
      if (!error && is_inside(found, folder) && fs::is_regular_file(found, error)) return found;
    }
  }
  return {};
}

}  // namespace

Result<std::string> source_answer(const Context& context, const Parameters& parameters) {
  std::string file = word(parameters, "file");
  Result<uint64_t> line = number(parameters, "line", 0);
  if (!line) return std::unexpected(line.error());
  if (file.empty() || !is_named(context.explorer.reading().frames(), file))
    return fail_usage("the trace names no such file");
  fs::path path = find(file, context.source_folders);
  if (path.empty())
    return fail_usage(
        fmt::format("{} is not in a folder that may be looked at; name one by "
                    "malloscope view --source DIR",
                    file));
  std::error_code error;
  if (fs::file_size(path, error) > kMostBytes || error)
    return fail_usage(fmt::format("{} is too large to be shown", path.string()));
  std::ifstream in(path);
  std::vector<std::string> lines;
  uint64_t first = *line > kAround ? *line - kAround : 1, at = 0;
  for (std::string text; at < *line + kAround && std::getline(in, text);)
    if (++at >= first) lines.push_back(text.substr(0, kLongestLine));

  output::StringSink sink;
  output::JsonWriter json(&sink);
  json.begin_object();
  json.member("file", path.string());
  json.member("first", first);
  json.key("lines").begin_array();
  for (const std::string& text : lines) json.value(text);
  json.end();
  json.end();
  return sink.text();
}

}  // namespace malloscope::serve
