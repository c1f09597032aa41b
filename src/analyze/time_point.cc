// SPDX-License-Identifier: Apache-2.0
#include "analyze/time_point.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace malloscope::analyze {

Result<TimePoint> TimePoint::parse(std::string_view text, std::string_view option) {
  using Kind = TimePoint::Kind;
  if (text == "start") return TimePoint{};
  if (text == "end") return TimePoint{Kind::kEnd};
  if (text == "peak") return TimePoint{Kind::kPeak};
  double number = 0;
  auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(rest, static_cast<size_t>(text.data() + text.size() - rest));
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"min", 60e9}, {"h", 3600e9}};
  if (error == std::errc() && number >= 0) {
    if (unit == "%" && number <= 100) return TimePoint{Kind::kShare, 0, number / 100};
    for (auto [name, ns] : kUnits)
      if (unit == name && number * ns < 1e18)
        return TimePoint{Kind::kNs, static_cast<uint64_t>(number * ns)};
  }
  return fail(fmt::format("{} '{}' is not a time; try 2.5s, 300ms, 2min, 40%, peak, start or end",
                          option, text));
}

uint64_t tick_of(const TimePoint& point, const trace::Header& header, uint64_t end_tick,
                 uint64_t peak_tick) {
  using Kind = TimePoint::Kind;
  switch (point.kind) {
    case Kind::kStart:
      return header.start_tick;
    case Kind::kNs:
      return header.start_tick +
             static_cast<uint64_t>(static_cast<double>(point.ns) / header.ns_per_tick);
    case Kind::kShare:
      return header.start_tick +
             static_cast<uint64_t>(static_cast<double>(end_tick - header.start_tick) * point.share);
    case Kind::kPeak:
      return peak_tick;
    case Kind::kEnd:
      return end_tick;
  }
  return 0;
}

}  // namespace malloscope::analyze
