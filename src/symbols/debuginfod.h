// SPDX-License-Identifier: Apache-2.0
// Debug files from the servers named in DEBUGINFOD_URLS. Only for those who asked for it: a request
// tells a server which programs somebody looks at.

#pragma once

#include <string>

#include "base/error.h"

namespace malloscope::symbols {

// The path of a local copy, in libdebuginfod's own cache. The error is a sentence.
Result<std::string> fetch_debug_file(const std::string& build_id);

}  // namespace malloscope::symbols
