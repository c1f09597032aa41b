// SPDX-License-Identifier: Apache-2.0
#include "serve/names.h"

#include <fmt/format.h>

#include "analyze/numbers.h"

namespace malloscope::serve {

using analyze::NamedFrame;

// Empty if it is shown whole.
static const std::string& full_name(const NamedFrame& frame) {
  static const std::string kNone;
  return frame.full == frame.function ? kNone : frame.full;
}

void write_metric_members(analyze::Metric metric, output::JsonWriter* json) {
  using Kind = analyze::Column::Kind;
  Kind kind = analyze::metric_kind(metric);
  json->member("metric", analyze::metric_name(metric));
  json->member("unit", kind == Kind::kBytes ? "bytes" : kind == Kind::kDuration ? "ns" : "count");
}

void write_frame(const NamedFrame& frame, output::JsonWriter* json) {
  json->begin_object(output::JsonWriter::Layout::kLine);
  json->member("name", frame.function);
  json->member("full", full_name(frame));
  json->member("file", frame.file);
  json->member("line", frame.line);
  json->member("module", frame.module);
  json->end();
}

// Calls visit(const NamedFrame&) for a stack's frames, or for those of its two ends.
template <typename Visit>
static void for_each_frame(const std::vector<NamedFrame>& frames, Visit&& visit) {
  constexpr size_t kMostFrames = 300, kInner = 200;
  for (size_t i = 0; i < frames.size(); ++i) {
    if (frames.size() > kMostFrames && i == kInner) {
      size_t left_out = frames.size() - kMostFrames;
      NamedFrame gap;
      gap.function = fmt::format("[{} more frames]", analyze::grouped(left_out));
      visit(gap);
      i += left_out;
    }
    visit(frames[i]);
  }
}

void write_stack(const std::vector<NamedFrame>& frames, output::JsonWriter* json) {
  json->begin_array();
  for_each_frame(frames, [&](const NamedFrame& frame) { write_frame(frame, json); });
  json->end();
}

void FrameNumbers::write_stack(const std::vector<NamedFrame>& frames, output::JsonWriter* json) {
  json->begin_array(output::JsonWriter::Layout::kLine);
  for_each_frame(frames, [&](const NamedFrame& frame) { json->value(number_of(frame)); });
  json->end();
}

void FrameNumbers::write_frames(output::JsonWriter* json) const {
  json->begin_array();
  for (const NamedFrame& frame : frames_) write_frame(frame, json);
  json->end();
}

size_t FrameNumbers::number_of(const NamedFrame& frame) {
  std::string key;
  for (const std::string* text : {&frame.function, &frame.full, &frame.file, &frame.module})
    key += *text + '\0';
  key += std::to_string(frame.line);
  auto [number, fresh] = numbers_.try_emplace(std::move(key), frames_.size());
  if (fresh) frames_.push_back(frame);
  return number->second;
}

void NamesWriter::finish() {
  json_.key(key_).begin_object();
  auto column = [&](const char* name, auto&& value) {
    json_.key(name).begin_array();
    for (const NamedFrame& frame : frames_) json_.value(value(frame));
    json_.end();
  };
  json_.key("id").begin_array();
  for (uint32_t id : ids_) json_.value(id);
  json_.end();
  column("name", [](const NamedFrame& f) { return std::string_view(f.function); });
  column("full", [](const NamedFrame& f) { return std::string_view(full_name(f)); });
  column("file", [](const NamedFrame& f) { return std::string_view(f.file); });
  column("line", [](const NamedFrame& f) { return f.line; });
  column("module", [](const NamedFrame& f) { return std::string_view(f.module); });
  json_.end();
}

}  // namespace malloscope::serve
