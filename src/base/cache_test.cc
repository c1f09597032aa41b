// SPDX-License-Identifier: Apache-2.0
// Files that are kept for the next time: never half of one, never too many.

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "base/cache_folder.h"
#include "base/whole_file.h"

namespace malloscope {
namespace {

namespace fs = std::filesystem;

class CacheTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/malloscope_base_XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string content(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder_)) all.insert(entry.path().filename());
    return all;
  }
  // A file of so many bytes, written so many hours ago.
  void put(const std::string& name, size_t bytes, int hours) {
    std::ofstream(path(name)) << std::string(bytes, 'x');
    fs::last_write_time(path(name), fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }

  std::string folder_;
};

using WholeFileTest = CacheTest;
using MakeRoomTest = CacheTest;

TEST_F(WholeFileTest, IsThereOnlyWhenItIsWhole) {
  std::ofstream(path("a")) << "old";
  {
    WholeFile file(path("a"));
    file.write("new", 3, 4);
    file.write("the ", 4, 0);
    EXPECT_EQ(content("a"), "old");
    ASSERT_TRUE(file.finish());
    EXPECT_EQ(content("a"), "the new");
  }
  EXPECT_EQ(names(), std::set<std::string>{"a"});
  struct stat info = {};
  ASSERT_EQ(stat(path("a").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(WholeFileTest, LeavesNothingIfItIsNotFinished) {
  WholeFile(path("a")).write("half", 4, 0);
  EXPECT_EQ(names(), std::set<std::string>{});
}

TEST_F(WholeFileTest, FailsOnceAndForAll) {
  EXPECT_FALSE(WholeFile(path("no/such/folder")).ok());
  fs::create_directory(path("a"));  // No file can take its place.
  WholeFile file(path("a"));
  file.write("x", 1, 0);
  EXPECT_TRUE(file.ok());
  EXPECT_FALSE(file.finish());
  WholeFile bad(path("b"));
  bad.write("x", 1, uint64_t{1} << 63);  // No such place in a file.
  EXPECT_FALSE(bad.ok());
  bad.write("x", 1, 0);
  EXPECT_FALSE(bad.finish());
  EXPECT_FALSE(fs::exists(path("b")));
}

TEST_F(MakeRoomTest, TheOldestGoFirst) {
  put("old.kept", 100, 3);
  put("new.kept", 100, 1);
  put("middle.kept.7.new", 100, 2);  // What a killed writer has left.
  put("ancient.other", 1000, 9);
  make_room(folder_, ".kept", 300);
  EXPECT_EQ(names().size(), 4u) << "there was room";
  make_room(folder_, ".kept", 299);
  EXPECT_EQ(names(), (std::set<std::string>{"new.kept", "middle.kept.7.new", "ancient.other"}));
  make_room(folder_, ".kept", 0, path("middle.kept.7.new"));
  EXPECT_EQ(names(), (std::set<std::string>{"middle.kept.7.new", "ancient.other"}));
  make_room(path("nowhere"), ".kept", 0);
}

TEST_F(MakeRoomTest, ThereIsAFolderForTheUserAlone) {
  EXPECT_TRUE(make_cache_folder(path("a/b/cache")));
  EXPECT_TRUE(make_cache_folder(path("a/b/cache")));
  struct stat info = {};
  ASSERT_EQ(stat(path("a/b/cache").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_FALSE(make_cache_folder("/proc/no/such/place"));
}

}  // namespace
}  // namespace malloscope
