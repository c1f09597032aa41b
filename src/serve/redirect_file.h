// SPDX-License-Identifier: Apache-2.0
// A page on disk that leads to another address. Everybody on the machine can read what a browser
// was called with; so it is given this file, which only its owner can read, and not the address.

#pragma once

#include <optional>
#include <string>
#include <utility>

namespace malloscope::serve {

// There can be one in a process. It goes with its owner, or with the signal that ends the process.
class RedirectFile {
 public:
  // Nothing, if there is no place for it.
  static std::optional<RedirectFile> write(const std::string& address);
  RedirectFile(RedirectFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  ~RedirectFile();

  std::string url() const;

 private:
  explicit RedirectFile(std::string path);

  std::string path_;
};

}  // namespace malloscope::serve
