// SPDX-License-Identifier: Apache-2.0
// The page as one file that needs no server: with the answers to what is asked first, and with
// the stacks and their course through time, as much as there is room for.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/answers.h"

namespace malloscope::serve {

struct ReportFile {
  std::string html;
  std::vector<std::string> left_out;  // Sentences, which are in the file too.
};

// At most `max_bytes`, unless what every file has is more than that: then an error.
Result<ReportFile> make_report_file(const Context& context, uint64_t max_bytes,
                                    const std::function<void(std::string_view, double)>& progress);

}  // namespace malloscope::serve
