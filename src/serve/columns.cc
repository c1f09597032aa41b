// SPDX-License-Identifier: Apache-2.0
#include "serve/columns.h"

#include <bit>
#include <cstring>

#include "output/sink.h"

namespace malloscope::serve {

static_assert(std::endian::native == std::endian::little);

static void pad(std::string* bytes, char with) { bytes->append((8 - bytes->size() % 8) % 8, with); }

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
