// SPDX-License-Identifier: Apache-2.0
#include "replay/allocators.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>

namespace malloscope::replay {
namespace {

struct Known {
  std::string_view name;
  std::string_view package;  // Debian's.
  std::span<const char* const> files;
  std::string_view prefix;      // Of its variables; "glibc." are tunables of that name.
  std::string_view huge_pages;  // A tunable that makes it ask for them.
};

constexpr const char* kJemalloc[] = {"libjemalloc.so.2", "libjemalloc.so"};
constexpr const char* kTcmalloc[] = {"libtcmalloc_minimal.so.4", "libtcmalloc.so.4",
                                     "libtcmalloc_minimal.so", "libtcmalloc.so"};
constexpr const char* kMimalloc[] = {"libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so"};
constexpr Known kKnown[] = {
    {"glibc", "", {}, "glibc.", "glibc.malloc.hugetlb=1"},
    {"jemalloc", "libjemalloc2", kJemalloc, "MALLOC_CONF", "MALLOC_CONF=thp:always"},
    {"tcmalloc", "libtcmalloc-minimal4", kTcmalloc, "TCMALLOC_", ""},
    {"mimalloc", "libmimalloc2.0", kMimalloc, "MIMALLOC_", "MIMALLOC_ALLOW_LARGE_OS_PAGES=1"},
};

// Where Debian, other distributions and `make install` put libraries.
constexpr const char* kFolders[] = {"/usr/lib/x86_64-linux-gnu",
                                    "/lib/x86_64-linux-gnu",
                                    "/usr/lib64",
                                    "/usr/lib",
                                    "/usr/local/lib",
                                    "/usr/local/lib64",
                                    "/opt/*/lib"};

const Known* known(std::string_view name) {
  auto found = std::ranges::find(kKnown, name, &Known::name);
  return found == std::end(kKnown) ? nullptr : found;
}

std::string find_file(std::span<const char* const> files) {
  for (const char* file : files)
    for (const char* folder : kFolders) {
      glob_t found = {};
      std::string path;
      if (glob((std::string(folder) + "/" + file).c_str(), 0, nullptr, &found) == 0)
        path = found.gl_pathv[0];
      globfree(&found);
      if (!path.empty()) return path;
    }
  return {};
}

// Why a file cannot be preloaded; empty if it looks as if it could.
std::string obstacle_of(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return fmt::format("{} cannot be opened: {}", path, strerror(errno));
  Elf64_Ehdr head = {};
  bool read_it = read(fd, &head, sizeof head) == sizeof head;
  close(fd);
  if (!read_it || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_type != ET_DYN)
    return path + " is not a shared library";
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != EM_X86_64)
    return path + " is for another machine";
  return {};
}

// glibc wants plain numbers where people write 64K.
std::string without_suffix(const std::string& value) {
  char* end = nullptr;
  unsigned long long number = std::strtoull(value.c_str(), &end, 0);
  int shift = 0;
  switch (*end) {
    case 'k':
    case 'K':
      shift = 10;
      break;
    case 'm':
    case 'M':
      shift = 20;
      break;
    case 'g':
    case 'G':
      shift = 30;
      break;
    default:
      return value;
  }
  bool whole = end != value.c_str() && end[1] == '\0' && number <= ULLONG_MAX >> shift;
  return whole ? std::to_string(number << shift) : value;
}

// glibc ignores what it does not understand, and rows that differ by chance would look like an
// answer. Its own list, or nothing if it is too old to have one.
std::string glibc_tunables() {
  std::string text;
  FILE* list = popen("/lib64/ld-linux-x86-64.so.2 --list-tunables 2>/dev/null", "re");
  if (!list) return text;
  char line[256];
  while (fgets(line, sizeof line, list)) text += line;
  pclose(list);
  return text;
}

// Why a setting would have no effect; empty if it may have one.
std::string objection_to(const Tunable& tunable) {
  if (tunable.name.starts_with("LD_"))
    return fmt::format("{} is not for --tunables; --allocators takes libraries", tunable.name);
  if (!tunable.name.starts_with("glibc.")) return {};
  static const std::string known_ones = glibc_tunables();
  if (!known_ones.empty() && known_ones.find(tunable.name + ":") == std::string::npos)
    return fmt::format("--tunables: this system's glibc has no {}", tunable.name);
  if (!tunable.name.starts_with("glibc.malloc.")) return {};
  for (const std::string& value : tunable.values) {
    std::string number = without_suffix(value);
    char* end = nullptr;
    (void)std::strtoull(number.c_str(), &end, 0);
    if (number.front() == '-' || *end != '\0')
      return fmt::format("--tunables: {}={} is not a number", tunable.name, value);
  }
  return {};
}

// By its name; if it was named by its path, by that of the file. Nothing if it may be any.
const Known* family_of(const Setup& setup) {
  if (const Known* named = known(setup.allocator)) return named;
  std::string_view file = std::string_view(setup.library).substr(setup.library.rfind('/') + 1);
  auto found = std::ranges::find_if(kKnown, [&](const Known& k) {
    return !k.files.empty() && file.find(k.name) != std::string_view::npos;
  });
  return found == std::end(kKnown) ? nullptr : found;
}

// Whether a setting is this allocator's. A library that we do not know may have any but glibc's,
// which it replaces.
bool belongs(const std::string& tunable, const Setup& setup) {
  const Known* own = family_of(setup);
  return std::ranges::none_of(kKnown, [&](const Known& k) {
    return &k != own && (own || k.files.empty()) && tunable.starts_with(k.prefix);
  });
}

void add_setting(Setup* setup, const std::string& name, const std::string& value) {
  if (!setup->tunables.empty()) setup->tunables += ' ';
  setup->tunables += name + "=" + value;
  bool is_glibc = name.starts_with("glibc.");
  std::string variable = is_glibc ? "GLIBC_TUNABLES" : name;
  std::string text = is_glibc ? name + "=" + without_suffix(value) : value;
  auto& environment = setup->environment;
  auto found =
      std::ranges::find(environment, variable, &std::pair<std::string, std::string>::first);
  if (found == environment.end())
    environment.emplace_back(variable, text);
  else
    found->second += (is_glibc ? ":" : ",") + text;
}

}  // namespace

