// SPDX-License-Identifier: Apache-2.0
// A trace read through once: its tables, the accounts of the selected images and
// the names of their frames. What every report begins with.

#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/accounts.h"
#include "analyze/frames.h"
#include "analyze/query.h"
#include "analyze/sites.h"
#include "base/error.h"
#include "trace/event_stream.h"
#include "trace/tables.h"

namespace malloscope::analyze {

// From times as a user names them to ticks. `peak`: of the whole recording, where a time needs it.
// `past_end` becomes a sentence if the window ends after the recording.
Result<Window> window_of(const Query& query, const trace::Overview& overview, Peak peak,
                         std::string* past_end = nullptr);

class Reading {
 public:
  struct Hooks {
    // Called now and then with the share of the file that has been read.
    std::function<void(double)> progress;
    // Adds the observers that a view needs (HeapObserver), before the first event.
    std::function<void(Heap*)> attach;
    // As progress, while names are looked up: that is done when they are first needed.
    std::function<void(double)> naming;
  };
  // With TallyOptions::cpu its rows are CPU time, and nothing is known of blocks: neither totals
  // nor a peak.
  static Result<std::unique_ptr<Reading>> open(const std::string& path, const Query& query,
                                               Hooks hooks = {});
  // For tests and for traces that did not come from a file.
  Reading(std::string path, trace::Tables tables, std::unique_ptr<Accounts> accounts,
          std::unique_ptr<Naming> naming, std::string past_end = "");

  const std::string& path() const { return path_; }
  const trace::Tables& tables() const { return tables_; }
  const Accounts& accounts() const { return *accounts_; }
  // Takes others of the same trace, and gives back those that it had.
  std::unique_ptr<Accounts> exchange(std::unique_ptr<Accounts> accounts) {
    return std::exchange(accounts_, std::move(accounts));
  }
  FrameTable& frames();
  // The tally's rows, with what takes the tables to know: how long a tick is, and whose rounding
  // an image's allocator has.
  template <typename Visit>
  void for_each_row(Visit&& visit) const {
    TimeSoFar sums;
    accounts_->tally().for_each_row([&](const Row& row) { visit(with_details(row, &sums)); });
  }
  const std::vector<Site>& sites();
  // Why the functions or lines of a module are not known, as a sentence, or empty.
  std::string remark(const std::string& module_path);
  // Sentences on modules that stacks go through and whose functions are only addresses: what is
  // asked by name is not found there. As far as frames were asked for.
  std::vector<std::string> missing_names() const;
  // That figures are estimates, and how good ones; empty unless the trace is a sample and the
  // figures are of blocks.
  std::string sample_sentence() const;
  // The paths of those whose own file is missing; what is stripped has names for nobody.
  std::set<std::string> lost_modules() const;
  std::vector<const trace::Image*> selected() const;
  // Ticks of the recording's end, or of the last thing known if it was cut short.
  uint64_t end_tick() const;
  // The window, as far as there is a recording; in nanoseconds since that began.
  struct Range {
    uint64_t from_ns, to_ns;
  };
  Range range() const;
  // A sentence, if what was asked for goes on after that end; else empty.
  const std::string& past_end() const { return past_end_; }

  // Of the rows before. A row's time is what it adds to theirs: in nanoseconds the rows so have the
  // same sum whatever they are rows of, where each rounded by itself would lose some of it.
  class TimeSoFar {
   public:
    // In nanoseconds.
    uint64_t add_lifetime(uint64_t ticks, const trace::Header& header);
    uint64_t add_calls(uint64_t cycles, const trace::Header& header);

   private:
    uint64_t lifetime_ticks_ = 0, call_cycles_ = 0;
  };

 private:
  Row with_details(Row row, TimeSoFar* sums) const;

  std::string path_;
  std::string past_end_;
  trace::Tables tables_;
  std::unique_ptr<Accounts> accounts_;
  std::unique_ptr<Naming> naming_;
  FrameTable frames_;
  bool prepared_ = false;
  std::vector<symbols::ModuleFile> modules_;  // That stacks go through, once they have names.
  std::optional<std::vector<Site>> sites_;
};

}  // namespace malloscope::analyze
