// SPDX-License-Identifier: Apache-2.0
// What a symbolizer answers when files are missing, changed, stripped or damaged,
// and which of several names it chooses. That sound files are read correctly is
// the matter of differential_test.cc.

#include "symbols/symbolizer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "symbols/demangle.h"
#include "symbols/elf_file.h"
#include "symbols/test_programs.h"

namespace malloscope::symbols {
namespace {

// A library of hand-written symbols, 16 bytes apart from `start`. Between `sized` and
// `unsized` there is code that belongs to nobody.
constexpr const char* kAssembly = R"(
  .text
  .globl start
  .type start, @function
start: .skip 16, 0x90
  .size start, 16

  .globl sized
  .type sized, @function
sized: .skip 8, 0x90
  .size sized, 8
  .skip 8, 0x90

  .globl unsized
  .type unsized, @function
unsized: .skip 16, 0x90

  .globl __aliased
  .weak aliased
  .globl another_name
  .type __aliased, @function
  .type aliased, @function
  .type another_name, @function
  .type a_local, @function
__aliased:
aliased:
another_name:
a_local: .skip 16, 0x90
  .size __aliased, 16
  .size aliased, 16
  .size another_name, 16
  .size a_local, 16

  .type _ZN2ns4tailEi.cold, @function
_ZN2ns4tailEi.cold: .skip 16, 0x90
  .size _ZN2ns4tailEi.cold, 16

  .globl outer
  .type outer, @function
  .type inner, @function
outer: .skip 4, 0x90
inner: .skip 4, 0x90
  .skip 8, 0x90
  .size outer, 16
  .size inner, 4

  .globl wide
  .globl narrow_but_longer
  .type wide, @function
  .type narrow_but_longer, @function
wide:
narrow_but_longer: .skip 16, 0x90
  .size wide, 16
  .size narrow_but_longer, 4
)";

class SymbolizerTest : public testing::Test {
 protected:
  std::string build_assembly(const std::string& flags = "") {
    folder_.write("hand.s", kAssembly);
    std::string path = folder_ / "libhand.so";
    run(fmt::format("gcc -shared -nostdlib {} {} -o {}", flags, folder_ / "hand.s", path));
    return path;
  }
  std::string build_small(const std::string& name, const std::string& flags, int answer = 42) {
    std::string source = folder_.write(
        name + ".c", fmt::format("static int twice(int x) {{ return 2 * x; }}\n"
                                 "int answer(int x) {{\n  return twice(x) + {};\n}}\n",
                                 answer));
    std::string path = folder_ / name;
    run(fmt::format("gcc -shared -fPIC {} {} -o {}", flags, source, path));
    return path;
  }
  // The address of a symbol, by nm.
  static uint64_t address_of(const std::string& path, const std::string& symbol) {
    std::istringstream lines(run("nm -f posix " + path));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string name, type;
      uint64_t value = 0;
      words >> name >> type >> std::hex >> value;
      if (name == symbol) return value;
    }
    ADD_FAILURE() << "no symbol " << symbol;
    return 0;
  }
  std::string name_at(size_t module, uint64_t address) {
    return symbolizer_.frames(module, address).back().function;
  }

  TempFolder folder_;
  Symbolizer symbolizer_;
};

TEST_F(SymbolizerTest, NamesOnlyTheBytesThatASymbolClaims) {
  std::string path = build_assembly();
  uint64_t start = address_of(path, "start");
  size_t module = symbolizer_.add_module({path, ""});
  EXPECT_EQ(name_at(module, start - 1), fmt::format("libhand.so+{:#x}", start - 1));
  EXPECT_EQ(name_at(module, start), "start");
  EXPECT_EQ(name_at(module, start + 15), "start");
  EXPECT_EQ(name_at(module, start + 16), "sized");
  EXPECT_EQ(name_at(module, start + 23), "sized");
  EXPECT_EQ(name_at(module, start + 24), fmt::format("libhand.so+{:#x}", start + 24));
  EXPECT_EQ(name_at(module, start + 32), fmt::format("libhand.so+{:#x}", start + 32));
  EXPECT_EQ(name_at(module, start + 40), fmt::format("libhand.so+{:#x}", start + 40));
  EXPECT_EQ(name_at(module, UINT64_MAX), "libhand.so+0xffffffffffffffff");
}

