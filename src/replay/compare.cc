// SPDX-License-Identifier: Apache-2.0
// Two setups differ if their runs do not overlap and their medians are more than 2 % apart; of a
// single run nobody knows how far chance goes, and 10 % is asked for.

#include "replay/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace malloscope::replay {
namespace {

constexpr double kNoise = 0.02;
constexpr double kNoiseOfOne = 0.10;
constexpr double kAlike = 0.05;  // Nearer than that, nobody minds.

bool differ(const Spread& a, const Spread& b, bool repeated) {
  double most = std::max(a.median, b.median);
  if (most <= 0) return false;
  double apart = std::abs(a.median - b.median) / most;
  return !a.overlaps(b) && apart > (repeated ? kNoise : kNoiseOfOne);
}

// "23 % less", "as much".
std::string change(const Spread& from, const Spread& to) {
  if (from.median <= 0) return "not comparable";
  double share = to.median / from.median - 1;
  if (share > 1) return fmt::format("{:.1f} times as much", 1 + share);
  return fmt::format("{:.0f} % {}", std::abs(share) * 100, share < 0 ? "less" : "more");
}

}  // namespace

std::string Contender::name() const {
  return setup.tunables.empty() ? setup.allocator : setup.allocator + " " + setup.tunables;
}

const Trial* Contender::typical() const {
  std::vector<const Trial*> good;
  for (const Trial& trial : trials)
    if (trial.error.empty()) good.push_back(&trial);
  if (good.empty()) return nullptr;
  std::ranges::sort(good, {}, &Trial::allocator_ns);
  return good[good.size() / 2];
}

const Trial* Contender::first_error() const {
  auto found = std::ranges::find_if(trials, [](const Trial& t) { return !t.error.empty(); });
  return found == trials.end() ? nullptr : &*found;
}

Spread spread(const Contender& contender, uint64_t Trial::* figure) {
  std::vector<double> values;
  for (const Trial& trial : contender.trials)
    if (trial.error.empty()) values.push_back(static_cast<double>(trial.*figure));
  if (values.empty()) return {};
  std::ranges::sort(values);
  return {values.front(), values[values.size() / 2], values.back()};
}
Spread allocator_time(const Contender& contender) {
  return spread(contender, &Trial::allocator_ns);
}
Spread heap_rss(const Contender& contender) {
  return spread(contender, &Trial::heap_max_rss_bytes);
}

Comparison compare(const std::vector<Contender>& contenders, std::string_view uses) {
  Comparison result;
  bool repeated = true;
  for (size_t i = 0; i < contenders.size(); ++i) {
    if (!contenders[i].typical()) continue;
    result.by_time.push_back(i);
    repeated = repeated && contenders[i].trials.size() > 1;
  }
  result.by_memory = result.by_time;
  auto by = [&](Spread (*figure)(const Contender&)) {
    return [&contenders, figure](size_t i) { return figure(contenders[i]).median; };
  };
  std::ranges::stable_sort(result.by_time, {}, by(allocator_time));
  std::ranges::stable_sort(result.by_memory, {}, by(heap_rss));
  if (result.by_time.size() < 2) return result;

  result.reference = std::ranges::min(result.by_time);
  for (size_t i : result.by_time)
    if (contenders[i].setup.allocator == uses && contenders[i].setup.tunables.empty())
      result.reference = i;
  const Contender& base = contenders[*result.reference];
  // Who refuses is quick about it, and needs little.
  auto refuses = [&contenders](size_t i) {
    return std::ranges::any_of(contenders[i].trials, [](const Trial& t) { return t.failed > 0; });
  };
  if (refuses(*result.reference)) {
    result.advice =
        fmt::format("{} did not have the memory for all calls, so nothing can be compared with it.",
                    base.name());
    return result;
  }
  const Contender& fastest = contenders[*std::ranges::find_if_not(result.by_time, refuses)];
  const Contender& leanest = contenders[*std::ranges::find_if_not(result.by_memory, refuses)];
  bool faster = differ(allocator_time(base), allocator_time(fastest), repeated);
  bool leaner = differ(heap_rss(base), heap_rss(leanest), repeated);
  auto says = [&](const Contender& best) {
    auto figure = [&](Spread (*of)(const Contender&), std::string_view what) {
      Spread from = of(base), to = of(best);
      if (differ(from, to, repeated)) return fmt::format("{} {}", change(from, to), what);
      if (from.median > 0 && std::abs(to.median / from.median - 1) < kAlike)
        return fmt::format("about as much {}", what);
      return fmt::format("{} {} (which may be chance)", change(from, to), what);
    };
    return fmt::format("{} takes {} and {}", best.name(),
                       figure(allocator_time, "time in the allocator"),
                       figure(heap_rss, "memory at the peak"));
  };
  if (!faster && !leaner)
    result.advice = fmt::format(
        "Stay with {}: nothing else needs less time or memory beyond chance.", base.name());
  else if (&fastest == &leanest)
    result.advice =
        fmt::format("Try {}: against {}, {}.", fastest.name(), base.name(), says(fastest));
  else if (faster && leaner)
    result.advice =
        fmt::format("For time try {}, for memory {}: against {}, {}; {}.", fastest.name(),
                    leanest.name(), base.name(), says(fastest), says(leanest));
  else if (faster)
    result.advice =
        fmt::format("For time try {}: against {}, {}. Nothing needs less memory beyond chance.",
                    fastest.name(), base.name(), says(fastest));
  else
    result.advice =
        fmt::format("For memory try {}: against {}, {}. Nothing needs less time beyond chance.",
                    leanest.name(), base.name(), says(leanest));
  if (!repeated) result.advice += " A single run each: --repeat 5 tells how much of it is chance.";
  return result;
}

}  // namespace malloscope::replay
