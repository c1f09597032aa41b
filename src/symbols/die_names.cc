// SPDX-License-Identifier: Apache-2.0
// Usually a function's entry carries its linkage name, the same that the symbol
// table has. GCC leaves it out for what is local to a file: static functions,
// members of anonymous namespaces, most lambdas. Such a name is had
//
//   1. from the symbol table, if somewhere in the unit a copy of the function was
//      not inlined and so has an address;
//   2. or is put together from the entries: scopes, name, parameter types. This
//      aims at what the demangler would print, and may differ in details that the
//      debug information does not tell (the numbers of lambdas, typedefs inside
//      template arguments).
//
// An entry may lead through several others: an inlined call to its abstract
// instance (DW_AT_abstract_origin) and that to the declaration in its class
// (DW_AT_specification). The last stands in the scope where the function was
// declared.

#include "symbols/die_names.h"

#include <dwarf.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "symbols/demangle.h"
#include "symbols/die_walk.h"
#include "symbols/name_rules.h"

namespace malloscope::symbols {

// Real names stay far below; damaged files may refer in circles or grow without end.
static constexpr int kMaxDepth = 40;
static constexpr int kMaxTypes = 2000;

static std::string text(Dwarf_Die die, unsigned attribute) {
  Dwarf_Attribute a;
  const char* value = dwarf_attr_integrate(&die, attribute, &a) ? dwarf_formstring(&a) : nullptr;
  return value ? value : "";
}

static bool flag(Dwarf_Die die, unsigned attribute) {
  Dwarf_Attribute a;
  bool set = false;
  return dwarf_attr_integrate(&die, attribute, &a) && dwarf_formflag(&a, &set) == 0 && set;
}

static bool follow(Dwarf_Die* die, unsigned attribute) {
  Dwarf_Attribute a;
  Dwarf_Die target;
  if (!dwarf_attr(die, attribute, &a) || !dwarf_formref_die(&a, &target)) return false;
  *die = target;
  return true;
}

// The entry that all copies of a function share.
static Dwarf_Die definition_of(Dwarf_Die die) {
  for (int i = 0; i < kMaxDepth && follow(&die, DW_AT_abstract_origin); ++i) continue;
  return die;
}

static Dwarf_Die declaration_of(Dwarf_Die die) {
  for (int i = 0; i < kMaxDepth && follow(&die, DW_AT_specification); ++i) continue;
  return die;
}

// "[3]", "[2][3]", "[]".
static std::string bounds_of(Dwarf_Die array) {
  std::string bounds;
  walk_below(array, 0, [&](Dwarf_Die die, int) -> std::optional<int> {
    Dwarf_Attribute a;
    Dwarf_Word value;
    if (dwarf_tag(&die) != DW_TAG_subrange_type) return std::nullopt;
    if (dwarf_attr(&die, DW_AT_count, &a) && dwarf_formudata(&a, &value) == 0)
      bounds += "[" + std::to_string(value) + "]";
    else if (dwarf_attr(&die, DW_AT_upper_bound, &a) && dwarf_formudata(&a, &value) == 0)
      bounds += "[" + std::to_string(value + 1) + "]";
    else
      bounds += "[]";
    return std::nullopt;
  });
  return bounds.empty() ? "[]" : bounds;
}

static bool is_cplusplus(Dwarf_Die die) {
  Dwarf_Die unit;
  if (!dwarf_diecu(&die, &unit, nullptr, nullptr)) return false;
  switch (dwarf_srclang(&unit)) {
    case DW_LANG_C_plus_plus:
    case DW_LANG_C_plus_plus_03:
    case DW_LANG_C_plus_plus_11:
    case DW_LANG_C_plus_plus_14:
    case DW_LANG_ObjC_plus_plus:
    case 0x2a:  // C++17, C++20 and C++23, which this libdw has no names for.
    case 0x2b:
    case 0x3a:
      return true;
    default:
      return false;
  }
}

// The debug information says "long unsigned int", the demangler "unsigned long".
static std::string demangler_words(std::string name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kWords = {{
      {"long long unsigned int", "unsigned long long"},
      {"long unsigned int", "unsigned long"},
      {"short unsigned int", "unsigned short"},
      {"__int128 unsigned", "unsigned __int128"},
      {"long long int", "long long"},
      {"long int", "long"},
      {"short int", "short"},
  }};
  for (auto [from, to] : kWords)
    for (size_t at = 0; (at = name.find(from, at)) != name.npos; at += to.size())
      name.replace(at, from.size(), to);
  // GCC's "<lambda(int)>" is the demangler's "{lambda(int)#1}"; which number is not known.
  for (size_t at = 0; (at = name.find("<lambda(", at)) != name.npos; ++at) {
    int depth = 0;
    size_t end = at + 7;
    while (end < name.size() && (name[end] == '(' ? ++depth : name[end] == ')' ? --depth : depth))
      ++end;
    if (name.substr(end, 2) != ")>") continue;
    name[at] = '{';
    name[end + 1] = '}';
  }
  return name;
}

// "int" of "int const".
static std::string without_const(std::string type) {
  if (type.ends_with(" const")) type.resize(type.size() - 6);
  return type;
}

// Of "f<int, g<char, long> >": 2.
static size_t count_arguments(std::string_view name) {
  size_t commas = 0;
  int depth = 0;
  for (char c : name) {
    depth += (c == '<' || c == '(' || c == '{') - (c == '>' || c == ')' || c == '}');
    commas += c == ',' && depth == 1;
  }
  return commas + 1;
}

const std::string& DieNames::function_name(Dwarf_Die die) {
  Dwarf_Die definition = definition_of(die);
  auto [found, fresh] = names_.try_emplace(definition.addr);
  std::string& name = found->second;  // Stays in place whatever else is added.
  if (fresh && open_ < kMaxDepth) {
    ++open_;
    name = name_of(definition);
    --open_;
  }
  return name;
}

void DieNames::note_code(Dwarf_Die die, uint64_t address) {
  code_.try_emplace(definition_of(die).addr, address);
}

std::string DieNames::name_of(Dwarf_Die definition) {
  for (unsigned attribute : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name})
    if (std::string linkage = text(definition, attribute); !linkage.empty())
      return display_name(linkage);

