// SPDX-License-Identifier: Apache-2.0
// One pass through the name, copying. Only when a template's '>' is met it is known
// whether its last arguments are those that would be there anyway; they are the end of what was
// copied, and are taken back. The arguments themselves are simple by then, so that
// the defaults can be told by comparing text:
//
//     std::map<K, V, std::less<K>, std::allocator<std::pair<K const, V>>>
//
// A default is compared only with text of the same length, which holds another copy of the
// element; so the work of comparing grows no faster than the name.

#include "symbols/readable_name.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <unordered_map>

#include "symbols/name_rules.h"
#include "symbols/name_scanner.h"

namespace malloscope::symbols {
namespace {

// What a template's last arguments are by default; $0 is its first argument. Null: the end.
struct Defaults {
  std::string_view name;
  size_t wanted;  // Arguments that always stay.
  std::array<const char*, 3> values;
};
constexpr const char* kPair = "std::allocator<std::pair<$0 const, $1>>";
constexpr Defaults kDefaults[] = {
    {"std::vector", 1, {"std::allocator<$0>"}},
    {"std::deque", 1, {"std::allocator<$0>"}},
    {"std::list", 1, {"std::allocator<$0>"}},
    {"std::forward_list", 1, {"std::allocator<$0>"}},
    {"std::set", 1, {"std::less<$0>", "std::allocator<$0>"}},
    {"std::multiset", 1, {"std::less<$0>", "std::allocator<$0>"}},
    {"std::map", 2, {"std::less<$0>", kPair}},
    {"std::multimap", 2, {"std::less<$0>", kPair}},
    {"std::unordered_set", 1, {"std::hash<$0>", "std::equal_to<$0>", "std::allocator<$0>"}},
    {"std::unordered_multiset", 1, {"std::hash<$0>", "std::equal_to<$0>", "std::allocator<$0>"}},
    {"std::unordered_map", 2, {"std::hash<$0>", "std::equal_to<$0>", kPair}},
    {"std::unordered_multimap", 2, {"std::hash<$0>", "std::equal_to<$0>", kPair}},
    {"std::unique_ptr", 1, {"std::default_delete<$0>"}},
    {"std::queue", 1, {"std::deque<$0>"}},
    {"std::stack", 1, {"std::deque<$0>"}},
    {"std::priority_queue", 1, {"std::vector<$0>", "std::less<$0>"}},
    {"std::span", 1, {"18446744073709551615ul"}},
    {"std::basic_string", 1, {"std::char_traits<$0>", "std::allocator<$0>"}},
    {"std::basic_string_view", 1, {"std::char_traits<$0>"}},
    {"std::basic_ostream", 1, {"std::char_traits<$0>"}},
    {"std::basic_istream", 1, {"std::char_traits<$0>"}},
    {"std::basic_iostream", 1, {"std::char_traits<$0>"}},
    {"std::basic_ios", 1, {"std::char_traits<$0>"}},
    {"std::basic_streambuf", 1, {"std::char_traits<$0>"}},
    {"std::basic_filebuf", 1, {"std::char_traits<$0>"}},
    {"std::basic_ifstream", 1, {"std::char_traits<$0>"}},
    {"std::basic_ofstream", 1, {"std::char_traits<$0>"}},
    {"std::basic_fstream", 1, {"std::char_traits<$0>"}},
    {"std::basic_stringbuf", 1, {"std::char_traits<$0>", "std::allocator<$0>"}},
    {"std::basic_stringstream", 1, {"std::char_traits<$0>", "std::allocator<$0>"}},
    {"std::basic_istringstream", 1, {"std::char_traits<$0>", "std::allocator<$0>"}},
    {"std::basic_ostringstream", 1, {"std::char_traits<$0>", "std::allocator<$0>"}},
    {"std::istreambuf_iterator", 1, {"std::char_traits<$0>"}},
    {"std::ostreambuf_iterator", 1, {"std::char_traits<$0>"}},
    {"std::basic_regex", 1, {"std::regex_traits<$0>"}},
};

// The insides of libstdc++'s containers: how many of their arguments say anything.
constexpr std::pair<std::string_view, size_t> kInsides[] = {
    {"std::_Rb_tree", 2},
    {"std::_Hashtable", 2},
    {"std::__detail::_Map_base", 2},
    {"std::__detail::_Insert", 2},
    {"std::__detail::_Insert_base", 2},
    {"std::_Vector_base", 1},
    {"std::_Deque_base", 1},
    {"std::_List_base", 1},
    {"std::__shared_ptr", 1},
    {"std::__shared_count", 0},
    {"std::__weak_ptr", 1},
    {"std::__uniq_ptr_impl", 1},
    {"std::_Sp_counted_ptr_inplace", 1},
    {"std::_Sp_counted_ptr", 1},
    {"std::_Sp_counted_deleter", 1},
};

// The std::basic_x<char> that have names of their own.
constexpr std::string_view kTypedefs[] = {
    "string",        "string_view", "ostream",  "istream",      "iostream", "ios",
    "streambuf",     "filebuf",     "ifstream", "ofstream",     "fstream",  "stringstream",
    "istringstream", "stringbuf",   "regex",    "ostringstream"};
constexpr std::pair<std::string_view, std::string_view> kCharacters[] = {
    {"char", ""}, {"wchar_t", "w"}, {"char8_t", "u8"}, {"char16_t", "u16"}, {"char32_t", "u32"}};

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Namespaces that are there for the linker: their members are those of `outer`.
bool is_inline_namespace(std::string_view outer, std::string_view word) {
  if (outer.starts_with("std::"))
    return word == "__cxx11" || word == "__1" || word == "__ndk1" || word == "_V2";
  if (outer == "fmt::") return word.starts_with('v') && is_digits(word.substr(1));
  if (outer == "absl::") return word.starts_with("lts_");
  if (outer == "nlohmann::") return word.starts_with("json_abi");
  return false;
}

class Simplifier {
 public:
  explicit Simplifier(std::string_view in) : in_(in) {}

