// SPDX-License-Identifier: Apache-2.0
// The text that a function of a program returns if it is a constant, read out of the
// file without running anything: how __lsan_default_suppressions() is asked.

#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "symbols/symbolizer.h"

namespace malloscope::symbols {

// Nothing if the file is not there, has been rebuilt or does not name such a function; an error
// (a sentence) if it has the function, but what it returns cannot be told by looking.
Result<std::optional<std::string>> returned_string(const ModuleFile& module,
                                                   const std::string& function);

}  // namespace malloscope::symbols