TEST_F(SymbolizerTest, PrefersTheNameThatPeopleWrite) {
  std::string path = build_assembly();
  uint64_t start = address_of(path, "start");
  size_t module = symbolizer_.add_module({path, ""});
  EXPECT_EQ(name_at(module, start + 48), "another_name");  // Global, then weak, then underscores.
  EXPECT_EQ(name_at(module, start + 64), "ns::tail(int)");
  EXPECT_EQ(name_at(module, start + 80), "outer");
  EXPECT_EQ(name_at(module, start + 84), "inner");
  EXPECT_EQ(name_at(module, start + 88), "outer");
  EXPECT_EQ(name_at(module, start + 96), "narrow_but_longer");
  EXPECT_EQ(name_at(module, start + 100), "wide");

  size_t libc = symbolizer_.add_module({"/lib/x86_64-linux-gnu/libc.so.6", ""});
  for (const char* name : {"malloc", "strdup", "getdelim", "qsort", "fopen"}) {
    std::string line = run(fmt::format(
        "nm -D -f posix /lib/x86_64-linux-gnu/libc.so.6 | grep '^{}@@' | cut -d' ' -f3", name));
    ASSERT_FALSE(line.empty()) << name;
    EXPECT_EQ(name_at(libc, std::stoull(line, nullptr, 16)), name);
  }
}

TEST_F(SymbolizerTest, SaysWhenALibraryWasRebuilt) {
  std::string path = build_small("libsmall.so", "-g");
  uint64_t address = address_of(path, "answer");
  std::string recorded = ElfFile::open(path)->build_id();
  EXPECT_EQ(name_at(symbolizer_.add_module({path, recorded}), address), "answer");

  build_small("libsmall.so", "-g", 43);
  Symbolizer later;
  size_t module = later.add_module({path, recorded});
  EXPECT_EQ(later.frames(module, address),
            (std::vector<SymbolFrame>{{fmt::format("libsmall.so+{:#x}", address), "", 0}}));
  EXPECT_EQ(later.remark(module),
            "libsmall.so has been rebuilt since the recording; its functions are shown as "
            "addresses. With the file of then in DIR, --debug-dir DIR names them.");
  EXPECT_EQ(later.detail(module), Detail::kNone);
}

TEST_F(SymbolizerTest, RemembersALibraryThatWasRebuilt) {
  std::string path = build_small("libsmall.so", "-g");
  uint64_t address = address_of(path, "answer");
  std::string id = ElfFile::open(path)->build_id();
  SymbolOptions options;
  options.cache = folder_ / "cache";
  Symbolizer first(options);
  std::vector<SymbolFrame> then = first.frames(first.add_module({path, id}), address);
  first.save();

  build_small("libsmall.so", "-g", 43);
  options.debug_dirs = {folder_ / "nothing here"};  // Other settings, too.
  for (int i = 0; i < 2; ++i) {                     // What is known less well is not kept instead.
    Symbolizer later(options);
    size_t module = later.add_module({path, id});
    later.prepare({{{path, id}, {address}}});
    EXPECT_EQ(later.frames(module, address), then);
    EXPECT_EQ(later.detail(module), Detail::kLines);
    EXPECT_EQ(later.remark(module), "");
    // What nobody asked for in time is not known, and that is said.
    EXPECT_EQ(later.frames(module, address + 1)[0].function,
              fmt::format("libsmall.so+{:#x}", address + 1));
    EXPECT_TRUE(later.remark(module).starts_with("libsmall.so has been rebuilt"));
    later.save();
  }
  options.cache.clear();
  Symbolizer without(options);
  EXPECT_EQ(without.detail(without.add_module({path, id})), Detail::kNone);
}

