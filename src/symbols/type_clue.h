// SPDX-License-Identifier: Apache-2.0
// What type of object was allocated, where the names of the functions on the way tell it.

#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace malloscope::symbols {

// `functions` are those between malloc and the code that wanted memory, innermost first, as
// std::allocator<T>::allocate, std::vector<T>::reserve and std::make_unique<T>: "T", "T[]", "T
// (list node)". Empty if they do not tell: C functions and plain new-expressions never do.
std::string allocated_type(const std::vector<std::string_view>& functions);

}  // namespace malloscope::symbols
