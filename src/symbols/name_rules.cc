// SPDX-License-Identifier: Apache-2.0
// The site of an allocation is the frame to blame: the innermost one that is not
// plumbing. Everybody who pushes into a vector allocates in _M_realloc_insert, and
// nobody wants to read that; so the C++ library is plumbing, and so is the C
// library: who calls strdup, getline or fopen knows that memory is wanted.
//
// Most is decided by the module. But templates are compiled into the program
// itself, so there the name must decide, and it must be the function's *own* name:
//
//     void std::vector<A>::_M_realloc_insert<A>(...)      plumbing
//     std::vector<A> read_all<A>(std::string const&)      not, though it begins with std::
//     std::thread::_State_impl<... main::{lambda()#1} ...>::_M_run()     plumbing
//     main::{lambda()#1}::operator()() const              not
//
// Hence a small parser of demangled names. At the outermost nesting level a name
// begins after the last space and ends at the parameter list; the exceptions are
// spelled out below. Text that is no demangled name is returned as it is.

#include "symbols/name_rules.h"

#include <algorithm>
#include <array>

#include "symbols/name_scanner.h"

namespace malloscope::symbols {

// `nesting` counts functions that return pointers to functions that return pointers ...
static std::string_view own_name(std::string_view function, int nesting) {
  size_t start = 0, at = 0;
  while (at < function.size()) {
    char c = function[at];
    if (c == ' ') {
      start = ++at;
    } else if (c == '<') {
      at = skip_angles(function, at);
    } else if (c == '{' || c == '[') {
      at = skip_pair(function, at);
    } else if (c == 'o' && at_operator(function, at)) {
      at = skip_operator_name(function, at + 8);
    } else if (c != '(') {
      ++at;
    } else if (size_t anonymous = anonymous_at(function, at)) {
      at += anonymous;
    } else {
      std::string_view before = function.substr(0, at);
      size_t end = skip_pair(function, at);
      if (before.ends_with("decltype") || before.ends_with("decltype ")) {
        at = end;
      } else if (size_t scope = scope_behind(function, end); scope != function.npos) {
        at = scope + 2;
      } else if (at == start) {
        // "void (*find<int>(char))(int)": a function that returns a pointer to one.
        std::string_view inside = function.substr(at + 1, end - at - 2);
        size_t name = inside.find_first_not_of("*& ");
        if (end - at < 3 || name == inside.npos || name == 0 || nesting == 4) return function;
        return own_name(inside.substr(name), nesting + 1);
      } else {
        break;
      }
    }
  }
  std::string_view name = function.substr(start, at - start);
  return name.empty() ? function : name;
}

std::string_view qualified_name(std::string_view function) {
  return function.size() > kMaxParsed ? function : own_name(function, 0);
}

namespace {

bool is_plumbing_module(std::string_view path) {
  size_t slash = path.rfind('/');
  std::string_view name = slash == path.npos ? path : path.substr(slash + 1);
  // A prefix counts if a version or suffix follows: libc.so.6, libc-2.31.so, ld-linux-x86-64.so.2,
  // libtcmalloc_minimal.so.4. libcurl.so is not libc.
  static constexpr std::array<std::string_view, 21> kPrefixes = {
      "libmalloscope", "libjemalloc", "libtcmalloc", "libmimalloc", "libsnmalloc",  "libhoard",
      "librpmalloc",   "libscudo",    "libc.so",     "libc-2.",     "libc.musl",    "ld-linux",
      "ld-2.",         "ld.so",       "ld-musl",     "ld64.so",     "libstdc++.so", "libc++.so",
      "libc++abi",     "libgcc_s",    "libpthread"};
  return std::ranges::any_of(kPrefixes, [&](std::string_view p) { return name.starts_with(p); });
}

// Sorted. What may be linked into the program itself, or be our own hook.
constexpr std::array<std::string_view, 22> kAllocators = {
    "aligned_alloc",      "asprintf",   "calloc",         "cfree",   "free",
    "free_aligned_sized", "free_sized", "mallinfo",       "malloc",  "malloc_trim",
    "malloc_usable_size", "memalign",   "posix_memalign", "pvalloc", "realloc",
    "reallocarray",       "reallocf",   "strdup",         "strndup", "valloc",
    "vasprintf",          "wcsdup"};
static_assert(std::ranges::is_sorted(kAllocators));

bool is_plumbing_name(std::string_view name) {
  // Names reserved for the C and C++ libraries and their compilers' runtime.
  static constexpr std::array<std::string_view, 13> kPrefixes = {
      "std::",     "__gnu_cxx::", "__gnu_debug::", "__cxxabiv1::",
      "__cxa_",    "__libc_",     "_IO_",          "_dl_",
      "__GI_",     "_Unwind_",    "operator new",  "operator delete",
      "tcmalloc::"};
  if (std::ranges::any_of(kPrefixes, [&](std::string_view p) { return name.starts_with(p); }))
    return true;
  if (name.ends_with("@plt")) name.remove_suffix(4);
  for (std::string_view prefix : {"__", "_int_", "je_", "tc_", "mi_"}) {
    if (!name.starts_with(prefix)) continue;
    std::string_view rest = name.substr(prefix.size());
    if (std::ranges::binary_search(kAllocators, rest)) return true;
  }
  return std::ranges::binary_search(kAllocators, name);
}

}  // namespace

bool is_plumbing(std::string_view function, std::string_view module_path) {
  return is_plumbing_module(module_path) || is_plumbing_name(qualified_name(function));
}

}  // namespace malloscope::symbols