  std::string run() {
    while (at_ < in_.size()) {
      sequence('\0', 0);
      if (at_ < in_.size()) copy(at_ + 1);  // A bracket that nothing opened.
    }
    return std::move(out_);
  }

 private:
  // Recursion ends here; what lies deeper is copied as it is.
  static constexpr int kDeepest = 200;

  std::string_view rest() const { return in_.substr(at_); }
  void copy(size_t end) {
    out_ += in_.substr(at_, end - at_);
    at_ = end;
  }

  // Up to the bracket that closes what we are in, or, in template arguments, up to a comma.
  void sequence(char close, int depth) {
    size_t name = out_.size();  // Where the (qualified) name that we are in begins in out_.
    while (at_ < in_.size()) {
      char c = in_[at_];
      if (c == close && close != '\0') return;
      if (close == '>' && c == ',') return;
      if (is_word(c)) {
        word(name, depth);
        continue;
      }
      switch (c) {
        case ':':
        case '~':
          copy(at_ + 1);
          continue;
        case '<':
          if (!out_.empty() && out_.size() > name && is_word(out_.back())) {
            template_arguments(name, depth);
            continue;
          }
          copy(at_ + 1);  // Less.
          break;
        case '-':
          copy(std::min(in_.size(), at_ + (rest().starts_with("->") ? 2 : 1)));
          break;
        case '(':
          if (size_t anonymous = anonymous_at(in_, at_)) {
            out_ += "(anon)";
            at_ += anonymous;
            continue;
          }
          parameters(depth);
          if (scope_behind(in_, at_) != in_.npos) continue;  // Of an enclosing function.
          break;
        case '{':
          braces();
          continue;
        case '[':
          if (rest().starts_with("[abi:"))
            at_ = skip_pair(in_, at_);
          else
            copy(skip_pair(in_, at_));
          continue;
        default:
          copy(at_ + 1);
      }
      name = out_.size();
    }
  }

