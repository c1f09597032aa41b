// SPDX-License-Identifier: Apache-2.0
// What the names of functions tell: whose they are, and which are plumbing.

#pragma once

#include <string_view>

#include "symbols/readable_name.h"  // How to say them shortly.

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

}  // namespace malloscope::symbols
