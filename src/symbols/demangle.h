// SPDX-License-Identifier: Apache-2.0
// From the linker's names to the reader's.

#pragma once

#include <string>
#include <string_view>

namespace malloscope::symbols {

// The name to show for a symbol. A symbol version and the marks of compiler-made
// pieces are dropped (demangle.cc says which); a C++ name is demangled with its
// parameter types, a template's also with its return type, as c++filt does.
// Anything else stays as it is.
std::string display_name(std::string_view symbol);

// The symbol without its version and without the marks of compiler-made pieces.
std::string_view strip_suffixes(std::string_view symbol);

}  // namespace malloscope::symbols
