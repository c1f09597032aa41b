// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace malloscope::analyze {

// 1234567 -> "1,234,567".
std::string grouped(uint64_t number);
// 1536 -> "1.5 KiB"; up to 1023 exact: "12 B".
std::string bytes_text(uint64_t bytes);
// "120 ns", "850 us", "12.3 ms", "4.56 s", "3 min 20 s", "2 h 05 min".
std::string duration_text(uint64_t ns);
// "96 %", "0.4 %", "< 0.1 %"; "0 %" only for none at all.
std::string percent_text(uint64_t part, uint64_t whole);
// "1 block", "2,345 blocks".
std::string count_text(uint64_t number, std::string_view one, std::string_view many);

// What need not be a whole number: "1,234", "99.5", "0.0123"; and as bytes.
std::string rate_text(double amount);
std::string bytes_rate_text(double bytes);

// And as they type them.
// "512M", "1.5GiB", "4096": powers of 1024. `option` is what it was typed for.
Result<uint64_t> bytes_of(std::string_view text, std::string_view option);
// "1000000", "1e6", "2.5e3".
Result<uint64_t> number_of(std::string_view text, std::string_view option);

}  // namespace malloscope::analyze
