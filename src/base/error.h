// SPDX-License-Identifier: Apache-2.0
// What goes wrong in the tools, as a sentence for the user: what, where, and what to do.

#pragma once

#include <expected>
#include <string>

namespace malloscope {

struct Error {
  std::string sentence;
  bool usage = false;  // What was asked for cannot be; the data are good.
};

template <typename T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(std::string sentence) {
  return std::unexpected(Error{std::move(sentence)});
}

inline std::unexpected<Error> fail_usage(std::string sentence) {
  return std::unexpected(Error{std::move(sentence), true});
}

}  // namespace malloscope
