// SPDX-License-Identifier: Apache-2.0
#include "symbols/name_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "symbols/elf_file.h"
#include "symbols/symbolizer.h"

namespace malloscope::symbols {
namespace {

namespace fs = std::filesystem;

struct Cache : ::testing::Test {
  fs::path folder = fs::path(::testing::TempDir()) /
                    ("cache-" + std::to_string(getpid()) + "-" +
                     ::testing::UnitTest::GetInstance()->current_test_info()->name());
  NameCache cache{folder / "malloscope", ""};
  ModuleFile file = {"/usr/lib/libx.so", "abcdef0123"};

  Cache() {
    fs::remove_all(folder);
    fs::create_directories(folder);
  }
  ~Cache() override { fs::remove_all(folder); }

  NameCache::Entry entry() {
    std::ofstream(folder / "witness") << "as it was";
    NameCache::Entry made;
    made.names = {file, Detail::kLines, "a remark", {}};
    made.names.answers[0x10] = {{"f(int)", "a.cc", 3, 7}, {"g", "", 0, 0}};
    made.names.answers[0xffffffffffff] = {{"f(int)", "a.cc", 9, 0}};
    made.witnesses = {Witness::of(folder / "witness"), Witness::of(folder / "missing")};
    return made;
  }
  fs::path stored() {
    for (const auto& at : fs::directory_iterator(folder / "malloscope")) return at.path();
    return {};
  }
};

TEST_F(Cache, GivesBackWhatItWasGiven) {
  EXPECT_FALSE(cache.load(file));
  cache.store(entry());
  auto found = cache.load(file);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->names.answers, entry().names.answers);
  EXPECT_EQ(found->names.detail, Detail::kLines);
  EXPECT_EQ(found->names.remark, "a remark");
}

TEST_F(Cache, KnowsModulesAndSettingsApart) {
  cache.store(entry());
  EXPECT_FALSE(cache.load({"/usr/lib/liby.so", file.build_id}));
  EXPECT_FALSE(cache.load({file.path, "abcdef0124"}));
  EXPECT_FALSE(NameCache(folder / "malloscope", "debuginfod").load(file));
  EXPECT_FALSE(cache.load({file.path, ""}));
  EXPECT_FALSE(cache.load({file.path, "../../x"}));
}

TEST_F(Cache, IsNotBelievedOnceAFileHasChanged) {
  cache.store(entry());
  std::ofstream(folder / "witness") << "as it is now";
  EXPECT_FALSE(cache.load(file));
  cache.store(entry());
  EXPECT_TRUE(cache.load(file));
  std::ofstream(folder / "missing") << "installed since";
  EXPECT_FALSE(cache.load(file));
}

TEST_F(Cache, IsNotBelievedIfAByteIsWrong) {
  cache.store(entry());
  std::ifstream in(stored(), std::ios::binary);
  std::string good((std::istreambuf_iterator<char>(in)), {});
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    std::ofstream(stored(), std::ios::binary) << bad;
    EXPECT_FALSE(cache.load(file)) << "byte " << i;
    std::ofstream(stored(), std::ios::binary) << good.substr(0, i);
    EXPECT_FALSE(cache.load(file)) << "cut at " << i;
  }
}

TEST_F(Cache, MakesTheSecondSymbolizerAnswerWithoutFiles) {
  SymbolOptions options;
  options.cache = folder / "malloscope";
  Symbolizer first(options);
  fs::path self = fs::read_symlink("/proc/self/exe");
  auto build_id = ElfFile::open(self)->build_id();
  if (build_id.empty()) GTEST_SKIP() << "built without build-ids";
  auto offset = ElfFile::open(self)->code_ranges().at(0).start + 0x100;
  std::vector<Symbolizer::Request> requests = {{{self, build_id}, {offset, offset + 64}}};
  first.prepare(requests);
  first.save();
  Symbolizer second(options), without;
  for (uint64_t at : requests[0].offsets) {
    size_t module = second.add_module(requests[0].file);
    EXPECT_EQ(second.frames(module, at), without.frames(without.add_module(requests[0].file), at));
    EXPECT_EQ(second.detail(module), without.detail(0));
  }
  EXPECT_EQ(first.names(0).answers.size(), 2u);
}

TEST(ModuleNames, OfAnyBytesAreRefusedOrRead) {
  ModuleNames names = {{"/bin/x", "ab"}, Detail::kLines, "", {}};
  names.answers[5] = {{"f", "a.cc", 1, 2}};
  Packer out;
  pack(names, {5}, &out);
  for (size_t i = 0; i < out.result().size(); ++i)
    for (int value : {0, 1, 0x7f, 0x80, 0xff}) {
      std::vector<uint8_t> bytes = out.result();
      bytes[i] = static_cast<uint8_t>(value);
      Unpacker in(bytes), cut(std::span<const uint8_t>(bytes).first(i));
      ModuleNames read;
      unpack(&in, &read);
      EXPECT_FALSE(unpack(&cut, &read));
    }
  Unpacker in(out.result());
  ModuleNames read;
  ASSERT_TRUE(unpack(&in, &read));
  EXPECT_EQ(read.answers, names.answers);
}

}  // namespace
}  // namespace malloscope::symbols
