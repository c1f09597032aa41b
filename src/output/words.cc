// SPDX-License-Identifier: Apache-2.0
#include "output/words.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <array>

namespace malloscope::output {

int utf8_length(std::string_view text, char32_t* character) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.empty()) return 0;
  if (byte(0) < 0x80) return *character = byte(0), 1;
  int length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < static_cast<size_t>(length)) return 0;
  char32_t c = byte(0) & (0x7f >> length);
  for (int i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    c = c << 6 | (byte(i) & 0x3f);
  }
  static constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (c < kLeast[length] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return 0;
  *character = c;
  return length;
}

// Characters that change what follows them.
static bool disturbs(char32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || c == 0x200e || c == 0x200f ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

std::string printable(std::string_view text, char also) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    char32_t c = 0;
    int length = utf8_length(text, &c);
    if (length == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
      length = 1;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (disturbs(c) || (also && c == static_cast<unsigned char>(also))) {
      out += c < 0x100 ? fmt::format("\\x{:02x}", static_cast<uint32_t>(c))
                       : fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
      out += text.substr(0, static_cast<size_t>(length));
    }
    text.remove_prefix(static_cast<size_t>(length));
  }
  return out;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    char32_t c = 0;
    auto length = static_cast<size_t>(utf8_length(text, &c));
    out += length ? text.substr(0, length) : "\xef\xbf\xbd";
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

static bool starts_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

size_t columns(std::string_view text) {
  size_t n = 0;
  for (char c : text) n += starts_character(c);
  return n;
}

std::string cut_end(std::string_view text, size_t width) {
  if (columns(text) <= width) return std::string(text);
  size_t keep = width > 3 ? width - 3 : 0, end = 0;
  for (size_t n = 0; end < text.size(); ++end)
    if (starts_character(text[end]) && n++ == keep) break;
  return std::string(text.substr(0, end)) + std::string(std::min<size_t>(width, 3), '.');
}

std::string cut_beginning(std::string_view text, size_t width) {
  if (columns(text) <= width) return std::string(text);
  size_t keep = width > 3 ? width - 3 : 0, begin = text.size();
  for (size_t n = 0; n < keep && begin > 0;) n += starts_character(text[--begin]);
  return std::string(std::min<size_t>(width, 3), '.') + std::string(text.substr(begin));
}

std::string cut_middle(std::string_view text, size_t width) {
  if (columns(text) <= width) return std::string(text);
  size_t end = width > 3 ? (width - 3) / 2 : 0;
  return cut_end(text, width - end) +
         cut_beginning(text, end + 3).substr(std::string_view("...").size());
}

std::vector<std::string> wrapped_lines(std::string rest, size_t width) {
  std::vector<std::string> lines;
  while (!rest.empty()) {
    size_t end = rest.size();
    if (columns(rest) > width) {
      end = rest.find_last_of(' ', width);
      if (end == std::string::npos || end == 0) {  // One long word, a path perhaps.
        end = width;
        while (end > 1 && (rest[end] & 0xc0) == 0x80) --end;
        rest.insert(end, " ");
      }
    }
    lines.push_back(rest.substr(0, end));
    rest.erase(0, std::min(end + 1, rest.size()));
  }
  return lines;
}

std::string shell_quoted(std::string_view word) {
  static constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%^";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos)
    return std::string(word);
  std::string shown = printable(word);
  if (shown != word) {  // Escapes as in C, which $'...' undoes.
    std::string quoted = "$'";
    for (size_t i = 0; i < word.size(); ++i) {
      if (word[i] == '\\' || word[i] == '\'') quoted += '\\';
      quoted += word[i];
    }
    return printable(quoted) + "'";
  }
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string command_text(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) text += (text.empty() ? "" : " ") + shell_quoted(word);
  return text;
}

std::string base_name(std::string_view path) {
  size_t slash = path.find_last_of('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::string exit_text(const trace::Image& image) {
  if (image.ended_by_exec) return "became another program (exec)";
  if (image.exit && image.exit->code) return fmt::format("exit code {}", *image.exit->code);
  if (image.exit && image.exit->signal) {
    int signal = *image.exit->signal;
    const char* name = sigabbrev_np(signal);
    return name ? fmt::format("killed by SIG{} (signal {})", name, signal)
                : fmt::format("killed by signal {}", signal);
  }
  return image.end_tick ? "ended, exit code not known" : "end not seen";
}

}  // namespace malloscope::output
