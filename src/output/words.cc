// SPDX-License-Identifier: Apache-2.0
#include "output/words.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <span>

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

namespace {

struct CharacterRange {
  char32_t first, last;
};

// Of Unicode 14, as far as names are likely to have them: marks that stand on the character before
// them, and joiners.
constexpr CharacterRange kWithoutColumn[] = {
    {0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x5bf, 0x5bf},     {0x5c1, 0x5c2},
    {0x5c4, 0x5c5},   {0x5c7, 0x5c7},   {0x610, 0x61a},   {0x64b, 0x65f},     {0x670, 0x670},
    {0x6d6, 0x6dc},   {0x6df, 0x6e4},   {0x6e7, 0x6e8},   {0x6ea, 0x6ed},     {0x93a, 0x93a},
    {0x93c, 0x93c},   {0x941, 0x948},   {0x94d, 0x94d},   {0x951, 0x957},     {0x962, 0x963},
    {0xe31, 0xe31},   {0xe34, 0xe3a},   {0xe47, 0xe4e},   {0x1160, 0x11ff},   {0x1ab0, 0x1aff},
    {0x1dc0, 0x1dff}, {0x200b, 0x200d}, {0x2060, 0x2064}, {0x20d0, 0x20ff},   {0x302a, 0x302d},
    {0x3099, 0x309a}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xe0100, 0xe01ef},
};

// East Asian width W or F. The blocks of emoji are taken as a whole, though some of them are
// narrow: a column too many is seen less than one too few.
constexpr CharacterRange kTwoColumns[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},
    {0x23f0, 0x23f0},   {0x23f3, 0x23f3},   {0x25fd, 0x25fe},   {0x2614, 0x2615},
    {0x2648, 0x2653},   {0x267f, 0x267f},   {0x2693, 0x2693},   {0x26a1, 0x26a1},
    {0x26aa, 0x26ab},   {0x26bd, 0x26be},   {0x26c4, 0x26c5},   {0x26ce, 0x26ce},
    {0x26d4, 0x26d4},   {0x26ea, 0x26ea},   {0x26f2, 0x26f3},   {0x26f5, 0x26f5},
    {0x26fa, 0x26fa},   {0x26fd, 0x26fd},   {0x2705, 0x2705},   {0x270a, 0x270b},
    {0x2728, 0x2728},   {0x274c, 0x274c},   {0x274e, 0x274e},   {0x2753, 0x2755},
    {0x2757, 0x2757},   {0x2795, 0x2797},   {0x27b0, 0x27b0},   {0x27bf, 0x27bf},
    {0x2b1b, 0x2b1c},   {0x2b50, 0x2b50},   {0x2b55, 0x2b55},   {0x2e80, 0x303e},
    {0x3041, 0x3247},   {0x3250, 0x4dbf},   {0x4e00, 0xa4c6},   {0xa960, 0xa97c},
    {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe10, 0xfe19},   {0xfe30, 0xfe6b},
    {0xff01, 0xff60},   {0xffe0, 0xffe6},   {0x16fe0, 0x1b2ff}, {0x1f004, 0x1f004},
    {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a}, {0x1f200, 0x1f64f},
    {0x1f680, 0x1f6ff}, {0x1f7e0, 0x1f7ff}, {0x1f900, 0x1f9ff}, {0x1fa70, 0x1faff},
    {0x20000, 0x3fffd},
};

bool is_in(std::span<const CharacterRange> ranges, char32_t c) {
  auto range = std::ranges::lower_bound(ranges, c, {}, &CharacterRange::last);
  return range != ranges.end() && range->first <= c;
}

// The character at the front of a text; one byte of what is no UTF-8.
struct Character {
  size_t bytes, columns;
};
Character first_character(std::string_view text) {
  char32_t c = 0;
  int bytes = utf8_length(text, &c);
  if (bytes <= 1) return {1, 1};
  return {static_cast<size_t>(bytes), is_in(kWithoutColumn, c) ? 0u
                                      : is_in(kTwoColumns, c)  ? 2u
                                                               : 1u};
}

// The bytes of as many characters as there are columns for, with the marks on the last.
size_t bytes_within(std::string_view text, size_t width) {
  size_t bytes = 0;
  for (size_t used = 0; bytes < text.size();) {
    Character next = first_character(text.substr(bytes));
    if ((used += next.columns) > width) break;
    bytes += next.bytes;
  }
  return bytes;
}

}  // namespace

size_t columns(std::string_view text) {
  size_t n = 0;
  while (!text.empty()) {
    Character next = first_character(text);
    n += next.columns;
    text.remove_prefix(next.bytes);
  }
  return n;
}

std::string cut_end(std::string_view text, size_t width) {
  if (columns(text) <= width) return std::string(text);
  size_t end = bytes_within(text, width > 3 ? width - 3 : 0);
  return std::string(text.substr(0, end)) + std::string(std::min<size_t>(width, 3), '.');
}

std::string cut_beginning(std::string_view text, size_t width) {
  size_t all = columns(text), keep = width > 3 ? width - 3 : 0;
  if (all <= width) return std::string(text);
  // A mark does not go without its character.
  while (all > keep || (!text.empty() && first_character(text).columns == 0)) {
    Character gone = first_character(text);
    all -= gone.columns;
    text.remove_prefix(gone.bytes);
  }
  return std::string(std::min<size_t>(width, 3), '.') + std::string(text);
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
      size_t room = std::max(bytes_within(rest, width), first_character(rest).bytes);
      end = rest.find_last_of(' ', room);
      if (end == std::string::npos || end == 0) {  // One long word, a path perhaps.
        end = room;
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
