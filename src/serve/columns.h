// SPDX-License-Identifier: Apache-2.0
// Large answers for the page: typed arrays behind a JSON head (docs/viewer_api.md).

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "output/json_writer.h"

namespace malloscope::serve {

class Columns {
 public:
  void add(std::string name, std::span<const double> values) { put(name, "f64", values); }
  void add(std::string name, std::span<const uint32_t> values) { put(name, "u32", values); }
  void add(std::string name, std::span<const uint8_t> values) { put(name, "u8", values); }
  void add(std::string name, std::span<const int32_t> values) { put(name, "i32", values); }
  // In as few bytes as hold them all: u32, i32 or f64.
  void add_numbers(std::string name, std::span<const int64_t> values);

  // `head` writes the members of the head besides "columns".
  std::string finish(const std::function<void(output::JsonWriter*)>& head) const;

 private:
  struct Column {
    std::string name;
    std::string_view type;
    size_t length;
    std::string bytes;
  };
  template <typename T>
  void put(std::string& name, std::string_view type, std::span<const T> values) {
    columns_.push_back(
        {std::move(name), type, values.size(),
         std::string(reinterpret_cast<const char*>(values.data()), values.size_bytes())});
  }

  std::vector<Column> columns_;
};

}  // namespace malloscope::serve
