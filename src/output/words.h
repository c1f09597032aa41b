// SPDX-License-Identifier: Apache-2.0
// Names and numbers as a terminal can bear them.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/numbers.h"
#include "trace/tables.h"

namespace malloscope::output {

using analyze::bytes_text;
using analyze::count_text;
using analyze::duration_text;
using analyze::grouped;
using analyze::percent_text;

// The text with everything that a terminal might obey (control characters, also the C1 ones,
// bidirectional overrides, bytes that are no UTF-8) as \n, \x1b, \u202e. Also escapes `also`.
std::string printable(std::string_view text, char also = 0);
// The text with every byte that is no UTF-8 as U+FFFD.
std::string valid_utf8(std::string_view text);
// printable() text cut to `width` columns, "..." in the place of what is left out: the end, the
// beginning, where paths differ less, or the middle, where names do.
std::string cut_end(std::string_view printable_text, size_t width);
std::string cut_beginning(std::string_view printable_text, size_t width);
// The words of `text` in lines of `width` columns.
std::vector<std::string> wrapped_lines(std::string text, size_t width);

std::string cut_middle(std::string_view printable_text, size_t width);
// Columns of printable() text on a terminal: two for wide characters (CJK, emoji), none for marks
// that stand on others.
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
