// SPDX-License-Identifier: Apache-2.0
// Writes JSON piece by piece, so that a report of a million sites needs no tree.

#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "output/sink.h"

namespace malloscope::output {

class JsonWriter {
 public:
  explicit JsonWriter(Sink* sink) : sink_(*sink) {}

  // Scopes of kLine are kept on one line, with all that is inside.
  enum class Layout { kLines, kLine };
  void begin_object(Layout layout = Layout::kLines) { open('{', layout); }
  void begin_array(Layout layout = Layout::kLines) { open('[', layout); }
  void end();  // Of the innermost object or array; a line's end after the outermost.

  JsonWriter& key(std::string_view name);

  // Bytes that are no UTF-8 become U+FFFD.
  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(bool yes) { raw(yes ? "true" : "false"); }
  void value(double number, int digits = 6);
  void value(std::integral auto number) { integer(number < 0, static_cast<uint64_t>(number)); }
  void null() { raw("null"); }
  template <typename T>
  void value(const std::optional<T>& maybe) {
    maybe ? value(*maybe) : null();
  }

  template <typename T>
  void member(std::string_view name, const T& what) {
    key(name).value(what);
  }

 private:
  struct Scope {
    char close;
    bool on_line;
    bool empty = true;
  };

  void open(char bracket, Layout layout);
  void separate();
  void raw(std::string_view text);
  void integer(bool negative, uint64_t bits);
  void string(std::string_view text);

  Sink& sink_;
  std::vector<Scope> scopes_;
  bool after_key_ = false;
};

}  // namespace malloscope::output
