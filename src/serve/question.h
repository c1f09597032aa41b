// SPDX-License-Identifier: Apache-2.0
// From the words of an address to a question (docs/viewer_api.md, "The question").

#pragma once

#include <map>
#include <optional>
#include <string>

#include "analyze/explorer.h"
#include "base/error.h"

namespace malloscope::serve {

using Parameters = std::multimap<std::string, std::string>;

// The first value, or `otherwise`.
std::string word(const Parameters& parameters, const std::string& name,
                 const std::string& otherwise = "");
// A number; an error is a sentence.
Result<uint64_t> number(const Parameters& parameters, const std::string& name, uint64_t otherwise);

// `names`: how names are looked up and shown.
Result<analyze::QueryWords> query_words(const Parameters& parameters,
                                        const analyze::QueryWords& names);
Result<analyze::Explorer::Question> question_of(const Parameters& parameters,
                                                const analyze::QueryWords& names);
// What to compare with: the same question about another range; nothing if nobody asks.
Result<std::optional<analyze::Explorer::Question>> question_before(
    const Parameters& parameters, const analyze::QueryWords& names);

}  // namespace malloscope::serve