  void word(size_t name, int depth) {
    size_t end = at_;
    while (end < in_.size() && is_word(in_[end])) ++end;
    std::string_view word = in_.substr(at_, end - at_);
    if (word == "operator") {
      at_ = end;
      operator_name(name, depth);
    } else if (in_.substr(end).starts_with("::") &&
               is_inline_namespace(std::string_view(out_).substr(name), word)) {
      at_ = end + 2;
    } else if (word.starts_with("$_") && is_digits(word.substr(2)) && word.size() < 8) {
      // clang's name of a lambda.
      out_ += "lambda#" + std::to_string(std::stoi(std::string(word.substr(2))) + 1);
      lambda_end_ = out_.size();
      at_ = end;
    } else {
      copy(end);
    }
  }

  void operator_name(size_t name, int depth) {
    size_t end = skip_operator_symbol(in_, at_);
    if (in_.substr(at_, end - at_) == "()" && lambda_end_ > 0 && out_.size() == lambda_end_ + 2 &&
        out_.ends_with("::")) {
      out_.resize(lambda_end_);  // A lambda is called; there is nothing else to do with it.
      at_ = end;
    } else {
      out_ += "operator";
      copy(end);
    }
    if (end < in_.size() && in_[end] == '<') template_arguments(name, depth);
  }

  void parameters(int depth) {
    if (depth == kDeepest) return copy(skip_pair(in_, at_));
    copy(at_ + 1);
    sequence(')', depth + 1);
    if (at_ < in_.size()) copy(at_ + 1);
  }

  void braces() {
    size_t end = skip_pair(in_, at_);
    std::string_view inside = in_.substr(at_ + 1, end - at_ - 1);
    if (inside.ends_with('}')) inside.remove_suffix(1);
    size_t mark = inside.rfind('#');
    std::string_view number = mark == inside.npos ? "" : inside.substr(mark + 1);
    bool lambda = inside.starts_with("lambda(");
    if (is_digits(number) && (lambda || inside.starts_with("unnamed type"))) {
      out_ += lambda ? "lambda#" : "unnamed#";
      out_ += number;
      if (lambda) lambda_end_ = out_.size();
      at_ = end;
    } else {
      copy(end);
    }
  }

  void template_arguments(size_t name, int depth) {
    if (depth == kDeepest) return copy(skip_angles(in_, at_));
    size_t name_end = out_.size();
    std::vector<size_t> starts;  // Of arguments, in out_; a separator is before each.
    copy(at_ + 1);
    for (;;) {
      while (at_ < in_.size() && in_[at_] == ' ') ++at_;
      starts.push_back(out_.size());
      sequence('>', depth + 1);
      while (out_.size() > starts.back() && out_.back() == ' ') out_.pop_back();  // "> >"
      if (at_ == in_.size()) return;
      if (in_[at_] == '>') break;
      ++at_;
      out_ += ", ";
    }
    ++at_;
    // Only the standard library's templates have defaults that we know.
    std::string_view text = std::string_view(out_).substr(name, name_end - name);
    if (text.starts_with("std::")) drop_defaults(text, name_end, &starts);
    out_ += '>';
    if (std::string_view(out_).substr(name).starts_with("std::basic_")) use_typedef(name);
  }

  // The end of argument `i`, whose separator ", " belongs to nobody.
  size_t end_of(const std::vector<size_t>& starts, size_t i) const {
    return i + 1 < starts.size() ? starts[i + 1] - 2 : out_.size();
  }

  void drop_defaults(std::string_view name, size_t name_end, std::vector<size_t>* starts) {
    auto keep = [&](size_t count) {
      if (count >= starts->size()) return;
      out_.resize(count == 0 ? name_end + 1 : end_of(*starts, count - 1));
      starts->resize(count);
    };
    for (auto [inside, count] : kInsides)
      if (name == inside) return keep(count);
    for (const Defaults& known : kDefaults) {
      if (name != known.name) continue;
      for (size_t count = starts->size(); count > known.wanted; --count) {
        size_t which = count - 1 - known.wanted;
        const char* value = which < known.values.size() ? known.values[which] : nullptr;
        if (!value || !is_default(value, *starts, count - 1)) break;
        keep(count - 1);
      }
      return;
    }
  }

