// SPDX-License-Identifier: Apache-2.0
// Steps through a demangled name: over brackets, operators and anonymous namespaces.
// Any bytes will do; none of it takes more than linear time, and nothing recurses
// deeper than a name of kMaxParsed characters can make it.

#pragma once

#include <cstddef>
#include <string_view>

namespace malloscope::symbols {

// Longer names are left as they are: nobody reads them, and somebody may have made them to hurt.
inline constexpr size_t kMaxParsed = 1 << 17;

bool is_word(char c);  // Of identifiers.

// Whether the word "operator" begins at `at`.
bool at_operator(std::string_view text, size_t at);

// The length of "(anonymous namespace)" or of our short form of it at `at`, or 0.
size_t anonymous_at(std::string_view text, size_t at);

// The position after the bracket that closes the one at `at`, or the end. Only brackets of the
// same kind are counted, since in expressions '<' may mean less.
size_t skip_pair(std::string_view text, size_t at);

// The position after the '>' that closes the '<' at `at`, or the end.
size_t skip_angles(std::string_view text, size_t at);

// `at` is behind the word "operator"; the result is behind the operator's symbol, which may hold
// any bracket, or `at` itself if what follows is a type: a conversion.
size_t skip_operator_symbol(std::string_view text, size_t at);
// The same, a conversion's type included.
size_t skip_operator_name(std::string_view text, size_t at);

// If what stands at `at`, behind a parameter list, makes it that of an enclosing function, as in
// "run() const::Local::go()", the position of the "::"; else npos.
size_t scope_behind(std::string_view text, size_t at);

}  // namespace malloscope::symbols
