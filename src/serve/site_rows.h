// SPDX-License-Identifier: Apache-2.0
// What a question's rows add up to, put together by site, function, file, ..., and, where two
// ranges or two recordings are compared, with what they were before.

#pragma once

#include <map>
#include <string>
#include <vector>

#include "analyze/row_groups.h"
#include "serve/answers.h"

namespace malloscope::serve {

// By the names that addresses have for them.
const std::map<std::string, analyze::By>& row_groups();

// The ids of what only the recording before has begin here.
inline constexpr uint32_t kFirstOfBase = uint32_t{1} << 31;

struct Listed {
  struct Row {
    uint32_t id = 0;
    analyze::NamedFrame name;
    analyze::Amounts amounts, before;
    uint64_t cumulative = 0;
    uint64_t stacks = 0;
  };
  std::vector<Row> rows;  // All, heaviest first.
  analyze::Amounts total;
  bool compared = false;
};

Result<Listed> list(const Context& context, const Parameters& parameters,
                    const analyze::Explorer::Question& question, analyze::By by,
                    Jobs::Running* job);

// Those that do not fit become one, so that sums hold. Returns how many those are.
size_t fold(size_t most, Listed* listed);

}  // namespace malloscope::serve
