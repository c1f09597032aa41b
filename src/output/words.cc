// SPDX-License-Identifier: Apache-2.0
#include "output/words.h"

#include <fmt/format.h>
#include <string.h>

#include <array>

namespace malloscope::output {

std::string grouped(uint64_t number) {
  std::string digits = fmt::format("{}", number);
  for (size_t i = digits.size(); i > 3;) digits.insert(i -= 3, ",");
  return digits;
}

std::string bytes_text(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  static constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // 1023.95 would be printed as 1024.0.
  while (value >= 1023.95 && unit + 1 < kUnits.size()) value /= 1024, ++unit;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string duration_text(uint64_t ns) {
  double s = static_cast<double>(ns) / 1e9;
  if (ns < 1'000'000) return fmt::format("{} us", ns / 1000);
  if (ns < 999'500'000) return fmt::format("{:.3g} ms", s * 1e3);
  if (ns < 99'950'000'000) return fmt::format("{:.3g} s", s);
  uint64_t seconds = ns / 1'000'000'000, minutes = seconds / 60;
  if (minutes < 60) return fmt::format("{} min {:02} s", minutes, seconds % 60);
  return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
}

std::string percent_text(uint64_t part, uint64_t whole) {
  if (part == 0 || whole == 0) return "0 %";
  double percent = 100 * (static_cast<double>(part) / static_cast<double>(whole));
  if (percent < 0.1) return "< 0.1 %";
  if (percent < 9.95) return fmt::format("{:.1f} %", percent);
  // Nothing that falls short of the whole is called 100 %.
  if (part < whole && percent > 99) return "99 %";
  return fmt::format("{:.0f} %", percent);
}

std::string count_text(uint64_t number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", grouped(number), number == 1 ? one : many);
}

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
