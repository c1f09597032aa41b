// SPDX-License-Identifier: Apache-2.0
// The innermost clue is an allocator's type. If that is a node which a container wraps around the
// user's type, it is the answer. Else the next container further out is a better one: compilers and
// linkers make one function of two whose code is the same, and what is called
// std::_Vector_base<std::thread>::_M_allocate may allocate for a vector of numbers. But only if
// nothing but allocators is between: what an element's constructor asks for is no element.

#include "symbols/type_clue.h"

#include <algorithm>
#include <optional>

#include "symbols/name_rules.h"
#include "symbols/name_scanner.h"

namespace malloscope::symbols {
namespace {

// Of "prefix<A, B>rest" it is "A"; nothing if the text does not begin so.
std::optional<std::string_view> argument_of(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix) || text.size() <= prefix.size() || text[prefix.size()] != '<')
    return std::nullopt;
  size_t start = prefix.size() + 1, end = skip_angles(text, prefix.size());
  if (end <= start || text[end - 1] != '>') return std::nullopt;
  for (size_t at = start; at < end - 1;) {
    if (text[at] == ',') return text.substr(start, at - start);
    bool bracket = text[at] == '(' || text[at] == '[' || text[at] == '{';
    at = text[at] == '<' ? skip_angles(text, at) : bracket ? skip_pair(text, at) : at + 1;
  }
  return text.substr(start, end - 1 - start);
}

// The user's type in a node of a container; empty if it is none.
std::string in_node(std::string_view type) {
  if (type == "std::__detail::_Hash_node_base*") return "(hash buckets)";
  struct Wrapper {
    std::string_view name, remark;
  };
  static constexpr Wrapper kWrappers[] = {{"std::_Sp_counted_ptr_inplace", ""},
                                          {"std::_Rb_tree_node", " (tree node)"},
                                          {"std::__detail::_Hash_node", " (hash node)"},
                                          {"std::_List_node", " (list node)"},
                                          {"std::_Fwd_list_node", " (list node)"}};
  for (const Wrapper& wrapper : kWrappers)
    if (auto inside = argument_of(type, wrapper.name))
      return std::string(*inside) + std::string(wrapper.remark);
  return "";
}

// Whether it only passes on what a container asks for.
bool is_on_the_way(std::string_view own) {
  for (std::string_view base : {"std::_Vector_base", "std::_Bvector_base", "std::_Deque_base",
                                "std::_List_base", "operator new"})
    if (own.starts_with(base)) return true;
  // Its last name, without arguments of templates.
  std::string_view last = own;
  for (size_t at = 0; at < own.size();) {
    if (own[at] == ':') last = own.substr(at + 1);
    at = own[at] == '<' ? std::max(at + 1, skip_angles(own, at)) : at + 1;
  }
  last = last.substr(0, last.find('<'));
  return last.find("alloc") != last.npos || last.find("Alloc") != last.npos;
}

}  // namespace

std::string allocated_type(const std::vector<std::string_view>& functions) {
  std::string allocator_type;
  for (std::string_view function : functions) {
    std::string simple = simplified(function);
    std::string_view own = qualified_name(simple);
    // operator new of a class.
    if (size_t scope = own.rfind("::operator new"); scope != own.npos && scope > 0)
      return std::string(own.substr(0, scope));
    for (std::string_view maker : {"std::make_unique", "std::make_unique_for_overwrite",
                                   "std::make_shared", "std::allocate_shared"})
      if (auto made = argument_of(own, maker)) return std::string(*made);
    if (own.starts_with("std::string::") || own.starts_with("std::wstring::"))
      return std::string(own.substr(0, own.find("::", 5)));
    for (std::string_view array : {"std::vector", "std::deque"})
      if (auto element = argument_of(own, array)) return std::string(*element) + "[]";
    if (auto value = argument_of(own, "std::list")) return std::string(*value) + " (list node)";
    if (!is_on_the_way(own)) break;
    if (!allocator_type.empty()) continue;
    for (std::string_view allocator :
         {"std::__new_allocator", "__gnu_cxx::new_allocator", "std::allocator"}) {
      auto type = argument_of(own, allocator);
      if (!type) continue;
      if (std::string node = in_node(*type); !node.empty()) return node;
      allocator_type = *type;
    }
  }
  return allocator_type;
}

}  // namespace malloscope::symbols
