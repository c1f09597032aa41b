// SPDX-License-Identifier: Apache-2.0
#include "serve/columns.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "output/sink.h"

namespace malloscope::serve {

static_assert(std::endian::native == std::endian::little);

static void pad(std::string* bytes, char with) { bytes->append((8 - bytes->size() % 8) % 8, with); }

void Columns::add_numbers(std::string name, std::span<const int64_t> values) {
  auto all_fit = [&]<typename T>() {
    return std::ranges::all_of(values, [](int64_t v) { return std::in_range<T>(v); });
  };
  auto add_as = [&]<typename T>() {
    std::vector<T> column;
    column.reserve(values.size());
    for (int64_t value : values) column.push_back(static_cast<T>(value));
    add(std::move(name), std::span<const T>(column));
  };
  if (all_fit.operator()<uint32_t>())
    add_as.operator()<uint32_t>();
  else if (all_fit.operator()<int32_t>())
    add_as.operator()<int32_t>();
  else
    add_as.operator()<double>();
}

std::string Columns::finish(const std::function<void(output::JsonWriter*)>& head) const {
  output::StringSink sink;
  output::JsonWriter json(&sink);
  json.begin_object(output::JsonWriter::Layout::kLine);
  head(&json);
  json.key("columns").begin_array();
  for (const Column& column : columns_) {
    json.begin_object();
    json.member("name", column.name);
    json.member("type", column.type);
    json.member("length", column.length);
    json.end();
  }
  json.end();
  json.end();

  std::string text = sink.text();
  pad(&text, ' ');
  std::string bytes = "MSC1";
  auto length = static_cast<uint32_t>(text.size());
  bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
  bytes += text;
  for (const Column& column : columns_) {
    bytes += column.bytes;
    pad(&bytes, '\0');
  }
  return bytes;
}

}  // namespace malloscope::serve