std::vector<std::string_view> known_allocators() {
  std::vector<std::string_view> names;
  for (const Known& k : kKnown) names.push_back(k.name);
  return names;
}

Setup find_allocator(const std::string& name) {
  Setup setup;
  setup.allocator = name;
  if (const Known* found = known(name)) {
    if (found->files.empty()) return setup;
    setup.library = find_file(found->files);
    if (setup.library.empty())
      setup.error = fmt::format("{} is not installed: apt-get install {}, or give its path", name,
                                found->package);
    return setup;
  }
  if (name.find('/') == std::string::npos && access(name.c_str(), F_OK) != 0) {
    setup.error = fmt::format("'{}' is neither a known allocator ({}) nor a file", name,
                              fmt::join(known_allocators(), ", "));
    return setup;
  }
  char resolved[PATH_MAX];
  setup.library = realpath(name.c_str(), resolved) ? resolved : name;
  setup.error = obstacle_of(setup.library);
  if (setup.error.empty() && setup.library.find_first_of(" :") != std::string::npos)
    setup.error = setup.library + " cannot be preloaded: its path has a space or a colon";
  return setup;
}

Result<std::vector<Tunable>> tunables_of(const std::string& words) {
  std::vector<Tunable> tunables;
  size_t at = 0;
  while ((at = words.find_first_not_of(" \t\n", at)) != std::string::npos) {
    size_t end = std::min(words.find_first_of(" \t\n", at), words.size());
    std::string word = words.substr(at, end - at);
    at = end;
    size_t equals = word.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == word.size())
      return fail_usage(fmt::format(
          "--tunables: '{}' is not NAME=VALUE, such as glibc.malloc.arena_max=1,2", word));
    Tunable tunable{word.substr(0, equals), {}};
    // MALLOC_CONF has commas of its own.
    char between = tunable.name == "MALLOC_CONF" ? '|' : ',';
    for (size_t from = equals + 1; from <= word.size();) {
      size_t to = std::min(word.find(between, from), word.size());
      if (to == from) return fail_usage(fmt::format("--tunables: '{}' has an empty value", word));
      tunable.values.push_back(word.substr(from, to - from));
      from = to + 1;
    }
    if (std::string objection = objection_to(tunable); !objection.empty())
      return fail_usage(objection);
    tunables.push_back(std::move(tunable));
  }
  if (tunables.empty()) return fail_usage("--tunables: nothing is set");
  return tunables;
}

std::vector<Setup> combinations(const Setup& allocator, const std::vector<Tunable>& tunables) {
  std::vector<Setup> setups = {allocator};
  if (!allocator.error.empty()) return setups;
  for (const Tunable& tunable : tunables) {
    if (!belongs(tunable.name, allocator)) continue;
    std::vector<Setup> more;
    for (const Setup& setup : setups)
      for (const std::string& value : tunable.values) {
        more.push_back(setup);
        add_setting(&more.back(), tunable.name, value);
      }
    setups = std::move(more);
  }
  // What they are compared with.
  if (!setups.front().tunables.empty()) setups.insert(setups.begin(), allocator);
  return setups;
}

bool ask_for_huge_pages(Setup* setup) {
  const Known* own = family_of(*setup);
  if (!own || own->huge_pages.empty()) return false;
  size_t equals = own->huge_pages.find('=');
  add_setting(setup, std::string(own->huge_pages.substr(0, equals)),
              std::string(own->huge_pages.substr(equals + 1)));
  return true;
}

bool is_allocator_variable(std::string_view name) {
  return name == "LD_PRELOAD" || name == "GLIBC_TUNABLES" || name.starts_with("MALLOC_") ||
         std::ranges::any_of(kKnown, [&](const Known& k) { return name.starts_with(k.prefix); });
}

}  // namespace malloscope::replay
