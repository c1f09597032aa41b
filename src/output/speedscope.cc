// SPDX-License-Identifier: Apache-2.0
// speedscope's own JSON (https://www.speedscope.app/file-format-schema.json): a profile for each
// metric, all over the same functions. A sample is a stack of them, the root first.

#include <fmt/format.h>

#include <span>

#include "output/exports.h"
#include "output/json_writer.h"
#include "output/words.h"

namespace malloscope::output {
namespace {

using analyze::Metric;
using Layout = JsonWriter::Layout;

struct Profile {
  Metric metric;
  const char* name;
  const char* unit;
};
constexpr Profile kProfiles[] = {
    {Metric::kPeak, "bytes at the peak", "bytes"},
    {Metric::kLive, "bytes still live", "bytes"},
    {Metric::kAllocated, "bytes allocated", "bytes"},
    {Metric::kAllocations, "allocations", "none"},
    {Metric::kTemporary, "temporary allocations", "none"},
    {Metric::kCalls, "allocations and reallocations", "none"},
};
constexpr Profile kCpuProfile[] = {{Metric::kCpu, "CPU time", "nanoseconds"}};

void write_profile(JsonWriter* json, const analyze::CallTree& tree, const Profile& profile) {
  const auto& nodes = tree.nodes();
  auto weight = [&](size_t n) { return analyze::value(tree.self(n), profile.metric); };
  json->begin_object();
  json->member("type", "sampled");
  json->member("name", profile.name);
  json->member("unit", profile.unit);
  json->member("startValue", 0);
  json->member("endValue", analyze::value(tree.total(), profile.metric));
  json->key("samples").begin_array();
  std::vector<analyze::SymbolId> path;
  for (uint32_t n = 1; n < nodes.size(); ++n) {
    if (weight(n) == 0) continue;
    tree.path(n, &path);
    json->begin_array(Layout::kLine);
    for (size_t i = path.size(); i-- > 0;) json->value(static_cast<uint32_t>(path[i]));
    json->end();
  }
  json->end();
  json->key("weights").begin_array(Layout::kLine);
  for (uint32_t n = 1; n < nodes.size(); ++n)
    if (weight(n) > 0) json->value(weight(n));
  json->end();
  json->end();
}

}  // namespace

Result<void> write_speedscope(const Export& what, Sink* sink) {
  analyze::CallTree tree = export_tree(what, false);
  JsonWriter json(sink);
  json.begin_object();
  json.member("$schema", "https://www.speedscope.app/file-format-schema.json");
  json.member("exporter", "malloscope " MSCOPE_VERSION);
  json.member("name", base_name(what.reading->path()));
  std::span<const Profile> profiles = kProfiles;
  if (what.metric == Metric::kCpu) profiles = kCpuProfile;
  for (size_t i = 0; i < profiles.size(); ++i)
    if (profiles[i].metric == what.metric) json.member("activeProfileIndex", i);
  json.key("shared").begin_object();
  json.key("frames").begin_array();
  for (uint32_t i = 0; i < tree.symbols(); ++i) {
    const analyze::Symbol& symbol = tree.symbol(analyze::SymbolId{i});
    json.begin_object(Layout::kLine);
    json.member("name", symbol.full);
    // No line: a function has many.
    if (!symbol.file.empty() || !symbol.module.empty())
      json.member("file", symbol.file.empty() ? symbol.module : symbol.file);
    json.end();
  }
  json.end();
  json.end();
  json.key("profiles").begin_array();
  for (const Profile& profile : profiles) write_profile(&json, tree, profile);
  json.end();
  json.end();
  return {};
}

}  // namespace malloscope::output
