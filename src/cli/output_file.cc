// SPDX-License-Identifier: Apache-2.0
#include "cli/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

namespace malloscope::cli {

namespace fs = std::filesystem;

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::exists(a, error) || fs::exists(b, error))
    return fs::equivalent(a, b, error) && !fs::is_character_file(a, error);
  auto place = [&](const std::string& name) {
    return fs::weakly_canonical(fs::absolute(name, error), error);
  };
  return place(a) == place(b);
}

static std::optional<std::string> head_of(const std::string& path, size_t size) {
  std::string head(size, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  file.read(head.data(), static_cast<std::streamsize>(size));
  head.resize(static_cast<size_t>(file.gcount()));
  return head;
}

static bool begins(const std::string& path, std::string_view beginning) {
  std::optional<std::string> head = head_of(path, beginning.size());
  return head && beginning.starts_with(*head);
}

std::string refusal_to_replace(const std::string& output) {
  std::error_code error;
  if (!fs::is_regular_file(output, error)) return {};  // To read from a terminal is to wait.
  if (head_of(output, kTraces.beginning.size()) != kTraces.beginning) return {};
  return fmt::format("{} is a recording, which --force does not replace here; name another file",
                     output);
}

std::string obstacle(const std::string& output, const std::vector<std::string>& inputs, bool force,
                     const Replaceable& replaceable) {
  if (output.empty()) return "-o needs a file name; it was empty";
  if (output == "-") return "it cannot go to standard output; name a file with -o";
  for (const std::string& input : inputs)
    if (same_file(input, output))
      return fmt::format("{} is {}; name another file with -o", output,
                         inputs.size() == 1 ? "the trace itself" : "one of the traces to read");
  std::error_code error;
  fs::file_status status = fs::status(output, error);
  if (!fs::exists(status)) return {};
  if (!fs::is_regular_file(status)) return fmt::format("{} is not a file", output);
  if (!force) return fmt::format("{} exists already; --force overwrites it", output);
  if (replaceable.name.empty()) return refusal_to_replace(output);
  if (!begins(output, replaceable.beginning))
    return fmt::format("{} is not a {}, and --force replaces nothing else; name another file",
                       output, replaceable.name);
  return {};
}

PartialFile::PartialFile(std::string path)
    : path_(std::move(path)), name_(fmt::format("{}.{}.part", path_, getpid())) {}

PartialFile::~PartialFile() {
  if (made_) unlink(name_.c_str());
}

int PartialFile::create() {
  int fd = open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  made_ = fd >= 0;
  return fd;
}

bool PartialFile::keep() {
  if (std::rename(name_.c_str(), path_.c_str()) != 0) return false;
  made_ = false;
  return true;
}

}  // namespace malloscope::cli
