// SPDX-License-Identifier: Apache-2.0
// Limits that a recording must keep, for CI: from the command line or from a file,
// one a line, with the same names.
//
//     # what the nightly job may use
//     max-peak 512M
//     max-allocations 1e6
//     no-leaks-within Algorithm::sysExecute

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/answer.h"
#include "analyze/query.h"
#include "analyze/reading.h"
#include "analyze/sites.h"
#include "analyze/suppressions.h"
#include "base/error.h"

namespace malloscope::analyze {

struct Limit {
  enum class What { kPeak, kLive, kAllocations, kAllocated, kTemporary, kLeaksWithin };
  What what;
  uint64_t most = 0;
  std::vector<Pattern> within;  // One, for kLeaksWithin.
  std::string text;             // As it was written: "max-peak 512M".
};

// `name` as in a file ("max-peak"); `said` is for sentences: "--max-peak" or "budget.txt:3:
// max-peak".
Result<Limit> limit_of(std::string_view name, const std::string& value, std::string_view said);
Result<std::vector<Limit>> limits_of_file(const std::string& path);
std::vector<std::string_view> limit_names();

// What a limit met. `sites` are the heaviest three responsible, if it was exceeded.
struct Verdict {
  struct Responsible {
    NamedFrame site;
    uint64_t amount = 0;
  };
  Limit limit;
  uint64_t value = 0;
  std::vector<Responsible> sites;
  std::string sentence;  // "68.8 MiB at the peak, 36.8 MiB more than 32.0 MiB".
  // What the limit is about is not in the recording: a misspelt name would be kept for ever.
  bool unproven = false;

  bool exceeded() const { return value > limit.most; }
  bool kept() const { return !exceeded() && !unproven; }
};

// `query` is what the reading was made by; it must not have left anything out.
std::vector<Verdict> judge(Reading* reading, const Query& query, const std::vector<Limit>& limits,
                           const Suppressions& suppressions);

// "9.3 MiB" or "1,234 blocks", as this limit counts.
std::string amount_text(const Limit& limit, uint64_t amount);

// `for_programs`: those responsible as one table, not one for each limit.
Answer budget_answer(const std::vector<Verdict>& verdicts, bool for_programs);

}  // namespace malloscope::analyze