TEST_F(SymbolizerTest, UsesTheDebugFileOfALibraryThatIsGone) {
  std::string path = build_small("libsmall.so", "-g");
  uint64_t address = address_of(path, "answer");
  std::string id = ElfFile::open(path)->build_id();
  std::string debug_file =
      folder_ / ("debug/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug");
  std::filesystem::create_directories(std::filesystem::path(debug_file).parent_path());
  run(fmt::format("objcopy --only-keep-debug {} {} && rm {}", path, debug_file, path));
  SymbolOptions options;
  options.debug_dirs = {folder_ / "debug"};
  Symbolizer symbolizer(options);
  size_t module = symbolizer.add_module({path, id});
  EXPECT_EQ(symbolizer.frames(module, address).back().function, "answer");
  EXPECT_EQ(symbolizer.frames(module, address).back().line, 2);
  EXPECT_EQ(symbolizer.remark(module), "");
}

TEST_F(SymbolizerTest, RefusesADebugFileOfAnotherBuild) {
  std::string path = build_small("libsmall.so", "-g -Wl,--build-id=none");
  uint64_t address = address_of(path, "answer");
  std::string other = build_small("libother.so", "-g -Wl,--build-id=none", 43);
  run(
      fmt::format("cd {} && objcopy --only-keep-debug libsmall.so small.debug && strip "
                  "--strip-all libsmall.so && objcopy --add-gnu-debuglink=small.debug libsmall.so",
                  folder_.path()));
  Symbolizer right;
  EXPECT_EQ(right.frames(right.add_module({path, ""}), address).back().line, 2);

  run(fmt::format("objcopy --only-keep-debug {} {}", other, folder_ / "small.debug"));
  Symbolizer wrong;
  size_t module = wrong.add_module({path, ""});
  EXPECT_EQ(wrong.frames(module, address).back().line, 0);
  EXPECT_EQ(wrong.detail(module), Detail::kExports);
  EXPECT_NE(wrong.remark(module).find("libsmall.so is stripped"), std::string::npos);
}

TEST_F(SymbolizerTest, RefusesADebugFileThatOnlyStandsInTheRightPlace) {
  std::string path = build_small("libsmall.so", "-g -Wl,--strip-debug");
  std::string other = build_small("libother.so", "-g", 43);
  uint64_t address = address_of(path, "answer");
  std::string id = ElfFile::open(path)->build_id();
  std::string place = folder_ / ("debug/.build-id/" + id.substr(0, 2));
  std::filesystem::create_directories(place);
  std::filesystem::rename(other, place + "/" + id.substr(2) + ".debug");
  SymbolOptions options;
  options.debug_dirs = {folder_ / "debug"};
  Symbolizer symbolizer(options);
  size_t module = symbolizer.add_module({path, ""});
  EXPECT_EQ(symbolizer.frames(module, address), (std::vector<SymbolFrame>{{"answer", "", 0}}));
  EXPECT_EQ(symbolizer.detail(module), Detail::kFunctions);
}

TEST_F(SymbolizerTest, FindsADebugFileOfTheSameName) {
  std::string path = build_small("libsmall.so", "-g");
  uint64_t address = address_of(path, "answer");
  run(
      fmt::format("cd {} && mkdir .debug && objcopy --only-keep-debug libsmall.so "
                  ".debug/libsmall.so && strip --strip-all libsmall.so && objcopy "
                  "--add-gnu-debuglink=.debug/libsmall.so libsmall.so",
                  folder_.path()));
  size_t module = symbolizer_.add_module({path, ""});
  EXPECT_EQ(symbolizer_.frames(module, address).back().line, 2);
}

TEST_F(SymbolizerTest, ReadsCodeAtAddressZero) {
  std::string path = build_small("libsmall.so", "-g -nostdlib -Wl,-n,-Ttext=0");
  auto file = ElfFile::open(path);
  GElf_Shdr text;
  gelf_getshdr(file->section(".text"), &text);
  ASSERT_EQ(text.sh_addr, 0u);
  size_t module = symbolizer_.add_module({path, ""});
  EXPECT_EQ(name_at(module, 0), "twice");
  EXPECT_EQ(symbolizer_.frames(module, 0).back().line, 1);
}

