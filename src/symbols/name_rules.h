// SPDX-License-Identifier: Apache-2.0
// What the names of functions tell: which are plumbing, and how to say them shortly.

#pragma once

#include <string>
#include <string_view>

namespace malloscope::symbols {

// The function's own qualified name, without return type, parameters and what
// follows them: of "std::map<int, A> ns::B<int>::make<char>(A const&) const" it is
// "ns::B<int>::make<char>".
std::string_view qualified_name(std::string_view function);

// Whether a frame belongs to the allocator or to the machinery between it and the
// code that wanted memory: the recorder, malloc and operator new, allocator
// libraries, the C library and the dynamic linker, the C++ standard library. The
// site of an allocation is the innermost frame that does not.
bool is_plumbing(std::string_view function, std::string_view module_path);

// A form for one-line tables. While it is longer than `most` characters, first the
// return type and the parameters go, then the arguments of templates, enclosing
// functions and lambdas: "std::vector<...>::push_back". It is never cut.
std::string short_name(std::string_view function, size_t most = 60);

}  // namespace malloscope::symbols
