// SPDX-License-Identifier: Apache-2.0
// An index's cells put together by image, site and the part of their strands that a view tells
// apart (TallyOptions::told_apart), and what these groups come to in a window. They are few, where
// rows would be as many as stacks.

#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "analyze/index_sums.h"
#include "analyze/strand.h"
#include "analyze/tally.h"
#include "analyze/view.h"

namespace malloscope::analyze {

struct SiteGroups {
  static constexpr uint32_t kNobody = IndexSums::kNobody;
  struct Strand {
    ImageId image;
    StrandId strand;
    auto operator<=>(const Strand&) const = default;
  };
  struct Group {
    uint32_t strand;  // Of `strands`.
    uint32_t site;    // Of the cells' sites.
    Counts amounts;
  };
  std::vector<Strand> strands;
  std::vector<Group> groups;
  std::vector<uint32_t> group_of_cell;  // kNobody: the query leaves the cell out.

  SiteGroups(const Index& index, const CellSites& sites, const TallyOptions& options);

  // Fills in the amounts that are wanted, of the sizes that are asked for. False: a block of the
  // index is damaged.
  bool sum(const IndexedWindow& from, const IndexSums::Wanted& wanted);
};

// Of sites that weigh as much, as a map from their numbers has it, the first by name is heaviest.
template <typename Weights>
size_t heaviest_site(const Weights& weights, const SiteIndex& index) {
  auto name = [&](size_t site) {
    const NamedFrame& frame = index.frame(site);
    return std::tie(frame.function, frame.file, frame.line, frame.module);
  };
  return std::ranges::max_element(weights,
                                  [&](const auto& a, const auto& b) {
                                    return a.second != b.second ? a.second < b.second
                                                                : name(b.first) < name(a.first);
                                  })
      ->first;
}

}  // namespace malloscope::analyze
