// SPDX-License-Identifier: Apache-2.0
// Every row belongs to exactly one group, so the groups add up to the whole.

#include <fmt/format.h>

#include <optional>
#include <unordered_map>

#include "analyze/numbers.h"
#include "analyze/profile_views.h"
#include "analyze/view.h"
#include "symbols/readable_name.h"
#include "symbols/type_clue.h"

namespace malloscope::analyze {
namespace {

using Kind = Column::Kind;

struct Group {
  std::string name;  // Unless it is a site.
  NamedFrame site;
  uint64_t order = 0;  // Of groups that have one, such as sizes.
  Amounts amounts;
  uint64_t stacks = 0;
};

const char* group_title(By by) {
  switch (by) {
    case By::kSite:
      return "site";
    case By::kFile:
      return "file";
    case By::kModule:
      return "module";
    case By::kThread:
      return "thread";
    case By::kSize:
      return "size";
    case By::kType:
      return "type";
    case By::kFunction:
      break;
  }
  return "function";
}

// What rows allocate, as far as the functions between malloc and their sites tell.
class Types {
 public:
  explicit Types(Reading* reading) : reading_(*reading) {}

  const std::string& of(const Row& row) {
    FrameTable& table = reading_.frames();
    table.stack(row.image, row.stack, &frames_);
    size_t count = 0;
    while (count < frames_.size() && table.frame(frames_[count]).plumbing) ++count;
    // A class's own operator new is nobody's plumbing.
    if (count < frames_.size()) ++count;
    std::string key;
    for (size_t i = 0; i < count; ++i)
      key += std::to_string(static_cast<uint32_t>(frames_[i])) + ' ';
    auto [known, fresh] = known_.try_emplace(std::move(key));
    if (fresh) {
      std::vector<std::string_view> functions;
      for (size_t i = 0; i < count; ++i) functions.push_back(table.frame(frames_[i]).function);
      known->second = symbols::allocated_type(functions);
    }
    return known->second;
  }

 private:
  Reading& reading_;
  std::vector<FrameId> frames_;
  std::unordered_map<std::string, std::string> known_;
};

}  // namespace

Answer by_group(Reading* reading, const Query& query, const ProfileOptions& options) {
  RowSelector selector(reading, query);
  std::vector<Group> groups;
  std::unordered_map<std::string, size_t> places;
  std::optional<FrameId> innermost;
  Amounts total, unknown_type;
  Types types(reading);
  reading->for_each_row([&](const Row& row) {
    if (!selector.select(row, &innermost)) return;
    static const Frame kHidden = {"[hidden]", "", 0, "", false};
    const Frame& site = innermost ? reading->frames().frame(*innermost) : kHidden;
    Group fresh;
    std::string key;
    switch (options.by) {
      case By::kFile:
        key = fresh.name = site.file.empty() ? "(unknown file)" : site.file;
        break;
      case By::kModule:
        key = fresh.name = site.module.empty() ? "(unknown module)" : site.module;
        break;
      case By::kThread:
        fresh.name = thread_name(reading->tables().image(row.image), row.thread);
        key = fmt::format("{}/{}", raw(row.image), raw(row.thread));
        break;
      case By::kSize:
        key = fresh.name = size_range(row.size_class);
        fresh.order = row.size_class;
        break;
      case By::kType:
        fresh.name = types.of(row);
        if (fresh.name.empty()) {
          fresh.name = "(unknown)";
          unknown_type += row.amounts;
        }
        key = fresh.name;
        break;
      default:
        fresh.site = {site.function, site.file, site.line, site.module, "", site.column};
        rename(query.rules, &fresh.site.function);
        fresh.site.full = fresh.site.function;
        key = fresh.site.function + '\0' + site.file + '\0' + std::to_string(site.line) + '\0' +
              site.module;
    }
    auto [place, unknown] = places.try_emplace(std::move(key), groups.size());
    if (unknown) groups.push_back(std::move(fresh));
    Group& group = groups[place->second];
    group.amounts += row.amounts;
    group.stacks += value(row.amounts, options.metric) > 0;
    total += row.amounts;
  });

  if (options.by == By::kSite && !query.full_names) {
    std::vector<std::string_view> functions;
    for (const Group& group : groups) functions.push_back(group.site.function);
    std::vector<std::string> names = symbols::short_names(functions);
    for (size_t i = 0; i < groups.size(); ++i) groups[i].site.function = std::move(names[i]);
  }

  Answer answer;
  answer.headline = headline(*reading, total, options.metric);
  Table table;
  bool is_site = options.by == By::kSite;
  table.key = fmt::format("{}s", group_title(options.by));
  table.columns = profile_columns(options.metric);
  table.columns.push_back({"stacks", "stacks", Kind::kCount});
  table.columns.push_back({is_site ? "frame" : group_title(options.by), group_title(options.by),
                           is_site ? Kind::kFrame : Kind::kText});
  uint64_t whole = value(total, options.metric);
  auto order = heaviest_first(
      groups.size(), [&](size_t i) { return value(groups[i].amounts, options.metric); },
      [&](size_t i) -> const std::string& {
        return is_site ? groups[i].site.function : groups[i].name;
      });
  if (options.by == By::kSize) {  // A histogram reads better from small to large.
    if (options.top > 0 && order.size() > options.top) {
      table.left_out = order.size() - options.top;
      order.resize(options.top);
    }
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return groups[a].order < groups[b].order; });
  }
  for (size_t i : order) {
    Group& group = groups[i];
    TableRow row;
    add_profile(group.amounts, whole, options.metric, &row.cells);
    row.cells.emplace_back(group.stacks);
    if (is_site)
      row.cells.emplace_back(std::move(group.site));
    else
      row.cells.emplace_back(std::move(group.name));
    table.rows.push_back(std::move(row));
  }
  answer.tables.push_back(std::move(table));
  if (uint64_t unknown = value(unknown_type, options.metric); unknown > 0)
    answer.notes.push_back(fmt::format(
        "Of {} the type is not known: neither malloc nor a plain new-expression tells it.",
        percent_text(unknown, whole)));
  return answer;
}

}  // namespace malloscope::analyze
