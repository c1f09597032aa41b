// SPDX-License-Identifier: Apache-2.0
// One file for each module:
//
//     "MSCOPENC" version(4) detail(4) checksum(8)      XXH3-64 of what follows
//     witnesses, then the module's names as in a trace (module_names.cc)
//
// Answers are as good as the files they came from. A build-id names the code, but not
// whether its debug information was installed that day; so an entry lists every
// file that was looked at, also those that were not there, and holds only while all of them
// are as they were. Of two writers the later wins, and what the other knew is asked again.
// What no longer holds is still better than nothing: once_known().

#include "symbols/name_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/cache_folder.h"
#include "base/whole_file.h"

namespace malloscope::symbols {

namespace {

constexpr char kMagic[8] = {'M', 'S', 'C', 'O', 'P', 'E', 'N', 'C'};
constexpr uint32_t kVersion = 2;
constexpr const char kSuffix[] = ".names";
struct FileHead {
  char magic[8];
  uint32_t version;
  uint32_t detail;  // So that what would be no help is not read.
  uint64_t checksum;
};

}  // namespace

Witness Witness::of(std::string path) {
  Witness witness;
  struct stat status = {};
  if (stat(path.c_str(), &status) == 0) {
    witness.there = true;
    witness.bytes = static_cast<uint64_t>(status.st_size);
    witness.changed_ns = static_cast<uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
                         static_cast<uint64_t>(status.st_mtim.tv_nsec);
    witness.inode = status.st_ino;
  }
  witness.path = std::move(path);
  return witness;
}

std::string NameCache::default_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && cache[0] == '/') return std::string(cache) + "/malloscope";
  const char* home = std::getenv("HOME");
  return home && home[0] == '/' ? std::string(home) + "/.cache/malloscope" : "";
}

std::string NameCache::path_of(const ModuleFile& file) const {
  std::string key = file.path + '\0' + file.build_id + '\0' + kind_;
  return fmt::format("{}/{}-{:016x}{}", folder_, file.build_id.substr(0, 40),
                     XXH3_64bits(key.data(), key.size()), kSuffix);
}

static bool is_build_id(const std::string& text) {
  return text.size() > 2 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

static Detail next_better(Detail detail) { return Detail{static_cast<int>(detail) + 1}; }

// Nothing if less than `least` is known.
std::optional<NameCache::Entry> NameCache::read(const std::string& path, Detail least) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;  // A pipe has no end.
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return std::nullopt;
  auto size = static_cast<uint64_t>(in.tellg());
  FileHead head;
  if (size < sizeof head || size > kMostBytes) return std::nullopt;
  in.seekg(0);
  if (!in.read(reinterpret_cast<char*>(&head), sizeof head) ||
      head.detail < static_cast<uint32_t>(least))
    return std::nullopt;
  std::vector<uint8_t> body(size - sizeof head);
  if (!in.read(reinterpret_cast<char*>(body.data()), static_cast<std::streamsize>(body.size())) ||
      memcmp(head.magic, kMagic, sizeof kMagic) != 0 || head.version != kVersion ||
      head.checksum != XXH3_64bits(body.data(), body.size()))
    return std::nullopt;

  Unpacker bytes(body);
  Entry entry;
  uint64_t count = bytes.number();
  for (uint64_t i = 0; i < count && bytes.ok(); ++i) {
    Witness& then = entry.witnesses.emplace_back();
    then.path = bytes.text();
    then.there = bytes.number() != 0;
    then.bytes = bytes.number();
    then.changed_ns = bytes.number();
    then.inode = bytes.number();
  }
  if (!bytes.ok() || !unpack(&bytes, &entry.names) || !bytes.done() ||
      static_cast<uint32_t>(entry.names.detail) != head.detail)
    return std::nullopt;
  return entry;
}

// Used now: the last to be thrown away.
static void touch(const std::string& path) { utimensat(AT_FDCWD, path.c_str(), nullptr, 0); }

std::optional<NameCache::Entry> NameCache::load(const ModuleFile& file) const {
  if (folder_.empty() || !is_build_id(file.build_id)) return std::nullopt;
  std::string path = path_of(file);
  std::optional<Entry> entry = read(path);
  if (!entry || entry->names.file != file) return std::nullopt;
  for (const Witness& then : entry->witnesses)
    if (Witness::of(then.path) != then) return std::nullopt;
  touch(path);
  return entry;
}

std::optional<ModuleNames> NameCache::once_known(const ModuleFile& file, Detail known) const {
  if (folder_.empty() || !is_build_id(file.build_id)) return std::nullopt;
  if (!listed_) {
    std::error_code error;
    for (auto at = std::filesystem::directory_iterator(folder_, error);
         !error && at != std::filesystem::directory_iterator(); at.increment(error))
      if (at->path().extension() == kSuffix) names_.push_back(at->path().filename());
    std::ranges::sort(names_);
    listed_ = true;
  }
  // Whoever sets build-ids by hand may have given one to several programs.
  auto name_of = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
  std::vector<ModuleNames> found;
  std::string prefix = file.build_id.substr(0, 40) + "-";
  for (auto name = std::ranges::lower_bound(names_, prefix);
       name != names_.end() && name->starts_with(prefix); ++name) {
    std::string path = folder_ + "/" + *name;
    std::optional<Entry> entry = read(path, next_better(known));
    if (!entry || entry->names.file.build_id != file.build_id ||
        name_of(entry->names.file.path) != name_of(file.path))
      continue;
    std::erase_if(entry->names.answers,
                  [](const auto& answer) { return is_unnamed(answer.second); });
    found.push_back(std::move(entry->names));
    touch(path);
  }
  if (found.empty()) return std::nullopt;
  std::ranges::stable_sort(found, std::greater(), &ModuleNames::detail);
  for (size_t i = 1; i < found.size(); ++i) found[0].answers.merge(found[i].answers);
  return std::move(found[0]);
}

void NameCache::store(Entry entry) const {
  if (folder_.empty() || !is_build_id(entry.names.file.build_id)) return;
  if (!make_cache_folder(folder_)) return;
  // What was known before, although a file looked different then: another recording's names.
  if (std::optional<Entry> before = read(path_of(entry.names.file), entry.names.detail);
      before && before->names.file == entry.names.file &&
      before->names.detail == entry.names.detail)
    entry.names.answers.merge(before->names.answers);

  Packer bytes;
  bytes.number(entry.witnesses.size());
  for (const Witness& witness : entry.witnesses)
    bytes.text(witness.path)
        .number(witness.there)
        .number(witness.bytes)
        .number(witness.changed_ns)
        .number(witness.inode);
  std::vector<uint64_t> offsets;
  for (const auto& [offset, frames] : entry.names.answers) offsets.push_back(offset);
  std::ranges::sort(offsets);
  pack(entry.names, offsets, &bytes);
  const std::vector<uint8_t>& body = bytes.result();
  FileHead head = {};
  memcpy(head.magic, kMagic, sizeof kMagic);
  head.version = kVersion;
  head.detail = static_cast<uint32_t>(entry.names.detail);
  head.checksum = XXH3_64bits(body.data(), body.size());
  if (body.size() > kMostBytes / 4) return;

  WholeFile file(path_of(entry.names.file));
  file.write(&head, sizeof head, 0);
  file.write(body.data(), body.size(), sizeof head);
  file.finish();
  make_room(folder_, kSuffix, kMostBytes);
}

}  // namespace malloscope::symbols
