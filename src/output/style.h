// SPDX-License-Identifier: Apache-2.0
// Colours, where they are wanted.

#pragma once

#include <string>
#include <string_view>

namespace malloscope::output {

struct Style {
  bool color = false;

  std::string bold(std::string_view text) const { return painted("1", text); }
  std::string dim(std::string_view text) const { return painted("2", text); }
  std::string warning(std::string_view text) const { return painted("1;33", text); }
  std::string name(std::string_view text) const { return painted("36", text); }

 private:
  std::string painted(std::string_view code, std::string_view text) const {
    if (!color || text.empty()) return std::string(text);
    return "\033[" + std::string(code) + "m" + std::string(text) + "\033[0m";
  }
};

}  // namespace malloscope::output
