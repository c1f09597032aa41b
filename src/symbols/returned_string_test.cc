// SPDX-License-Identifier: Apache-2.0
// Real compilers write the function in all the ways they know; what they wrote is read back.

#include "symbols/returned_string.h"

#include <gtest/gtest.h>

#include "symbols/test_programs.h"

namespace malloscope::symbols {
namespace {

const std::string kFunction = "__lsan_default_suppressions";
const char* const kConstant =
    "const char* __lsan_default_suppressions(void) { return \"leak:one\\nleak:two\\n\"; }\n"
    "int main(void) { return 0; }\n";

TEST(ReturnedString, IsReadHoweverItWasCompiled) {
  TempFolder folder;
  std::string source = folder.write("a.c", kConstant);
  std::vector<std::string> ways = {"gcc -O0",
                                   "gcc -O2",
                                   "gcc -O2 -no-pie -fno-pie",
                                   "gcc -O0 -no-pie -fno-pie",
                                   "gcc -O2 -fcf-protection=full",
                                   "gcc -O2 -fPIC -shared"};
  if (has_command("clang-19")) {
    ways.emplace_back("clang-19 -O0");
    ways.emplace_back("clang-19 -O2");
  }
  for (const std::string& way : ways) {
    run(way + " " + source + " -o " + folder / "a");
    auto text = returned_string({folder / "a", ""}, kFunction);
    ASSERT_TRUE(text) << way << ": " << text.error().sentence;
    ASSERT_TRUE(*text) << way;
    EXPECT_EQ(**text, "leak:one\nleak:two\n") << way;
  }
}

TEST(ReturnedString, IsNotGuessed) {
  TempFolder folder;
  std::string source = folder.write("a.c",
                                    "#include <stdlib.h>\n"
                                    "const char* __lsan_default_suppressions(void) {\n"
                                    "  return getenv(\"X\") ? \"leak:a\" : \"leak:b\";\n"
                                    "}\n"
                                    "int main(void) { return 0; }\n");
  run("gcc -O1 " + source + " -o " + folder / "a");
  auto text = returned_string({folder / "a", ""}, kFunction);
  ASSERT_FALSE(text);
  EXPECT_NE(text.error().sentence.find("not a plain constant"), std::string::npos);
}

TEST(ReturnedString, IsNotTheFirstAddressOfALongerFunction) {
  TempFolder folder;
  std::string source =
      folder.write("a.c",
                   "__asm__(\".globl __lsan_default_suppressions\\n\"\n"
                   "        \".type __lsan_default_suppressions, @function\\n\"\n"
                   "        \"__lsan_default_suppressions:\\n\"\n"
                   "        \"  lea text(%rip), %rax\\n  add $5, %rax\\n  ret\\n\");\n"
                   "const char text[] = \"leak:leak:x\";\n"
                   "int main(void) { return 0; }\n");
  run("gcc -O1 " + source + " -o " + folder / "a");
  EXPECT_FALSE(returned_string({folder / "a", ""}, kFunction));
}

TEST(ReturnedString, IsNothingWhereThereIsNoSuchFunctionOrFile) {
  TempFolder folder;
  run("gcc " + folder.write("b.c", "int main(void) { return 0; }\n") + " -o " + folder / "b");
  run("gcc -Wl,--build-id " + folder.write("a.c", kConstant) + " -o " + folder / "a");
  for (const ModuleFile& file :
       {ModuleFile{folder / "b", ""}, ModuleFile{folder / "missing", ""},
        ModuleFile{folder / "b.c", ""}, ModuleFile{folder / "a", "0123"}}) {
    auto text = returned_string(file, kFunction);
    ASSERT_TRUE(text);
    EXPECT_FALSE(*text) << file.path;
  }
}

}  // namespace
}  // namespace malloscope::symbols