  std::string name = text(definition, DW_AT_name);
  if (name.empty() || !is_cplusplus(definition)) return name;
  std::string symbol = symbol_of(definition, name);
  return symbol.empty() ? built_name(definition) : symbol;
}

std::string DieNames::built_name(Dwarf_Die definition) {
  if (open_ <= 1) budget_ = kMaxTypes;
  Dwarf_Die declaration = declaration_of(definition);
  std::string scope = scope_of(declaration, 0);
  std::string name = own_name(definition, 0);
  // Visible outside and not mangled: main, or extern "C".
  if (scope.empty() && flag(definition, DW_AT_external)) return name;

  // Mangled names of templates tell the return type, but for constructors and conversions.
  std::string bare = name.substr(0, name.find('<', 1));
  std::string owner = scope.substr(0, scope.find('<'));
  bool constructs = owner == bare + "::" || owner.ends_with("::" + bare + "::") || owner == bare ||
                    owner.ends_with("::" + bare);
  std::string result;
  if (name.ends_with('>') && !bare.starts_with("operator ") && !constructs)
    result = type_of(definition, 0) + " ";
  return result + scope + name + parameters_of(definition, declaration, 0);
}

// Without scopes; with the arguments of a template.
std::string DieNames::own_name(Dwarf_Die die, int depth) {
  std::string name = text(die, DW_AT_name);
  if (name.empty()) return unnamed_type(die, depth);
  if (name.starts_with("operator ") && !name.starts_with("operator new") &&
      !name.starts_with("operator delete"))
    return "operator " + type_of(die, depth + 1);
  // What the name says itself leaves out defaults and is spelled in the compiler's way.
  if (name.ends_with('>') && !name.starts_with('<') && !name.starts_with("operator")) {
    std::string arguments = template_arguments(die, depth + 1);
    if (!arguments.empty()) return name.substr(0, name.find('<')) + arguments;
  }
  return demangler_words(name);
}

// A class that can be called is a lambda's.
std::string DieNames::unnamed_type(Dwarf_Die die, int depth) {
  std::string name = "{unnamed type}";
  walk_below(die, 0, [&](Dwarf_Die member, int) -> std::optional<int> {
    if (dwarf_tag(&member) == DW_TAG_subprogram && text(member, DW_AT_name) == "operator()") {
      std::string parameters = parameters_of(member, member, depth + 1);
      name = "{lambda" + parameters.substr(0, parameters.rfind(')') + 1) + "}";
    }
    return std::nullopt;
  });
  return name;
}

