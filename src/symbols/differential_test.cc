// SPDX-License-Identifier: Apache-2.0
// Random addresses of real and of freshly compiled programs, symbolized by us and
// by llvm-symbolizer. Everything must agree: the chain of inlined functions, each
// one's name, file and line. Where the two differ on purpose, same_function() says.

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <sstream>

#include "symbols/debug_files.h"
#include "symbols/demangle.h"
#include "symbols/die_names.h"
#include "symbols/die_walk.h"
#include "symbols/elf_file.h"
#include "symbols/readable_name.h"
#include "symbols/symbolizer.h"
#include "symbols/test_programs.h"

namespace malloscope::symbols {
namespace {

constexpr size_t kAddresses = 2500;

std::string normal(const std::string& path) {
  return path == "??" ? "" : std::filesystem::path(path).lexically_normal().string();
}

// By llvm-symbolizer; functions are linkage names where it knows them.
std::vector<std::vector<SymbolFrame>> oracle(const TempFolder& folder, const std::string& path,
                                             const std::vector<uint64_t>& addresses) {
  std::string input;
  for (uint64_t a : addresses) input += fmt::format("{:#x}\n", a);
  std::istringstream output(run(fmt::format(
      "env -u DEBUGINFOD_URLS llvm-symbolizer-19 --no-demangle --functions=linkage --inlines "
      "--obj={} < {}",
      path, folder.write("addresses", input))));
  std::vector<std::vector<SymbolFrame>> answers(1);
  for (std::string function, place; std::getline(output, function);) {
    if (function.empty()) {
      answers.emplace_back();
      continue;
    }
    std::getline(output, place);
    size_t column = place.rfind(':'), line = place.rfind(':', column - 1);
    answers.back().push_back({function, normal(place.substr(0, line)),
                              std::stoi(place.substr(line + 1, column - line - 1))});
  }
  answers.pop_back();
  return answers;
}

std::vector<uint64_t> random_addresses(const std::string& path, size_t count) {
  auto file = ElfFile::open(path);
  EXPECT_TRUE(file) << path;
  GElf_Shdr text;
  gelf_getshdr(file->section(".text"), &text);
  std::mt19937_64 random(7);
  std::vector<uint64_t> addresses;
  for (size_t i = 0; i < count; ++i) addresses.push_back(text.sh_addr + random() % text.sh_size);
  return addresses;
}

// What nm finds in the symbol tables of a module.
struct Names {
  std::map<uint64_t, std::set<std::string>> at;
  std::map<std::string, uint64_t> bytes;  // By the name as it is in the table.

