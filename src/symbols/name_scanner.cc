// SPDX-License-Identifier: Apache-2.0
#include "symbols/name_scanner.h"

#include <array>
#include <cctype>

namespace malloscope::symbols {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$'; }

size_t anonymous_at(std::string_view text, size_t at) {
  for (std::string_view form : {"(anonymous namespace)", "(anon)"})
    if (text.substr(at).starts_with(form)) return form.size();
  return 0;
}

size_t skip_pair(std::string_view text, size_t at) {
  char open = text[at], close = open == '(' ? ')' : open == '[' ? ']' : '}';
  int depth = 0;
  for (; at < text.size(); ++at) {
    if (text[at] == open) ++depth;
    if (text[at] == close && --depth == 0) return at + 1;
  }
  return text.size();
}

bool at_operator(std::string_view text, size_t at) {
  constexpr std::string_view kOperator = "operator";
  return text.substr(at).starts_with(kOperator) && (at == 0 || !is_word(text[at - 1])) &&
         (at + kOperator.size() == text.size() || !is_word(text[at + kOperator.size()]));
}

size_t skip_operator_symbol(std::string_view text, size_t at) {
  // Longest first.
  static constexpr std::array<std::string_view, 44> kNames = {
      " delete[]", " co_await", " delete", " new[]", " new", "<=>", "->*", "<<=", ">>=", "()", "[]",
      "<<",        ">>",        "<=",      ">=",     "->",   "==",  "!=",  "&&",  "||",  "++", "--",
      "+=",        "-=",        "*=",      "/=",     "%=",   "^=",  "&=",  "|=",  "<",   ">",  "=",
      "!",         "+",         "-",       "*",      "/",    "%",   "^",   "&",   "|",   "~",  ","};
  std::string_view rest = text.substr(at);
  for (std::string_view name : kNames) {
    if (!rest.starts_with(name)) continue;
    at += name.size();
    // "operator< <int>": the space only keeps the two apart.
    return text.substr(at).starts_with(" <") ? at + 1 : at;
  }
  if (rest.starts_with("\"\"") || rest.starts_with(" \"\"")) {  // operator"" _s
    at += rest.find('"') + 2;
    return at < text.size() && text[at] == ' ' ? at + 1 : at;
  }
  return at;
}

size_t skip_operator_name(std::string_view text, size_t at) {
  if (size_t end = skip_operator_symbol(text, at); end != at) return end;
  while (at < text.size() && (text[at] != '(' || anonymous_at(text, at))) {
    at = text[at] == '<' ? skip_angles(text, at) : text[at] == '(' ? skip_pair(text, at) : at + 1;
  }
  return at;
}

size_t skip_angles(std::string_view text, size_t at) {
  int depth = 0;
  while (at < text.size()) {
    char c = text[at];
    if (c == '(' || c == '[' || c == '{') {
      at = skip_pair(text, at);
      // "(sizeof (T))<(8)": less, for names do not end in parentheses.
      if (c == '(' && at < text.size() && text[at] == '<') ++at;
    } else if (c == 'o' && at_operator(text, at)) {
      at = skip_operator_name(text, at + 8);
    } else if (c == '-' && text.substr(at).starts_with("->")) {
      at += 2;
    } else {
      ++at;
      if (c == '<') ++depth;
      if (c == '>' && --depth == 0) return at;
    }
  }
  return at;
}

size_t scope_behind(std::string_view text, size_t at) {
  for (bool more = true; more;) {
    more = false;
    for (std::string_view mark : {" const", " volatile", " noexcept", " &&", " &", "&&", "&"}) {
      if (!text.substr(at).starts_with(mark)) continue;
      at += mark.size();
      more = true;
    }
    if (at < text.size() && text[at] == '[') at = skip_pair(text, at), more = true;
  }
  return text.substr(at).starts_with("::") ? at : text.npos;
}

}  // namespace malloscope::symbols