// "<int, 5ul>"; empty if there are none or some cannot be said.
std::string DieNames::template_arguments(Dwarf_Die die, int depth) {
  if (depth >= kMaxDepth) return "";
  std::string list;
  bool complete = true;
  size_t count = 0;
  walk_below(die, 0, [&](Dwarf_Die child, int) -> std::optional<int> {
    std::string argument;
    switch (dwarf_tag(&child)) {
      case DW_TAG_GNU_template_parameter_pack:
        return 0;
      case DW_TAG_template_type_parameter:
        argument = type_of(child, depth + 1);
        break;
      case DW_TAG_template_value_parameter:
        argument = template_value(child, depth + 1);
        break;
      case DW_TAG_GNU_template_template_param:
        argument = text(child, DW_AT_GNU_template_name);
        break;
      default:
        return std::nullopt;
    }
    if (argument.empty()) complete = false;
    ++count;
    if (!list.empty()) list += ", ";
    list += argument;
    return std::nullopt;
  });
  // Of a partial specialisation GCC tells only the arguments that are not fixed.
  if (list.empty() || !complete || count < count_arguments(text(die, DW_AT_name))) return "";
  return "<" + list + (list.ends_with('>') ? " >" : ">");
}

// "true", "5", "5ul", "(Color)1"; empty for what is not a number.
std::string DieNames::template_value(Dwarf_Die die, int depth) {
  Dwarf_Attribute a;
  Dwarf_Sword value;
  if (!dwarf_attr(&die, DW_AT_const_value, &a) || dwarf_formsdata(&a, &value) != 0) return "";
  std::string type = type_of(die, depth), digits = std::to_string(value);
  type = without_const(type);
  if (type == "bool") return value ? "true" : "false";
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kSuffixes = {{
      {"int", ""},
      {"unsigned int", "u"},
      {"long", "l"},
      {"unsigned long", "ul"},
      {"long long", "ll"},
      {"unsigned long long", "ull"},
  }};
  for (auto [name, suffix] : kSuffixes)
    if (type == name) return digits + std::string(suffix);
  return "(" + type + ")" + digits;
}

// The name in the symbol table of a copy that has code of its own, or empty.
std::string DieNames::symbol_of(Dwarf_Die definition, const std::string& name) const {
  auto code = code_.find(definition.addr);
  if (code == code_.end()) return "";
  const auto* symbol = symbols_.find(code->second);
  if (!symbol || symbol->start != code->second || !symbol->name.starts_with("_Z")) return "";
  // Equal code may have been folded, and then the symbol is another function's.
  std::string shown = display_name(symbol->name);
  return shown.find(name.substr(0, name.find('<', 1))) == shown.npos ? "" : shown;
}

// The enclosing scopes, each with its "::".
std::string DieNames::scope_of(Dwarf_Die die, int depth) {
  Dwarf_Die parent;
  if (depth >= kMaxDepth || !parent_of(die, &parent)) return "";
  Dwarf_Die outer = declaration_of(parent);
  std::string name;
  switch (dwarf_tag(&parent)) {
    case DW_TAG_namespace:
      name = text(outer, DW_AT_name);
      if (name.empty()) name = "(anonymous namespace)";
      break;
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_interface_type:
      name = own_name(outer, depth + 1);
      break;
    case DW_TAG_subprogram: {
      // As a scope, a template's name does not tell the return type.
      std::string_view function = function_name(parent);
      size_t start = static_cast<size_t>(qualified_name(function).data() - function.data());
      return std::string(function.substr(start)) + "::";
    }
    default:
      return scope_of(parent, depth + 1);  // A block.
  }
  return scope_of(outer, depth + 1) + name + "::";
}

