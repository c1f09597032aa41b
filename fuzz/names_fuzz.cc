// SPDX-License-Identifier: Apache-2.0
// Demangled names, two of them in a line each: made short, fitted, judged. Two different ones never
// become the same.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "symbols/name_rules.h"
#include "symbols/readable_name.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace malloscope::symbols;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  size_t line = std::min(text.find('\n'), text.size());
  std::string_view one = text.substr(0, line), other = text.substr(std::min(line + 1, size));
  for (std::string_view name : {one, other}) {
    if (qualified_name(name).size() > name.size()) abort();
    is_plumbing(name, "app");
    for (size_t room : {0, 20, 60})
      if (fitted_name(short_name(name, room), room).empty() != name.empty()) abort();
  }
  std::vector<std::string> names = short_names({one, other}, 20);
  if ((one == other) != (names[0] == names[1])) abort();
  return 0;
}
