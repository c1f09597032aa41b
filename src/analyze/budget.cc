// SPDX-License-Identifier: Apache-2.0
#include "analyze/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <sstream>

#include "analyze/leaks.h"
#include "analyze/numbers.h"
#include "analyze/text_file.h"

namespace malloscope::analyze {
namespace {

using Kind = Column::Kind;
using What = Limit::What;

struct LimitKind {
  std::string_view name;
  What what;
  Kind kind;
  Metric metric;
  const char* noun;  // "3 MiB <noun>"; of one: `one`.
  const char* one;
};
constexpr LimitKind kLimits[] = {
    {"max-peak", What::kPeak, Kind::kBytes, Metric::kPeak, "at the peak", ""},
    {"max-live", What::kLive, Kind::kBytes, Metric::kLive, "live at the end", ""},
    {"max-allocations", What::kAllocations, Kind::kCount, Metric::kAllocations, "allocations",
     "allocation"},
    {"max-allocated", What::kAllocated, Kind::kBytes, Metric::kAllocated, "allocated", ""},
    {"max-temporary", What::kTemporary, Kind::kCount, Metric::kTemporary, "temporary allocations",
     "temporary allocation"},
    {"no-leaks-within", What::kLeaksWithin, Kind::kCount, Metric::kLive, "", ""},
};

const LimitKind& kind_of(What what) {
  return *std::find_if(std::begin(kLimits), std::end(kLimits),
                       [&](const LimitKind& kind) { return kind.what == what; });
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\f\v";
  size_t first = text.find_first_not_of(kSpace);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

NamedFrame named(const Frame& frame) {
  return {frame.function, frame.file, frame.line, frame.module, "", frame.column};
}

constexpr size_t kResponsible = 3;

// The heaviest sites of the leaks that were found, by `amount`. Stacks of one site are one here.
std::vector<Verdict::Responsible> heaviest_of(const Leaks& leaks, uint64_t Leak::* amount,
                                              const FrameTable& frames) {
  std::map<std::tuple<std::string, std::string, int, std::string>, Verdict::Responsible> sites;
  for (const Leak& leak : leaks.found) {
    NamedFrame site = leak.stack.empty() ? NamedFrame{"[hidden]", "", 0, ""}
                                         : named(frames.frame(leak.stack.front()));
    auto& place = sites[{site.function, site.file, site.line, site.module}];
    place.site = site;
    place.amount += leak.*amount;
  }
  std::vector<Verdict::Responsible> list;
  for (auto& [name, site] : sites) list.push_back(std::move(site));
  std::stable_sort(list.begin(), list.end(),
                   [](const auto& a, const auto& b) { return a.amount > b.amount; });
  if (list.size() > kResponsible) list.resize(kResponsible);
  return list;
}

void judge_leaks(Reading* reading, const Query& query, const Suppressions& suppressions,
                 Verdict* verdict) {
  Leaks leaks = find_leaks(reading, query, verdict->limit.within, suppressions);
  verdict->value = leaks.total.blocks;
  const std::string& within = verdict->limit.within[0].text();
  verdict->unproven = leaks.proves_nothing();
  verdict->sentence =
      leaks.proves_nothing() ? no_proof_text(leaks, verdict->limit.within)
      : leaks.total.blocks == 0
          ? fmt::format("no leaks within `{}`", within)
          : fmt::format("{}, {} unique, {}, within `{}`",
                        count_text(leaks.total.blocks, "leak", "leaks"),
                        grouped(leaks.total.unique), bytes_text(leaks.total.bytes), within);
  if (leaks.undecided.unique > 0)
    verdict->sentence += fmt::format(" ({} could not be judged)",
                                     count_text(leaks.undecided.unique, "cut stack", "cut stacks"));
  verdict->sites = heaviest_of(leaks, &Leak::blocks, reading->frames());
}

uint64_t total_of(const Reading& reading, What what) {
  Totals totals = reading.accounts().totals();
  switch (what) {
    case What::kPeak:
      return reading.accounts().peak().bytes;
    case What::kLive:
      return totals.live_bytes;
    case What::kAllocations:
      return totals.allocations;
    case What::kAllocated:
      return totals.allocated_bytes;
    case What::kTemporary:
      return totals.temporary;
    case What::kLeaksWithin:
      break;
  }
  return 0;
}

}  // namespace

std::vector<std::string_view> limit_names() {
  std::vector<std::string_view> names;
  for (const LimitKind& kind : kLimits) names.push_back(kind.name);
  return names;
}

Result<Limit> limit_of(std::string_view name, const std::string& value, std::string_view said) {
  const LimitKind* kind = std::find_if(std::begin(kLimits), std::end(kLimits),
                                       [&](const LimitKind& k) { return k.name == name; });
  if (kind == std::end(kLimits))
    return fail(fmt::format("{} is no limit; there are {}", said, fmt::join(limit_names(), ", ")));
  Limit limit;
  limit.what = kind->what;
  limit.text = fmt::format("{} {}", name, value);
  if (kind->what == What::kLeaksWithin) {
    Result<Pattern> pattern = Pattern::make(value, said);
    if (!pattern) return std::unexpected(pattern.error());
    limit.within.push_back(std::move(*pattern));
    return limit;
  }
  Result<uint64_t> most =
      kind->kind == Kind::kBytes ? bytes_of(value, said) : number_of(value, said);
  if (!most) return std::unexpected(most.error());
  limit.most = *most;
  return limit;
}

Result<std::vector<Limit>> limits_of_file(const std::string& path) {
  Result<std::string> whole = read_text_file(path);
  if (!whole)
    return fail(fmt::format("--budget {} cannot be read: {}", path, whole.error().sentence));
  std::istringstream file(*whole);
  std::vector<Limit> limits;
  size_t number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    std::string_view line = trimmed(text);
    if (line.empty() || line.starts_with('#')) continue;
    size_t space = line.find_first_of(" \t");
    std::string_view name = line.substr(0, space);
    // A pattern may have anything in it.
    if (name != kind_of(What::kLeaksWithin).name) line = trimmed(line.substr(0, line.find(" #")));
    std::string said = fmt::format("{}:{}: {}", path, number, name.substr(0, 200));
    if (space == line.npos)
      return fail(fmt::format("{} needs a value behind it, such as: max-peak 512M", said));
    Result<Limit> limit = limit_of(name, std::string(trimmed(line.substr(space))), said);
    if (!limit) return std::unexpected(limit.error());
    limits.push_back(std::move(*limit));
  }
  if (limits.empty()) return fail(fmt::format("--budget {} has no limits in it", path));
  return limits;
}

std::string amount_text(const Limit& limit, uint64_t amount) {
  if (limit.what == What::kLeaksWithin) return count_text(amount, "block", "blocks");
  return kind_of(limit.what).kind == Kind::kBytes ? bytes_text(amount) : grouped(amount);
}

// What is missing may exceed any limit.
static void judge_incomplete(std::vector<Verdict>* verdicts) {
  for (Verdict& verdict : *verdicts) {
    if (verdict.exceeded() || verdict.unproven) continue;
    verdict.unproven = true;
    verdict.sentence += "; but the recording is incomplete";
  }
}

// An estimate can be held against a limit; that nothing was found of what was not looked at proves
// nothing.
static void judge_sampled(std::vector<Verdict>* verdicts) {
  for (Verdict& verdict : *verdicts) {
    if (verdict.value > 0 || verdict.exceeded() || verdict.unproven) continue;
    verdict.unproven = true;
    verdict.sentence += "; but the recording is a sample";
  }
}

std::vector<Verdict> judge(Reading* reading, const Query& query, const std::vector<Limit>& limits,
                           const Suppressions& suppressions) {
  std::vector<Verdict> verdicts;
  for (const Limit& limit : limits) {
    Verdict& verdict = verdicts.emplace_back();
    verdict.limit = limit;
    if (limit.what == What::kLeaksWithin) {
      judge_leaks(reading, query, suppressions, &verdict);
      continue;
    }
    const LimitKind& kind = kind_of(limit.what);
    verdict.value = total_of(*reading, limit.what);
    // Pools that are kept on purpose are no reason to fail: every C++ program has one.
    std::string left_out;
    if (limit.what == What::kLive) {
      Leaks leaks = find_leaks(reading, query, {}, suppressions);
      verdict.value -= std::min(verdict.value, leaks.ignored.bytes);
      if (leaks.ignored.bytes > 0)
        left_out = fmt::format("; {} suppressed", bytes_text(leaks.ignored.bytes));
      verdict.sites = heaviest_of(leaks, &Leak::bytes, reading->frames());
    }
    // What looks equal when rounded is told to the byte.
    bool rounded = kind.kind == Kind::kBytes &&
                   bytes_text(verdict.value) == bytes_text(limit.most) &&
                   verdict.value != limit.most;
    auto text = [&](uint64_t amount) {
      return rounded ? grouped(amount) + " B" : amount_text(limit, amount);
    };
    std::string found = kind.kind == Kind::kBytes
                            ? fmt::format("{} {}", text(verdict.value), kind.noun)
                            : count_text(verdict.value, kind.one, kind.noun);
    if (!verdict.exceeded()) {
      verdict.sentence = fmt::format("{}, within {}{}", found, text(limit.most), left_out);
      verdict.sites.clear();
      continue;
    }
    verdict.sentence = fmt::format("{}, {} more than {}{}", found, text(verdict.value - limit.most),
                                   text(limit.most), left_out);
    if (limit.what == What::kLive) continue;
    for (const Site* site :
         heaviest(reading->sites(), reading->frames(), kind.metric, kResponsible))
      verdict.sites.push_back(
          {named(reading->frames().frame(site->frame)), value(site->amounts, kind.metric)});
  }
  if (!reading->tables().complete) judge_incomplete(&verdicts);
  if (reading->tables().header.is_sampled()) judge_sampled(&verdicts);
  return verdicts;
}

Answer budget_answer(const std::vector<Verdict>& verdicts, bool for_programs) {
  uint64_t exceeded = 0, unproven = 0;
  for (const Verdict& verdict : verdicts)
    exceeded += verdict.exceeded(), unproven += verdict.unproven;
  std::string all = count_text(verdicts.size(), "limit", "limits");
  Answer answer;
  answer.headline = exceeded > 0   ? fmt::format("{} of {} exceeded", exceeded, all)
                    : unproven > 0 ? fmt::format("{} of {} could not be proven", unproven, all)
                                   : fmt::format("{} kept", all);
  answer.facts = {{"totals.limits", uint64_t{verdicts.size()}},
                  {"totals.exceeded", exceeded},
                  {"totals.unproven", unproven}};

  Table limits;
  limits.key = "limits";
  limits.list = false;
  limits.columns = {{"verdict", "", Kind::kText},         {"limit", "limit", Kind::kText},
                    {"allowed", "", Kind::kCount, false}, {"value", "", Kind::kCount, false},
                    {"over", "", Kind::kCount, false},    {"says", "found", Kind::kFrame}};
  Table sites;
  sites.key = "responsible";
  sites.list = false;
  sites.columns = {{"limit", "", Kind::kText, false},
                   {"amount", "", Kind::kCount, false},
                   {"text", "", Kind::kText},
                   {"share", "", Kind::kShare},
                   {"frame", "", Kind::kFrame}};
  std::vector<Table> each;
  for (const Verdict& verdict : verdicts) {
    TableRow row;
    row.cells = {std::string(verdict.exceeded() ? "EXCEEDED"
                             : verdict.unproven ? "UNPROVEN"
                                                : "ok"),
                 verdict.limit.text,
                 verdict.limit.most,
                 verdict.value,
                 verdict.exceeded() ? verdict.value - verdict.limit.most : uint64_t{0},
                 verdict.sentence};
    limits.rows.push_back(std::move(row));
    if (!for_programs) sites.rows.clear();
    for (const Verdict::Responsible& site : verdict.sites) {
      TableRow line;
      line.cells = {verdict.limit.text, site.amount, amount_text(verdict.limit, site.amount),
                    Share{site.amount, verdict.value}, site.site};
      sites.rows.push_back(std::move(line));
    }
    sites.title = verdict.limit.text + ", most of it by";
    if (!for_programs && !sites.rows.empty()) each.push_back(sites);
  }
  if (for_programs) each.push_back(std::move(sites));
  answer.tables.push_back(std::move(limits));
  answer.tables.insert(answer.tables.end(), each.begin(), each.end());
  return answer;
}

}  // namespace malloscope::analyze
