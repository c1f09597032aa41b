// SPDX-License-Identifier: Apache-2.0
#include "analyze/numbers.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <map>

namespace malloscope::analyze {

std::string grouped(uint64_t number) {
  std::string digits = fmt::format("{}", number);
  for (size_t i = digits.size(); i > 3;) digits.insert(i -= 3, ",");
  return digits;
}

std::string bytes_text(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  static constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // 1023.95 would be printed as 1024.0.
  while (value >= 1023.95 && unit + 1 < kUnits.size()) value /= 1024, ++unit;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string duration_text(uint64_t ns) {
  double s = static_cast<double>(ns) / 1e9;
  if (ns > 0 && ns < 1000) return fmt::format("{} ns", ns);
  if (ns < 1'000'000) return fmt::format("{} us", ns / 1000);
  if (ns < 999'500'000) return fmt::format("{:.3g} ms", s * 1e3);
  if (ns < 99'950'000'000) return fmt::format("{:.3g} s", s);
  uint64_t seconds = ns / 1'000'000'000, minutes = seconds / 60;
  if (minutes < 60) return fmt::format("{} min {:02} s", minutes, seconds % 60);
  return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
}

std::string percent_text(uint64_t part, uint64_t whole) {
  if (part == 0 || whole == 0) return "0 %";
  double percent = 100 * (static_cast<double>(part) / static_cast<double>(whole));
  if (percent < 0.1) return "< 0.1 %";
  if (percent < 9.95) return fmt::format("{:.1f} %", percent);
  // Nothing that falls short of the whole is called 100 %.
  if (part < whole && percent > 99) return "> 99 %";
  return fmt::format("{:.0f} %", percent);
}

std::string count_text(uint64_t number, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", grouped(number), number == 1 ? one : many);
}

std::string rate_text(double amount) {
  if (amount >= 99.95 && amount < 1.8e19) return grouped(static_cast<uint64_t>(std::round(amount)));
  return fmt::format("{:.3g}", amount);
}

std::string bytes_rate_text(double bytes) {
  if (bytes >= 1023.5 && bytes < 1.8e19)
    return bytes_text(static_cast<uint64_t>(std::round(bytes)));
  return rate_text(bytes) + " B";
}

Result<uint64_t> bytes_of(std::string_view text, std::string_view option) {
  double number = 0;
  auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(rest, static_cast<size_t>(text.data() + text.size() - rest));
  static const std::map<std::string, double> kUnits = {
      {"", 0},    {"B", 0},    {"K", 10},  {"KB", 10},  {"KiB", 10},
      {"k", 10},  {"M", 20},   {"MB", 20}, {"MiB", 20}, {"G", 30},
      {"GB", 30}, {"GiB", 30}, {"T", 40},  {"TB", 40},  {"TiB", 40}};
  auto scale = kUnits.find(unit);
  if (error == std::errc() && number >= 0 && scale != kUnits.end()) {
    double bytes = number * static_cast<double>(uint64_t{1} << static_cast<int>(scale->second));
    if (bytes < 1.8e19) return static_cast<uint64_t>(bytes);
  }
  return fail(fmt::format("{} '{}' is not a size; try 4096, 64K, 1.5M or 2G", option, text));
}

Result<uint64_t> number_of(std::string_view text, std::string_view option) {
  double number = 0;
  auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && rest == text.data() + text.size() && number >= 0 && number < 1.8e19 &&
      number == std::floor(number))
    return static_cast<uint64_t>(number);
  return fail(fmt::format("{} '{}' is not a number; try 1000000 or 1e6", option, text));
}

}  // namespace malloscope::analyze
