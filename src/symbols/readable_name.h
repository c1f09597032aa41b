// SPDX-License-Identifier: Apache-2.0
// Demangled names as people write them: "std::vector<int>::push_back", not 300 characters
// of allocators. What is dropped comes back where two functions would look the same.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace malloscope::symbols {

// What fits a line of a table beside its numbers.
inline constexpr size_t kNameRoom = 60;

// The name with its signature, without what nobody wrote: default template arguments,
// std::allocator, inline namespaces, ABI tags, the signatures of lambdas. std::string is
// std::string.
std::string simplified(std::string_view function);

// The function's own simplified name: no return type, no parameters. If it is longer than `room`,
// first arguments of template arguments become "<...>", then all template arguments do.
// It is never cut.
std::string short_name(std::string_view function, size_t room = kNameRoom);

// The shown names of different functions of one report, beside `functions`. No two are equal:
// those that would be get back template arguments, parameters, the return type, in this order, and
// at last the whole name. A function that is in the list twice counts once.
std::vector<std::string> short_names(const std::vector<std::string_view>& functions,
                                     size_t room = kNameRoom);

// A shown name made to fit: template arguments go first, then outer scopes: "...Compiler::run". The
// function's last name stays whole, even if it is longer than `room`.
std::string fitted_name(std::string_view name, size_t room);

}  // namespace malloscope::symbols