  void add(const std::string& path) {
    for (const char* table : {"", "-D"}) {
      std::istringstream lines(run(fmt::format("nm -f posix {} {} 2>&1 || true", table, path)));
      for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string name, type;
        uint64_t value = 0, size = 0;
        if (!(words >> name >> type >> std::hex >> value)) continue;  // Not defined here.
        words >> size;
        at[value].insert(display_name(name));
        bytes[name] = size;
      }
    }
  }
  bool same(const std::string& a, const std::string& b) const {
    for (const auto& [value, names] : at)
      if (names.contains(a) && names.contains(b)) return true;
    return false;
  }
  bool covers(const std::string& name, uint64_t address) const {
    auto found = bytes.find(name);
    if (found == bytes.end()) return false;
    for (auto it = at.upper_bound(address); it != at.begin();)
      if ((--it)->second.contains(name)) return address - it->first < found->second;
    return false;
  }
};

// "ns::f<int>(char)" and "f" or "f<int>": all that debug information has for some functions.
bool ends_in(const std::string& full, const std::string& bare) {
  std::string name = short_name(full, 0), end = short_name(bare, 0);
  return name.ends_with(end) &&
         (name.size() == end.size() || name.substr(0, name.size() - end.size()).ends_with("::"));
}

// In which way two names are the same function.
enum Likeness {
  kDifferent,
  kSame,
  kAlias,
  kBareName,
  kUnsizedSymbol,
  kDebugFileSymbol,
  kLikenesses
};

Likeness compare_functions(const std::string& ours, const std::string& theirs, uint64_t address,
                           const Names& names) {
  bool address_only = ours.find("+0x") != ours.npos;
  // With a debug file they read only its debug information, not its symbols.
  if (theirs == "??")
    return address_only ? kSame : names.covers(ours, address) ? kDebugFileSymbol : kDifferent;
  std::string shown = display_name(theirs);
  if (ours == shown) return kSame;
  if (names.same(ours, shown)) return kAlias;
  if (!theirs.starts_with("_Z") && ends_in(ours, theirs)) return kBareName;
  // They extend symbols without a size, we never do.
  auto known = names.bytes.find(theirs);
  if (address_only && known != names.bytes.end() && known->second == 0) return kUnsizedSymbol;
  return kDifferent;
}

// Where no line is known, they tell the name of the object file, from the symbol table.
bool same_place(const SymbolFrame& ours, const SymbolFrame& theirs) {
  return ours.line == theirs.line &&
         (ours.file == theirs.file || (theirs.line == 0 && ours.file.empty()));
}

std::string show(const std::vector<SymbolFrame>& frames) {
  std::string text;
  for (const SymbolFrame& f : frames)
    text += fmt::format("    {}  {}:{}\n", f.function, f.file, f.line);
  return text;
}

struct Agreement {
  size_t total = 0, equal = 0, inlined = 0, with_line = 0;
  double share() const {
    return total ? static_cast<double>(equal) / static_cast<double>(total) : 0;
  }
};

// `unstripped` is the file to ask llvm-symbolizer about, if not the same.
Agreement compare(const TempFolder& folder, const std::string& path,
                  std::vector<std::string> debug_dirs = {}, const std::string& unstripped = "") {
  std::vector<uint64_t> addresses = random_addresses(path, kAddresses);
  auto theirs = oracle(folder, unstripped.empty() ? path : unstripped, addresses);
  Names names;
  names.add(path);
  std::vector<std::string> all_dirs = debug_dirs;
  all_dirs.push_back("/usr/lib/debug");
  if (auto debug = find_debug_file(*ElfFile::open(path), all_dirs)) names.add(debug->path());
  EXPECT_EQ(theirs.size(), addresses.size());

  SymbolOptions options;
  options.debug_dirs = debug_dirs;
  Symbolizer symbolizer(options);
  size_t module = symbolizer.add_module({path, ""});
  Agreement result;
  std::array<size_t, kLikenesses> likenesses{};
  std::string differences;
  for (size_t i = 0; i < theirs.size(); ++i) {
    const auto& ours = symbolizer.frames(module, addresses[i]);
    bool equal = ours.size() == theirs[i].size();
    for (size_t f = 0; equal && f < ours.size(); ++f) {
      Likeness likeness =
          compare_functions(ours[f].function, theirs[i][f].function, addresses[i], names);
      ++likenesses[likeness];
      equal = likeness != kDifferent && same_place(ours[f], theirs[i][f]);
    }
    ++result.total;
    result.equal += equal;
    result.inlined += ours.size() > 1;
    result.with_line += ours[0].line > 0;
    if (!equal && differences.size() < 200000)
      differences += fmt::format("  {:#x}\n   ours\n{}   theirs\n{}", addresses[i], show(ours),
                                 show(theirs[i]));
  }
  fmt::print(
      "{}: {} of {} equal, {} with inlined functions, {} with a line; names: {} same, {} alias, {} "
      "bare, {} unsized, {} only in the debug file's symbols\n{}",
      std::filesystem::path(path).filename().string(), result.equal, result.total, result.inlined,
      result.with_line, likenesses[kSame], likenesses[kAlias], likenesses[kBareName],
      likenesses[kUnsizedSymbol], likenesses[kDebugFileSymbol], differences);
  return result;
}

class Differential : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_command("llvm-symbolizer-19")) GTEST_SKIP() << "llvm-symbolizer-19 is not installed";
  }
  TempFolder folder_;
};