  // Whether argument `i` is `pattern` with the first ones in the place of $0 and $1.
  bool is_default(std::string_view pattern, const std::vector<size_t>& starts, size_t i) const {
    std::string_view out = out_;
    auto argument = [&](size_t n) { return out.substr(starts[n], end_of(starts, n) - starts[n]); };
    std::string_view text = argument(i);
    size_t length = 0;
    for (size_t p = 0; p < pattern.size(); ++p)
      length += pattern[p] == '$' ? argument(static_cast<size_t>(pattern[++p] - '0')).size() : 1;
    if (length != text.size()) return false;
    for (size_t p = 0; p < pattern.size(); ++p) {
      if (pattern[p] != '$') {
        if (text[0] != pattern[p]) return false;
        text.remove_prefix(1);
        continue;
      }
      std::string_view element = argument(static_cast<size_t>(pattern[++p] - '0'));
      if (!text.starts_with(element)) return false;
      text.remove_prefix(element.size());
    }
    return true;
  }

  void use_typedef(size_t name) {
    std::string_view text = std::string_view(out_).substr(name);
    text.remove_prefix(std::string_view("std::basic_").size());
    size_t angle = text.find('<');
    std::string_view kind = text.substr(0, angle), argument = text.substr(angle + 1);
    if (std::ranges::find(kTypedefs, kind) == std::end(kTypedefs)) return;
    argument.remove_suffix(1);
    for (auto [character, prefix] : kCharacters) {
      if (argument != character) continue;
      std::string short_form = "std::" + std::string(prefix) + std::string(kind);
      out_.resize(name);
      out_ += short_form;
      return;
    }
  }

