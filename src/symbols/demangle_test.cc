// SPDX-License-Identifier: Apache-2.0

#include "symbols/demangle.h"

#include <gtest/gtest.h>

namespace malloscope::symbols {
namespace {

TEST(DisplayName, DemanglesWithParameters) {
  EXPECT_EQ(display_name("_ZN2ns3fooEiPKc"), "ns::foo(int, char const*)");
  EXPECT_EQ(display_name("_Znwm"), "operator new(unsigned long)");
  EXPECT_EQ(display_name("_Z5rangeItESt6vectorIT_SaIS1_EES1_"),
            "std::vector<unsigned short, std::allocator<unsigned short> > range<unsigned "
            "short>(unsigned short)");
}

TEST(DisplayName, LeavesOtherNamesAlone) {
  EXPECT_EQ(display_name("main"), "main");
  EXPECT_EQ(display_name("i"), "i");  // A mangled type, but not a mangled name.
  EXPECT_EQ(display_name("_Znonsense"), "_Znonsense");
  EXPECT_EQ(display_name("runtime.mallocgc"), "runtime.mallocgc");
  EXPECT_EQ(display_name(""), "");
  EXPECT_EQ(display_name(std::string(100'000, '_')), std::string(100'000, '_'));
}

TEST(DisplayName, DropsTheMarksOfCompilerMadePieces) {
  for (const char* suffix : {".cold", ".cold.12", ".part.0", ".constprop.0", ".isra.0",
                             ".llvm.1234567890", ".lto_priv.3", ".localalias", ".isra.0.cold",
                             ".part.0.constprop.1.cold", ".__uniq.99", ".constprop.0.isra.0"}) {
    EXPECT_EQ(display_name(std::string("parse") + suffix), "parse") << suffix;
    EXPECT_EQ(display_name(std::string("_ZN2ns3fooEi") + suffix), "ns::foo(int)") << suffix;
  }
}

TEST(DisplayName, KeepsSuffixesThatNameAnotherBody) {
  EXPECT_EQ(display_name("checksum.avx2"), "checksum.avx2");
  EXPECT_EQ(display_name("_Z3foov.avx2"), "foo() [clone .avx2]");
  EXPECT_EQ(display_name("table.17"), "table.17");
  EXPECT_EQ(display_name(".cold"), ".cold");
}

TEST(DisplayName, DropsSymbolVersions) {
  EXPECT_EQ(display_name("memcpy@@GLIBC_2.14"), "memcpy");
  EXPECT_EQ(display_name("memcpy@GLIBC_2.2.5"), "memcpy");
  EXPECT_EQ(
      display_name("_ZNSsC1Ev@@GLIBCXX_3.4"),
      "std::basic_string<char, std::char_traits<char>, std::allocator<char> >::basic_string()");
}

}  // namespace
}  // namespace malloscope::symbols
