// SPDX-License-Identifier: Apache-2.0
#include "analyze/site_groups.h"

#include <map>
#include <optional>

#include "analyze/cell_rows.h"

namespace malloscope::analyze {

SiteGroups::SiteGroups(const Index& index, const CellSites& sites, const TallyOptions& options) {
  const std::vector<IndexCell>& cells = index.cells();
  group_of_cell.assign(cells.size(), kNobody);
  std::map<Strand, uint32_t> numbers;
  std::vector<std::vector<uint32_t>> group_at;  // By strand and site.
  Strand last = {};
  uint32_t number = 0;
  for (size_t i = 0; i < cells.size(); ++i) {
    uint32_t site = sites.of(i);
    if (site == CellSites::kNobody) continue;
    Strand strand = {cells[i].image, options.told_apart(cells[i].strand)};
    if (strands.empty() || strand != last) {
      last = strand;
      number = numbers.try_emplace(strand, static_cast<uint32_t>(strands.size())).first->second;
      if (number == strands.size()) {
        strands.push_back(strand);
        group_at.emplace_back();
      }
    }
    std::vector<uint32_t>& at = group_at[number];
    if (site >= at.size()) at.resize(site + size_t{1}, kNobody);
    if (at[site] == kNobody) {
      at[site] = static_cast<uint32_t>(groups.size());
      groups.push_back({number, site, {}});
    }
    group_of_cell[i] = at[site];
  }
}

bool SiteGroups::sum(const IndexedWindow& from, const IndexSums::Wanted& wanted) {
  std::vector<uint32_t> usual = group_of_cell;
  const TallyOptions& asked = from.query.tally;
  std::optional<IndexSums::CutSizes> cut =
      cut_classes(from.index, asked.min_size, asked.max_size, &usual);
  IndexSums::Amounts sums;
  if (!from.sums.sum(from.query.selection, from.window, from.steps, wanted,
                     {usual, groups.size(), cut ? &*cut : nullptr}, &sums))
    return false;
  for (size_t part = 0; part < IndexSums::kAmounts; ++part)
    for (size_t i = 0; i < sums[part].size(); ++i)
      groups[i].amounts.*IndexSums::part_of(part) = sums[part][i];
  return true;
}

}  // namespace malloscope::analyze
