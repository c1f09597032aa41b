// SPDX-License-Identifier: Apache-2.0
// Numbers and names as people read them, and as a terminal can bear them.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/tables.h"

namespace malloscope::output {

// 1234567 -> "1,234,567".
std::string grouped(uint64_t number);
// 1536 -> "1.5 KiB"; up to 1023 exact: "12 B".
std::string bytes_text(uint64_t bytes);
// "850 us", "12.3 ms", "4.56 s", "3 min 20 s", "2 h 05 min".
std::string duration_text(uint64_t ns);
// "96 %", "0.4 %", "< 0.1 %"; "0 %" only for none at all.
std::string percent_text(uint64_t part, uint64_t whole);
// "1 block", "2,345 blocks".
std::string count_text(uint64_t number, std::string_view one, std::string_view many);

// The text with everything that a terminal might obey (control characters, also the C1 ones,
// bidirectional overrides, bytes that are no UTF-8) as \n, \x1b, \u202e. Also escapes `also`.
std::string printable(std::string_view text, char also = 0);
// printable() text cut to `width` columns, "..." in the place of what is left out: the end, or
// the beginning, where paths differ less.
std::string cut_end(std::string_view printable_text, size_t width);
std::string cut_beginning(std::string_view printable_text, size_t width);
// Columns of printable() text: its characters. Wide ones are taken for one.
size_t columns(std::string_view printable_text);

// As the shell reads it back.
std::string shell_quoted(std::string_view word);
std::string command_text(const std::vector<std::string>& command);

std::string base_name(std::string_view path);
// "exit code 3", "killed by SIGKILL (signal 9)", "end not seen".
std::string exit_text(const trace::Image& image);

// Decodes one UTF-8 character at the front of `text`: its length, or 0 if it is not valid.
int utf8_length(std::string_view text, char32_t* character);

}  // namespace malloscope::output
