// SPDX-License-Identifier: Apache-2.0
// Which strands a query is about: of which threads, in which phases.

#pragma once

#include <cstdint>
#include <vector>

#include "analyze/phases.h"
#include "analyze/query.h"
#include "trace/tables.h"

namespace malloscope::analyze {

// A thread is meant by a part of its name, or by its whole number.
bool is_meant(const trace::Thread& thread, const std::vector<Pattern>& patterns);

class StrandSelector {
 public:
  // `tables` and `phases` must outlive it.
  StrandSelector(const trace::Tables& tables, const PhasePaths& phases, const Query& query)
      : tables_(tables),
        phases_(phases),
        threads_meant_(query.threads),
        phases_meant_(query.phases) {}

  bool selects(ImageId image, StrandId strand) {
    return (threads_meant_.empty() || selects_thread(image, thread_of(strand))) &&
           (phases_meant_.empty() || selects_phases(phases_of(strand)));
  }

  bool selects_thread(ImageId image, ThreadId thread);
  bool selects_phases(PhasesId phases);

 private:
  enum class Known : uint8_t { kNot, kNo, kYes };

  const trace::Tables& tables_;
  const PhasePaths& phases_;
  std::vector<Pattern> threads_meant_, phases_meant_;
  std::vector<std::vector<Known>> threads_known_;  // By image and thread.
  std::vector<Known> phases_known_;                // By PhasesId.
};

}  // namespace malloscope::analyze