constexpr double kRequired = 0.995;

struct Build {
  const char* name;
  const char* compiler;
  const char* flags;
};
void PrintTo(const Build& build, std::ostream* out) {
  *out << build.compiler << " " << build.flags;
}

class DifferentialBuilds : public Differential, public testing::WithParamInterface<Build> {};

TEST_P(DifferentialBuilds, AgreesWithLlvmOnFunctionsFilesAndLines) {
  if (!has_command(GetParam().compiler)) GTEST_SKIP() << GetParam().compiler << " is not installed";
  write_sources(folder_);
  Agreement a = compare(
      folder_, build_program(folder_, GetParam().name, GetParam().compiler, GetParam().flags));
  EXPECT_GE(a.share(), kRequired);
  EXPECT_GT(a.with_line, a.total * 7 / 10);
}

INSTANTIATE_TEST_SUITE_P(
    , DifferentialBuilds,
    testing::Values(Build{"gcc_dwarf5", "g++", "-O2 -g -gdwarf-5"},
                    Build{"gcc_dwarf4", "g++", "-O2 -g -gdwarf-4"},
                    Build{"gcc_unoptimised", "g++", "-O0 -g"},
                    Build{"gcc_lto", "g++", "-O2 -g -flto"},
                    Build{"gcc_compressed", "g++", "-O3 -g -gz"},
                    Build{"gcc_relative_paths", "g++", "-O2 -g -ffile-prefix-map={}=."},
                    Build{"gcc_split", "g++", "-O2 -g -gsplit-dwarf"},
                    Build{"clang_dwarf5", "clang++-19", "-O2 -g -gdwarf-5"},
                    Build{"clang_dwarf4", "clang++-19", "-O2 -g -gdwarf-4"},
                    Build{"clang_function_sections", "clang++-19", "-O1 -g -ffunction-sections"}),
    [](const auto& named) { return std::string(named.param.name); });

// Our answers for the stripped file must be llvm's for the whole one.
class DifferentialStripped : public Differential {
 protected:
  // Leaves `app`, stripped, `app.debug`, and `app.whole`.
  void build(const std::string& flags) {
    write_sources(folder_);
    app_ = build_program(folder_, "app", "g++", "-O2 -g " + flags);
    run(
        fmt::format("cd {} && cp app app.whole && objcopy --only-keep-debug app app.debug && "
                    "strip --strip-all app && objcopy --add-gnu-debuglink=app.debug app",
                    folder_.path()));
  }
  // Moves the debug file to a new folder below ours.
  void move_debug_file(const std::string& to) {
    std::filesystem::create_directories(std::filesystem::path(folder_ / to).parent_path());
    std::filesystem::rename(folder_ / "app.debug", folder_ / to);
  }
  void expect_agreement(const std::vector<std::string>& debug_dirs = {}) {
    Agreement a = compare(folder_, app_, debug_dirs, folder_ / "app.whole");
    EXPECT_GE(a.share(), kRequired);
    EXPECT_GT(a.with_line, a.total * 7 / 10);
  }
  std::string app_;
};

TEST_F(DifferentialStripped, AgreesByBuildId) {
  build("");
  std::string id = ElfFile::open(app_)->build_id();
  ASSERT_EQ(id.size(), 40u);
  move_debug_file("debug/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug");
  expect_agreement({folder_ / "debug"});
}

TEST_F(DifferentialStripped, AgreesByDebugLinkBesideTheProgram) {
  build("-Wl,--build-id=none");
  ASSERT_EQ(ElfFile::open(app_)->build_id(), "");
  expect_agreement();
}

TEST_F(DifferentialStripped, AgreesByDebugLinkInTheHiddenFolder) {
  build("-gz -Wl,--build-id=none");
  move_debug_file(".debug/app.debug");
  expect_agreement();
}

