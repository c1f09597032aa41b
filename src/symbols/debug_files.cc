// SPDX-License-Identifier: Apache-2.0
// Distributions strip programs and keep what was stripped in another file. There
// are two ways to find it: under the build-id, a hash that both carry, in
// /usr/lib/debug/.build-id; or under the name in the program's .gnu_debuglink
// section, beside the program, in .debug beside it, or at the same path under
// /usr/lib/debug. A name alone proves nothing, so a file found by name must have
// the same build-id or, where there is none, the checksum that the link demands.

#include "symbols/debug_files.h"

#include <elfutils/libdwelf.h>

#include <array>
#include <filesystem>
#include <string_view>

namespace malloscope::symbols {

namespace fs = std::filesystem;

// The usual CRC-32 (polynomial 0xedb88320), of the whole file.
static uint32_t crc32_of(const ElfFile& file) {
  static constexpr auto kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
      table[i] = crc;
    }
    return table;
  }();
  size_t count = 0;
  const char* bytes = elf_rawfile(file.elf(), &count);
  uint32_t crc = 0xffffffff;
  for (size_t i = 0; bytes && i < count; ++i)
    crc = kTable[(crc ^ static_cast<uint8_t>(bytes[i])) & 0xff] ^ crc >> 8;
  return ~crc;
}

static bool is_build_id(std::string_view text) {
  return text.size() > 2 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::optional<ElfFile> find_by_build_id(const std::string& build_id,
                                        const std::vector<std::string>& debug_dirs,
                                        Looked* looked) {
  if (!is_build_id(build_id)) return std::nullopt;
  for (const std::string& dir : debug_dirs) {
    std::string path =
        dir + "/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2) + ".debug";
    if (looked) looked->push_back(path);
    auto file = ElfFile::open(path);
    if (file && file->build_id() == build_id) return std::move(*file);
  }
  return std::nullopt;
}

std::optional<ElfFile> find_by_name(const std::string& path, const std::string& build_id,
                                    const std::vector<std::string>& debug_dirs, Looked* looked) {
  if (!is_build_id(build_id)) return std::nullopt;
  fs::path name = fs::path(path).filename(), below = fs::path(path).relative_path();
  std::optional<ElfFile> stripped;
  for (const fs::path dir : debug_dirs)
    for (const fs::path& place : {dir / name, dir / below, dir / (name.string() + ".debug"),
                                  dir / (below.string() + ".debug")}) {
      if (looked) looked->push_back(place);
      auto file = ElfFile::open(place);
      if (!file || file->build_id() != build_id) continue;
      if (file->has_section(".debug_info") || file->has_section(".zdebug_info"))
        return std::move(*file);
      if (!stripped || (!stripped->has_section(".symtab") && file->has_section(".symtab")))
        stripped = std::move(*file);  // Unless there is a better one.
    }
  return stripped;
}

static std::optional<ElfFile> find_by_link(const ElfFile& stripped,
                                           const std::vector<std::string>& debug_dirs,
                                           Looked* looked) {
  GElf_Word checksum = 0;
  const char* link = dwelf_elf_gnu_debuglink(stripped.elf(), &checksum);
  if (!link || !*link) return std::nullopt;
  fs::path name = fs::path(link).filename();  // A link that leads elsewhere is not followed.

  std::vector<fs::path> folders = {fs::path(stripped.path()).parent_path()};
  std::error_code error;
  fs::path real = fs::canonical(stripped.path(), error);
  if (!error && real.parent_path() != folders[0]) folders.push_back(real.parent_path());

  std::vector<fs::path> places;
  for (const fs::path& folder : folders) {
    places.push_back(folder / name);
    places.push_back(folder / ".debug" / name);
    for (const std::string& dir : debug_dirs) places.push_back(dir / folder.relative_path() / name);
  }
  std::string build_id = stripped.build_id();
  for (const fs::path& place : places) {
    if (fs::equivalent(place, stripped.path(), error)) continue;
    if (looked) looked->push_back(place);
    auto file = ElfFile::open(place);
    if (!file) continue;
    std::string found_id = file->build_id();
    bool same =
        build_id.empty() || found_id.empty() ? crc32_of(*file) == checksum : found_id == build_id;
    if (same) return std::move(*file);
  }
  return std::nullopt;
}

std::optional<ElfFile> find_debug_file(const ElfFile& stripped,
                                       const std::vector<std::string>& debug_dirs, Looked* looked) {
  auto file = find_by_build_id(stripped.build_id(), debug_dirs, looked);
  return file ? std::move(file) : find_by_link(stripped, debug_dirs, looked);
}

}  // namespace malloscope::symbols