  std::string_view in_;
  size_t at_ = 0;
  std::string out_;
  size_t lambda_end_ = 0;  // In out_, behind the last lambda; 0: there was none.
};

// rustc ends every name in a hash.
std::string_view without_rust_hash(std::string_view name) {
  constexpr size_t kHash = 19;  // "::h" and 16 digits.
  if (name.size() <= kHash) return name;
  std::string_view hash = name.substr(name.size() - kHash);
  bool is_hash = hash.starts_with("::h") &&
                 hash.substr(3).find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return is_hash ? name.substr(0, name.size() - kHash) : name;
}

// A qualified name without the parameters of the functions that enclose it.
std::string without_parameters(std::string_view name) {
  std::string text;
  for (size_t at = 0; at < name.size();) {
    size_t end = at + 1;
    if (name[at] == '<') {
      end = skip_angles(name, at);
    } else if (name[at] == '{' || name[at] == '[') {
      end = skip_pair(name, at);
    } else if (at_operator(name, at)) {
      end = skip_operator_name(name, at + 8);
    } else if (size_t anonymous = anonymous_at(name, at)) {
      end = at + anonymous;
    } else if (name[at] == '(') {
      end = skip_pair(name, at);
      if (size_t scope = scope_behind(name, end); scope != name.npos) {
        at = scope;
        continue;
      }
    }
    text += name.substr(at, end - at);
    at = end;
  }
  return text;
}

// Template arguments that are nested deeper than `kept` become "<...>".
std::string elided(std::string_view name, int kept) {
  std::string text;
  int depth = 0;
  for (size_t at = 0; at < name.size();) {
    size_t end = at + 1;
    if (at_operator(name, at)) {
      end = skip_operator_name(name, at + 8);
    } else if (size_t anonymous = anonymous_at(name, at)) {
      end = at + anonymous;
    } else if (name[at] == '(' && depth > 0) {
      end = skip_pair(name, at);
      text += end - at == 2 ? "()" : "(...)";
      at = end;
      continue;
    } else if (name[at] == '<' && depth == kept) {
      text += "<...>";
      at = skip_angles(name, at);
      continue;
    } else if (name.substr(at).starts_with("->")) {
      end = at + 2;
    } else if (name[at] == '<') {
      ++depth;
    } else if (name[at] == '>') {
      depth = std::max(0, depth - 1);
    }
    text += name.substr(at, end - at);
    at = end;
  }
  return text;
}

// The forms of a name, from short to whole.
enum Form { kElided, kName, kWithParameters, kSimplified, kWhole };

std::string form_of(std::string_view function, Form form, size_t room) {
  if (form == kWhole || function.size() > kMaxParsed) return std::string(function);
  std::string simple = simplified(function);
  if (simple.empty()) return std::string(function);
  if (form == kSimplified) return simple;
  std::string_view own = qualified_name(simple);
  if (own.empty()) return simple;
  if (form == kWithParameters) {
    // From the name on; a function that returns a function pointer has it in the middle.
    auto start = static_cast<size_t>(own.data() - simple.data());
    return start > 0 && simple[start - 1] != ' ' ? simple : simple.substr(start);
  }
  std::string name = without_parameters(own);
  if (name.empty()) return simple;
  if (form == kName || name.size() <= room) return name;
  std::string brief = elided(name, 1);
  return brief.size() <= room ? brief : elided(name, 0);
}

}  // namespace

std::string simplified(std::string_view function) {
  if (function.size() > kMaxParsed) return std::string(function);
  return Simplifier(without_rust_hash(function)).run();
}

std::string short_name(std::string_view function, size_t room) {
  return form_of(function, kElided, room);
}

std::string fitted_name(std::string_view name, size_t room) {
  if (name.size() <= room || name.size() > kMaxParsed) return std::string(name);
  for (int kept : {1, 0})
    if (std::string brief = elided(name, kept); brief.size() <= room) return brief;
  std::string brief = elided(name, 0);
  std::string_view rest = brief;
  constexpr std::string_view kDots = "...";
  for (size_t at = 0; at < brief.size() && kDots.size() + rest.size() > room;) {
    if (at_operator(brief, at) || (brief[at] == '(' && !anonymous_at(brief, at))) break;
    if (size_t anonymous = anonymous_at(brief, at)) {
      at += anonymous;
    } else if (brief[at] == '<' || brief[at] == '{') {
      at = brief[at] == '<' ? skip_angles(brief, at) : skip_pair(brief, at);
    } else if (brief.compare(at, 2, "::") == 0) {
      at += 2;
      if (at < brief.size()) rest = std::string_view(brief).substr(at);
    } else {
      ++at;
    }
  }
  return rest.size() == brief.size() ? brief : std::string(kDots) + std::string(rest);
}

std::vector<std::string> short_names(const std::vector<std::string_view>& functions, size_t room) {
  std::vector<std::string> names;
  std::vector<Form> forms(functions.size(), kElided);
  for (std::string_view function : functions) names.push_back(short_name(function, room));
  for (bool clash = true; clash;) {
    clash = false;
    std::unordered_map<std::string_view, size_t> first;  // Of the functions with this name.
    std::vector<bool> ambiguous(functions.size());
    for (size_t i = 0; i < names.size(); ++i) {
      auto [other, fresh] = first.try_emplace(names[i], i);
      if (fresh || functions[other->second] == functions[i]) continue;
      ambiguous[i] = ambiguous[other->second] = true;
    }
    // All of a group, also those that are equal to its first one.
    for (size_t i = 0; i < names.size(); ++i)
      if (ambiguous[first.at(names[i])]) ambiguous[i] = true;
    first.clear();  // Its keys are about to change.
    for (size_t i = 0; i < names.size(); ++i) {
      if (!ambiguous[i] || forms[i] == kWhole) continue;
      forms[i] = static_cast<Form>(forms[i] + 1);
      names[i] = form_of(functions[i], forms[i], room);
      clash = true;
    }
  }
  return names;
}

}  // namespace malloscope::symbols
