// SPDX-License-Identifier: Apache-2.0
#include "serve/bundle.h"

// MSCOPE_VIEWER_FOLDER is where the build has put them.
#define INCLUDE_FILE(symbol, name)                                                        \
  asm(".pushsection .rodata\n" #symbol "_begin: .incbin \"" MSCOPE_VIEWER_FOLDER "/" name \
      "\"\n" #symbol "_end: .byte 0\n.popsection\n");                                     \
  extern "C" const char symbol##_begin[];                                                 \
  extern "C" const char symbol##_end[];

INCLUDE_FILE(mscope_page, "index.html")
INCLUDE_FILE(mscope_script, "viewer.js")
INCLUDE_FILE(mscope_style, "viewer.css")

namespace malloscope::serve {

std::span<const PageFile> page_files() {
  auto text = [](const char* begin, const char* end) {
    return std::string_view(begin, static_cast<size_t>(end - begin));
  };
  static const PageFile kFiles[] = {
      {"", "text/html; charset=utf-8", text(mscope_page_begin, mscope_page_end)},
      {"viewer.js", "text/javascript; charset=utf-8", text(mscope_script_begin, mscope_script_end)},
      {"viewer.css", "text/css; charset=utf-8", text(mscope_style_begin, mscope_style_end)},
  };
  return kFiles;
}

}  // namespace malloscope::serve