// Linkers leave the debug information of discarded functions in place, at address 0.
TEST_F(SymbolizerTest, IsNotMisledByDiscardedFunctions) {
  std::string source = folder_.write("discard.c", R"(
void unused(void) { __asm__ volatile(".skip 16384, 0x90"); }
int main(void) { return 0; }
)");
  std::string path = folder_ / "discard";
  run(fmt::format("gcc -g -ffunction-sections -Wl,--gc-sections {} -o {}", source, path));
  size_t module = symbolizer_.add_module({path, ""});
  auto file = ElfFile::open(path);
  GElf_Shdr text;
  gelf_getshdr(file->section(".text"), &text);
  ASSERT_LT(text.sh_addr, 16384u);
  EXPECT_EQ(name_at(module, address_of(path, "main")), "main");
  for (uint64_t at = text.sh_addr; at < text.sh_addr + text.sh_size; ++at)
    EXPECT_NE(name_at(module, at), "unused") << at;
}

TEST_F(SymbolizerTest, NamesTheStubsThatCallOtherLibraries) {
  write_sources(folder_);
  for (const char* flags :
       {"-O2", "-O2 -fcf-protection -Wl,-z,ibtplt", "-O2 -Wl,-z,now -no-pie", "-O2 -Wl,-z,lazy"}) {
    std::string path = build_program(folder_, "app", "g++", flags);
    Symbolizer symbolizer;
    size_t module = symbolizer.add_module({path, ""});
    std::istringstream lines(run("objdump -d " + path + " | grep '@plt>:$'"));
    size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
      uint64_t address = std::stoull(line, nullptr, 16);
      std::string name = line.substr(line.find('<') + 1);
      name.resize(name.find('@'));
      EXPECT_EQ(symbolizer.frames(module, address).back().function, display_name(name) + "@plt");
    }
    EXPECT_GT(count, 20u) << flags;
  }
}

TEST_F(SymbolizerTest, ReadsTheSymbolsThatStrippedFilesKeepCompressed) {
  if (!has_command("xz")) GTEST_SKIP() << "xz is not installed";
  std::string path = build_small("libsmall.so", "-O0");
  uint64_t local = address_of(path, "twice"), exported = address_of(path, "answer");
  run(
      fmt::format("cd {} && objcopy --strip-debug libsmall.so mini && xz -k mini && strip "
                  "--strip-all libsmall.so && objcopy --add-section .gnu_debugdata=mini.xz "
                  "libsmall.so",
                  folder_.path()));
  size_t module = symbolizer_.add_module({path, ""});
  EXPECT_EQ(name_at(module, local), "twice");
  EXPECT_EQ(name_at(module, exported), "answer");
  EXPECT_EQ(symbolizer_.detail(module), Detail::kFunctions);
}

TEST_F(SymbolizerTest, GivesAFunctionTheSameNameWithAndWithoutDebugInformation) {
  write_sources(folder_);
  std::string with = build_program(folder_, "app", "g++", "-O2 -g"), without = folder_ / "bare/app";
  std::filesystem::create_directory(folder_ / "bare");
  run(fmt::format("strip --strip-debug {} -o {}", with, without));
  size_t with_module = symbolizer_.add_module({with, ""});
  size_t without_module = symbolizer_.add_module({without, ""});
  EXPECT_EQ(symbolizer_.detail(without_module), Detail::kFunctions);
  auto file = ElfFile::open(with);
  GElf_Shdr text;
  gelf_getshdr(file->section(".text"), &text);
  for (uint64_t at = text.sh_addr; at < text.sh_addr + text.sh_size; at += 3)
    ASSERT_EQ(name_at(with_module, at), name_at(without_module, at));
}

TEST_F(SymbolizerTest, SaysHowMuchItKnows) {
  auto detail = [&](const std::string& path) {
    return symbolizer_.detail(symbolizer_.add_module({path, ""}));
  };
  EXPECT_EQ(detail(build_small("liblines.so", "-g")), Detail::kLines);
  EXPECT_EQ(detail(build_small("libfunctions.so", "")), Detail::kFunctions);
  EXPECT_EQ(detail(build_small("libexports.so", "-s")), Detail::kExports);
}

