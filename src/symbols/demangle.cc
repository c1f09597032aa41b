// SPDX-License-Identifier: Apache-2.0
// Optimisers cut functions in pieces and mark the pieces by suffixes: `f.cold` is
// the unlikely half of f, `f.part.0` what was left after its beginning was
// inlined, `f.constprop.0` and `f.isra.0` are copies for certain arguments. To
// somebody who asks where memory is allocated they are all f, and a profile that
// lists them apart would depend on the compiler's mood. So these suffixes are
// dropped everywhere:
//
//     .cold .part .constprop .isra .llvm .lto_priv .localalias .__uniq
//
// each with the number that may follow. Suffixes that name a different body on
// purpose stay (`f.avx2`, `f.resolver`).

#include "symbols/demangle.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>

namespace malloscope::symbols {

// Longer ones are no names that anybody wrote, and demangling them may take forever.
static constexpr size_t kMaxMangled = 1 << 15;

static bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

static bool is_piece_mark(std::string_view text) {
  static constexpr std::array<std::string_view, 8> kMarks = {
      "cold", "part", "constprop", "isra", "llvm", "lto_priv", "localalias", "__uniq"};
  return std::ranges::find(kMarks, text) != kMarks.end();
}

std::string_view strip_suffixes(std::string_view symbol) {
  if (size_t version = symbol.find('@'); version != 0 && version != symbol.npos)
    symbol = symbol.substr(0, version);
  for (;;) {
    std::string_view rest = symbol;
    size_t dot = rest.rfind('.');
    if (dot != rest.npos && is_number(rest.substr(dot + 1))) {
      rest = rest.substr(0, dot);
      dot = rest.rfind('.');
    }
    if (dot == rest.npos || dot == 0 || !is_piece_mark(rest.substr(dot + 1))) return symbol;
    symbol = rest.substr(0, dot);
  }
}

std::string display_name(std::string_view symbol) {
  std::string name(strip_suffixes(symbol));
  if (!name.starts_with("_Z") || name.size() > kMaxMangled) return name;
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && demangled && *demangled ? std::string(demangled.get()) : name;
}

}  // namespace malloscope::symbols