std::string DieNames::parameters_of(Dwarf_Die definition, Dwarf_Die declaration, int depth) {
  std::string list, qualifier;
  bool method = false;
  for (Dwarf_Die owner : {definition, declaration}) {
    walk_below(owner, 0, [&](Dwarf_Die die, int) -> std::optional<int> {
      int tag = dwarf_tag(&die);
      if (tag == DW_TAG_GNU_formal_parameter_pack) return 0;
      if (tag != DW_TAG_formal_parameter && tag != DW_TAG_unspecified_parameters)
        return std::nullopt;
      if (flag(die, DW_AT_artificial)) {
        // `this`: tells whether the function is const.
        std::string type = without_const(type_of(die, depth + 1));
        if (!method && type.ends_with(" const*")) qualifier = " const";
        method = true;
        return std::nullopt;
      }
      if (!list.empty()) list += ", ";
      std::string type = tag == DW_TAG_formal_parameter ? type_of(die, depth + 1) : "...";
      list += without_const(type);  // f(int) and f(const int) are the same function.
      return std::nullopt;
    });
    if (method || !list.empty() || owner.addr == declaration.addr) break;
  }
  return "(" + list + ")" + qualifier;
}

std::string DieNames::type_of(Dwarf_Die die, int depth) {
  Dwarf_Attribute a;
  Dwarf_Die type;
  if (!dwarf_attr_integrate(&die, DW_AT_type, &a) || !dwarf_formref_die(&a, &type)) return "void";
  return type_name(type, depth);
}

std::string DieNames::type_name(Dwarf_Die type, int depth) {
  if (depth >= kMaxDepth || --budget_ < 0) return "?";
  auto pointer_to = [&](std::string mark) {
    std::string target = type_of(type, depth + 1);
    // "void (int)" -> "void (*)(int)", "int [3]" -> "int (*) [3]"
    size_t call = target.find(" ("), bounds = target.rfind(" [");
    if (call != target.npos && target.ends_with(')'))
      return target.insert(call + 1, "(" + mark + ")");
    if (bounds != target.npos && target.ends_with(']'))
      return target.insert(bounds, " (" + mark + ")");
    return target + mark;
  };
  switch (dwarf_tag(&type)) {
    case DW_TAG_pointer_type:
      return pointer_to("*");
    case DW_TAG_reference_type:
      return pointer_to("&");
    case DW_TAG_rvalue_reference_type:
      return pointer_to("&&");
    case DW_TAG_const_type:
      return type_of(type, depth + 1) + " const";
    case DW_TAG_volatile_type:
      return type_of(type, depth + 1) + " volatile";
    case DW_TAG_typedef:
    case DW_TAG_restrict_type:
    case DW_TAG_atomic_type:
      return type_of(type, depth + 1);
    case DW_TAG_array_type:
      return type_of(type, depth + 1) + " " + bounds_of(type);
    case DW_TAG_subroutine_type:
      return type_of(type, depth + 1) + " " + parameters_of(type, type, depth + 1);
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_enumeration_type:
      return scope_of(declaration_of(type), depth + 1) + own_name(type, depth + 1);
    default:
      return demangler_words(text(type, DW_AT_name));
  }
}

// libdw knows the children of an entry but not its parent. Of every unit that is
// asked about, we note the parents of what can be declared in a scope.
bool DieNames::parent_of(Dwarf_Die die, Dwarf_Die* parent) {
  Dwarf_Die unit;
  if (!dwarf_diecu(&die, &unit, nullptr, nullptr)) return false;
  auto [known, fresh] = parents_.try_emplace(unit.addr);
  Parents& parents = known->second;
  if (fresh) {
    // The walk goes upwards in memory, so they are sorted.
    walk_below(unit, unit.addr, [&](Dwarf_Die inner, void* outer) -> std::optional<void*> {
      switch (dwarf_tag(&inner)) {
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_union_type:
        case DW_TAG_interface_type:
        case DW_TAG_subprogram:
        case DW_TAG_lexical_block:
        case DW_TAG_enumeration_type:
          if (outer != unit.addr) parents.push_back({inner.addr, outer});
          return inner.addr;
        default:
          return std::nullopt;
      }
    });
  }
  auto found = std::ranges::lower_bound(parents, die.addr, {}, &Child::die);
  if (found == parents.end() || found->die != die.addr) return false;
  *parent = die;
  parent->addr = found->parent;
  parent->abbrev = nullptr;  // libdw finds it when it needs it.
  return true;
}

}  // namespace malloscope::symbols