TEST_F(SymbolizerTest, AnswersWithAddressesForWhatIsNoLibrary) {
  folder_.write("text.so", "hello, I am not an ELF file");
  folder_.write("empty.so", "");
  folder_.write("magic.so",
                "\x7f"
                "ELF");
  mkfifo((folder_ / "pipe.so").c_str(), 0600);
  std::filesystem::create_directory(folder_ / "folder.so");
  struct {
    std::string path, shown;
    bool remarked;
  } cases[] = {
      {folder_ / "missing.so", "missing.so", true},
      {folder_ / "text.so", "text.so", true},
      {folder_ / "empty.so", "empty.so", true},
      {folder_ / "magic.so", "magic.so", true},
      {folder_ / "pipe.so", "pipe.so", true},
      {folder_ / "folder.so", "folder.so", true},
      {"/lib/x86_64-linux-gnu/libc.so.6 (deleted)", "libc.so.6", true},
      {"[vdso]", "[vdso]", false},
      {"linux-vdso.so.1", "linux-vdso.so.1", false},
      {"", "[unknown]", false},
  };
  for (const auto& c : cases) {
    size_t module = symbolizer_.add_module({c.path, ""});
    EXPECT_EQ(symbolizer_.frames(module, 0x1234),
              (std::vector<SymbolFrame>{{c.shown + "+0x1234", "", 0}}));
    EXPECT_EQ(!symbolizer_.remark(module).empty(), c.remarked) << symbolizer_.remark(module);
  }
}

TEST_F(SymbolizerTest, KnowsTheSameFileAgain) {
  size_t first = symbolizer_.add_module({"/a/b.so", "01"});
  EXPECT_NE(symbolizer_.add_module({"/a/b.so", "02"}), first);
  EXPECT_NE(symbolizer_.add_module({"/a/c.so", "01"}), first);
  EXPECT_EQ(symbolizer_.add_module({"/a/b.so", "01"}), first);
}

TEST_F(SymbolizerTest, KeepsItsAnswersWhenItClosesFiles) {
  std::string path = build_small("libsmall.so", "-g");
  uint64_t address = address_of(path, "answer");
  std::vector<size_t> modules;
  std::vector<const std::vector<SymbolFrame>*> answers;
  for (int i = 0; i < 600; ++i) {
    std::string link = folder_ / fmt::format("lib{}.so", i);
    std::filesystem::create_symlink(path, link);
    modules.push_back(symbolizer_.add_module({link, ""}));
    answers.push_back(&symbolizer_.frames(modules.back(), address));
  }
  size_t open = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    open += entry.exists();
  EXPECT_LT(open, 400u);
  for (size_t i = 0; i < modules.size(); ++i) {
    EXPECT_EQ(&symbolizer_.frames(modules[i], address), answers[i]);
    EXPECT_EQ(answers[i]->back().function, "answer");
    EXPECT_EQ(symbolizer_.frames(modules[i], address + 1).back().function, "answer");
  }
}

// GCC gives no linkage names to what only one file knows, and inlined it has no symbol either.
TEST_F(SymbolizerTest, SpellsOutTheNamesOfLocalFunctionsThatWereInlined) {
  std::string source = folder_.write("local.cc", R"(
#define INLINE __attribute__((always_inline)) inline
volatile int sink;
namespace {
namespace deep {
struct Counter {
  int value;
  INLINE int add(int by, const char* why) const { sink = by; return value + *why; }
};
}
template <typename T, unsigned long N> INLINE T largest(const T (*values)[N]) { sink = N; return (*values)[sink]; }
}
static INLINE void call(void (*function)(int), unsigned long times) { while (times--) function(sink); }
extern "C" { static INLINE int plain(const volatile int& x) { return x + sink; } }
void g(int);
int entry(int n) {
  int values[3] = {n, sink, 2};
  deep::Counter counter{n};
  auto lambda = [&](char c) __attribute__((always_inline)) { sink = c; return counter.add(n, "x"); };
  call(g, 3);
  // Inlined here, but also kept, so that the symbol table knows its number.
  auto kept = [](long v) __attribute__((used)) { sink = (int)v; return sink; };
  sink = kept(n);
  return lambda('a') + largest<int, 3>(&values) + plain(sink);
}
void g(int) {}
)");
  std::string path = folder_ / "liblocal.so";
  run(fmt::format("g++ -O2 -g -shared -fPIC {} -o {}", source, path));
  size_t module = symbolizer_.add_module({path, ""});
  std::set<std::string> names;
  uint64_t entry = address_of(path, "_Z5entryi");
  for (uint64_t at = entry; name_at(module, at) == "entry(int)"; ++at)
    for (const SymbolFrame& frame : symbolizer_.frames(module, at)) names.insert(frame.function);
  std::set<std::string> expected = {
      "entry(int)",
      "(anonymous namespace)::deep::Counter::add(int, char const*) const",
      "int (anonymous namespace)::largest<int, 3ul>(int const (*) [3])",
      "call(void (*)(int), unsigned long)",
      "plain(int const volatile&)",
      "entry(int)::{lambda(char)}::operator()(char) const",
      "entry(int)::{lambda(long)#2}::operator()(long) const",
  };
  EXPECT_EQ(names, expected);
}

