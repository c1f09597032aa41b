// SPDX-License-Identifier: Apache-2.0
// Rows that belong together: by the code to blame, its file or module, by thread, phase, size or
// type. Every row that a query lets through belongs to exactly one group, so the groups add up to
// the whole.

#pragma once

#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "analyze/answer.h"
#include "analyze/query.h"
#include "analyze/reading.h"
#include "analyze/row_selector.h"
#include "analyze/row_types.h"

namespace malloscope::analyze {

enum class By { kFunction, kSite, kFile, kModule, kThread, kPhase, kSize, kType };

// A stack of which there are several rows, by thread or size, is one of its group.
class DistinctStacks {
 public:
  explicit DistinctStacks(const TallyOptions& options)
      : several_(options.by_thread || options.by_phase || options.by_size) {}
  bool is_new(size_t group, const Row& row) {
    return !several_ || met_.emplace(group, raw(row.image), raw(row.stack)).second;
  }

 private:
  bool several_;
  std::set<std::tuple<size_t, uint32_t, uint32_t>> met_;
};

class RowGroups {
 public:
  // Not by function: a row belongs to many.
  RowGroups(Reading* reading, const Query& query, By by)
      : reading_(*reading), query_(query), by_(by), selector_(reading, query), types_(reading) {}

  // Its number; nothing if the filters leave the row out.
  std::optional<size_t> of(const Row& row);
  size_t size() const { return groups_.size(); }

  struct Group {
    std::string name;  // Unless it is a site.
    NamedFrame site;
    uint64_t order = 0;    // Of groups that have one, such as sizes.
    bool unknown = false;  // What rows belong to that tell nothing.
  };
  // Once all rows were shown, with names that tell them apart.
  std::vector<Group> take();

 private:
  size_t group_of(const Row& row, std::optional<FrameId> site);
  Group made(const Row& row, const Frame& site, std::string* key);

  Reading& reading_;
  const Query& query_;
  By by_;
  RowSelector selector_;
  RowTypes types_;
  std::vector<Group> groups_;
  std::unordered_map<std::string, size_t> places_;
  std::vector<size_t> of_frame_;  // Where a frame tells it: by FrameId, the number + 1.
  size_t of_hidden_ = 0;          // Likewise, where there is none.
};

}  // namespace malloscope::analyze
