// SPDX-License-Identifier: Apache-2.0
// The page itself, as viewer/build.mjs made it, inside the binary.

#pragma once

#include <span>
#include <string_view>

namespace malloscope::serve {

struct PageFile {
  std::string_view name;  // As the page asks for it; the first is the page.
  std::string_view type;
  std::string_view bytes;
};
std::span<const PageFile> page_files();

}  // namespace malloscope::serve