// Debug information in which each of forty entries claims the next one both as a
// child and as a sibling: a trusting walk visits 2^40.
constexpr const char* kMaze = R"(
  .text
  .globl start
  .type start, @function
start: .skip 16, 0x90
  .size start, 16
  .section .debug_abbrev,"",@progbits
abbreviations:
  .uleb128 1, 0x11        # Compile unit, with children: low_pc, high_pc.
  .byte 1
  .uleb128 0x11, 0x01, 0x12, 0x07, 0, 0
  .uleb128 2, 0x39        # Namespace, with children: sibling.
  .byte 1
  .uleb128 0x01, 0x13, 0, 0
  .byte 0
  .section .debug_info,"",@progbits
unit:
  .long end - version
version:
  .short 4
  .long abbreviations
  .byte 8
  .uleb128 1
  .quad start
  .quad 16
  .rept 40
  .uleb128 2
  .long . + 4 - unit
  .endr
  .byte 0, 0
end:
)";

TEST_F(SymbolizerTest, IsNotLedOverTheSameEntriesForEver) {
  folder_.write("maze.s", kMaze);
  std::string path = folder_ / "libmaze.so";
  run(fmt::format("gcc -shared -nostdlib {} -o {}", folder_ / "maze.s", path));
  size_t module = symbolizer_.add_module({path, ""});
  EXPECT_EQ(name_at(module, address_of(path, "start")), "start");
  EXPECT_EQ(symbolizer_.detail(module), Detail::kLines);
}

// Flips, zeroes and cuts; what comes out does not matter as long as something does.
TEST_F(SymbolizerTest, SurvivesDamagedFiles) {
  write_sources(folder_);
  std::mt19937 random(11);
  for (const char* flags : {"-O2 -g", "-O2 -g -gdwarf-4 -gz"}) {
    std::ifstream in(build_program(folder_, "app", "g++", flags), std::ios::binary);
    std::string whole((std::istreambuf_iterator<char>(in)), {});
    auto file = ElfFile::open(folder_ / "app");
    GElf_Shdr text;
    gelf_getshdr(file->section(".text"), &text);
    for (int round = 0; round < 150; ++round) {
      std::string damaged = whole;
      if (round % 5 == 0) damaged.resize(random() % damaged.size());
      size_t hits = round % 3 == 0 ? 3 : 200;
      for (size_t i = 0; i < hits && !damaged.empty(); ++i) {
        // The headers at both ends decide most.
        size_t at = i % 10 == 0
                        ? damaged.size() - 1 - random() % std::min<size_t>(damaged.size(), 3000)
                        : random() % damaged.size();
        if (i == 1) at = 4 + random() % 60 % damaged.size();
        damaged[at] = static_cast<char>(random() % 4 ? random() : 0xff);
      }
      std::string path = folder_.write("damaged", damaged);
      Symbolizer symbolizer;
      size_t module = symbolizer.add_module({path, ""});
      for (int i = 0; i < 200; ++i) {
        const auto& frames = symbolizer.frames(module, text.sh_addr + random() % text.sh_size);
        ASSERT_FALSE(frames.empty());
        for (const SymbolFrame& frame : frames) ASSERT_FALSE(frame.function.empty());
      }
    }
  }
}

}  // namespace
}  // namespace malloscope::symbols
