// SPDX-License-Identifier: Apache-2.0
#include "analyze/row_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "analyze/view.h"
#include "symbols/readable_name.h"

namespace malloscope::analyze {

std::optional<size_t> RowGroups::of(const Row& row) {
  std::optional<FrameId> site;
  if (!selector_.select(row, &site)) return std::nullopt;
  if (by_ == By::kThread || by_ == By::kPhase || by_ == By::kSize || by_ == By::kType)
    return group_of(row, site);
  auto i = site ? static_cast<size_t>(*site) : 0;
  if (site && i >= of_frame_.size()) of_frame_.resize(std::max(i + 1, of_frame_.size() * 2), 0);
  size_t& known = site ? of_frame_[i] : of_hidden_;
  if (known == 0) known = group_of(row, site) + 1;
  return known - 1;
}

size_t RowGroups::group_of(const Row& row, std::optional<FrameId> site) {
  static const Frame kHidden = {"[hidden]", "", 0, "", false};
  std::string key;
  Group fresh = made(row, site ? reading_.frames().frame(*site) : kHidden, &key);
  auto [place, unknown] = places_.try_emplace(std::move(key), groups_.size());
  if (unknown) groups_.push_back(std::move(fresh));
  return place->second;
}

RowGroups::Group RowGroups::made(const Row& row, const Frame& site, std::string* key) {
  Group group;
  switch (by_) {
    case By::kFile:
      *key = group.name = site.file.empty() ? "(unknown file)" : site.file;
      break;
    case By::kModule:
      *key = group.name = site.module.empty() ? "(unknown module)" : site.module;
      break;
    case By::kThread:
      group.name = thread_name(reading_.tables().image(row.image), thread_of(row.strand));
      *key = fmt::format("{}/{}", raw(row.image), raw(thread_of(row.strand)));
      break;
    case By::kPhase: {
      std::optional<uint32_t> phase = innermost_phase(reading_.accounts().phases(), row.strand);
      bool none = !phase || *phase >= reading_.tables().mark_names.size();
      group.name = none ? kNoPhase : reading_.tables().mark_names[*phase];
      *key = none ? "" : "=" + group.name;
      break;
    }
    case By::kSize:
      *key = group.name = size_range(row.size_class);
      group.order = row.size_class;
      break;
    case By::kType:
      group.name = types_.of(row);
      group.unknown = group.name.empty();
      if (group.unknown) group.name = "(unknown)";
      *key = group.name;
      break;
    case By::kSite:
    case By::kFunction:
      group.site = {site.function, site.file, site.line, site.module, "", site.column};
      rename(query_.rules, &group.site.function);
      group.site.full = group.site.function;
      *key = group.site.function + '\0' + site.file + '\0' + std::to_string(site.line) + '\0' +
             site.module;
  }
  return group;
}

std::vector<RowGroups::Group> RowGroups::take() {
  if (by_ == By::kSite && !query_.full_names) {
    std::vector<std::string_view> functions;
    for (const Group& group : groups_) functions.push_back(group.site.full);
    std::vector<std::string> names = symbols::short_names(functions);
    for (size_t i = 0; i < groups_.size(); ++i) groups_[i].site.function = std::move(names[i]);
  }
  return std::exchange(groups_, {});
}

}  // namespace malloscope::analyze
