// SPDX-License-Identifier: Apache-2.0
#include "serve/redirect_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace malloscope::serve {
namespace {

// What a signal does is in test/viewer_address_is_secret.sh.
TEST(RedirectFile, IsGoneWithItsOwner) {
  std::string place = testing::TempDir() + "/redirect_file_test";
  std::filesystem::create_directories(place);
  setenv("XDG_RUNTIME_DIR", place.c_str(), 1);
  {
    std::optional<RedirectFile> file = RedirectFile::write("http://127.0.0.1:1/token/");
    ASSERT_TRUE(file);
    std::optional<RedirectFile> moved = std::move(file);
    file.reset();
    EXPECT_TRUE(std::filesystem::exists(moved->url().substr(strlen("file://"))));
  }
  EXPECT_TRUE(std::filesystem::is_empty(place));
}

}  // namespace
}  // namespace malloscope::serve