TEST_F(DifferentialStripped, AgreesByDebugLinkUnderADebugDir) {
  build("-gdwarf-4");
  move_debug_file("elsewhere" + folder_.path() + "/app.debug");
  expect_agreement({folder_ / "elsewhere"});
}

// llvm-symbolizer cannot read what dwz makes, but it knows what was there before.
TEST_F(DifferentialStripped, AgreesWhenDwzHasMovedThingsToACommonFile) {
  if (!has_command("dwz")) GTEST_SKIP() << "dwz is not installed";
  build("");
  run(fmt::format("cd {} && cp app.whole app && cp app.whole other && dwz -m common app other",
                  folder_.path()));
  expect_agreement();
}

TEST_F(DifferentialStripped, AgreesWhenSectionsAreCompressedInTheOldWay) {
  build("");
  run(fmt::format("cd {} && objcopy --compress-debug-sections=zlib-gnu app.whole app",
                  folder_.path()));
  ASSERT_TRUE(ElfFile::open(app_)->has_section(".zdebug_info"));
  expect_agreement();
}

TEST_F(Differential, AgreesWithLlvmOnTheCLibrary) {
  EXPECT_GE(compare(folder_, "/lib/x86_64-linux-gnu/libc.so.6").share(), kRequired);
}

TEST_F(Differential, AgreesWithLlvmOnTheCppLibrary) {
  EXPECT_GE(compare(folder_, "/usr/lib/x86_64-linux-gnu/libstdc++.so.6").share(), kRequired);
}

TEST_F(Differential, AgreesWithLlvmOnPython) {
  EXPECT_GE(compare(folder_, "/usr/bin/python3.11").share(), kRequired);
}

TEST_F(Differential, AgreesWithLlvmOnThisVeryTest) {
  Agreement a = compare(folder_, std::filesystem::canonical("/proc/self/exe"));
  EXPECT_GE(a.share(), kRequired);
}

// Functions that have a linkage name let us check the names we make where there is none.
TEST_F(Differential, NamesBuiltFromEntriesAreMostlyThoseOfTheDemangler) {
  write_sources(folder_);
  auto file = ElfFile::open(build_program(folder_, "app", "g++", "-O2 -g"));
  ASSERT_TRUE(file);
  std::unique_ptr<Dwarf, decltype(&dwarf_end)> dwarf(
      dwarf_begin_elf(file->elf(), DWARF_C_READ, nullptr), &dwarf_end);
  SymbolTable no_symbols;
  DieNames names(no_symbols);
  size_t total = 0, equal = 0;
  Dwarf_CU* cu = nullptr;
  Dwarf_Die unit;
  while (dwarf_get_units(dwarf.get(), cu, &cu, nullptr, nullptr, &unit, nullptr) == 0) {
    walk_below(unit, 0, [&](Dwarf_Die die, int) -> std::optional<int> {
      Dwarf_Attribute linkage, name;
      if (dwarf_tag(&die) == DW_TAG_subprogram && dwarf_attr(&die, DW_AT_linkage_name, &linkage) &&
          dwarf_attr(&die, DW_AT_name, &name)) {
        std::string wanted = display_name(dwarf_formstring(&linkage));
        ++total;
        equal += names.built_name(die) == wanted;
      }
      return 0;
    });
  }
  fmt::print("{} of {} built names are the demangler's\n", equal, total);
  EXPECT_GT(total, 1000u);
  EXPECT_GT(equal, total * 85 / 100);
}

// For developers: MSCOPE_COMPARE="file file ..." symbols_test --gtest_filter='*Environment'
TEST_F(Differential, AgreesWithLlvmOnTheFilesInTheEnvironment) {
  std::istringstream paths(getenv("MSCOPE_COMPARE") ? getenv("MSCOPE_COMPARE") : "");
  for (std::string path; paths >> path;) EXPECT_GE(compare(folder_, path).share(), kRequired);
}

}  // namespace
}  // namespace malloscope::symbols
