// SPDX-License-Identifier: Apache-2.0
#include "output/json_writer.h"

#include <fmt/format.h>

#include <cmath>

#include "output/words.h"

namespace malloscope::output {

void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (scopes_.empty()) return;
  Scope& scope = scopes_.back();
  if (!scope.empty) sink_.write(scope.on_line ? ", " : ",");
  if (!scope.on_line) sink_.write("\n" + std::string(scopes_.size() * 2, ' '));
  scope.empty = false;
}

void JsonWriter::open(char bracket, Layout layout) {
  separate();
  bool on_line = layout == Layout::kLine || (!scopes_.empty() && scopes_.back().on_line);
  sink_.write(std::string_view(&bracket, 1));
  scopes_.push_back({bracket == '{' ? '}' : ']', on_line});
}

void JsonWriter::end() {
  Scope scope = scopes_.back();
  scopes_.pop_back();
  if (!scope.on_line && !scope.empty) sink_.write("\n" + std::string(scopes_.size() * 2, ' '));
  sink_.write(std::string_view(&scope.close, 1));
  if (scopes_.empty()) sink_.write("\n");
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  string(name);
  sink_.write(": ");
  after_key_ = true;
  return *this;
}

void JsonWriter::raw(std::string_view text) {
  separate();
  sink_.write(text);
}

void JsonWriter::integer(bool negative, uint64_t bits) {
  raw(negative ? fmt::format("{}", static_cast<int64_t>(bits)) : fmt::format("{}", bits));
}

void JsonWriter::value(double number, int digits) {
  if (!std::isfinite(number)) return null();
  raw(fmt::format("{:.{}g}", number, digits));
}

void JsonWriter::value(std::string_view text) {
  separate();
  string(text);
}

void JsonWriter::string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    char32_t c = 0;
    int length = utf8_length(text, &c);
    if (length == 0) {
      out += "\xef\xbf\xbd";
      length = 1;
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
      out += text.substr(0, static_cast<size_t>(length));
    }
    text.remove_prefix(static_cast<size_t>(length));
  }
  sink_.write(out + '"');
}

}  // namespace malloscope::output
