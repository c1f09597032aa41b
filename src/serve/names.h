// SPDX-License-Identifier: Apache-2.0
// Functions and metrics in the heads of answers.

#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyze/answer.h"
#include "analyze/profile_views.h"
#include "output/json_writer.h"

namespace malloscope::serve {

// "metric" and "unit".
void write_metric_members(analyze::Metric metric, output::JsonWriter* json);
void write_frame(const analyze::NamedFrame& frame, output::JsonWriter* json);
// An array of frames, innermost first; of a very deep one, the two ends.
void write_stack(const std::vector<analyze::NamedFrame>& frames, output::JsonWriter* json);

// The same for many stacks, which are mostly made of the same frames: arrays of numbers, and the
// frames that these mean once.
class FrameNumbers {
 public:
  void write_stack(const std::vector<analyze::NamedFrame>& frames, output::JsonWriter* json);
  // An array.
  void write_frames(output::JsonWriter* json) const;

 private:
  size_t number_of(const analyze::NamedFrame& frame);

  std::unordered_map<std::string, size_t> numbers_;
  std::vector<analyze::NamedFrame> frames_;
};

// {"id": [], "name": [], "full": [], "file": [], "line": [], "module": []}
class NamesWriter {
 public:
  NamesWriter(output::JsonWriter* json, std::string key) : json_(*json), key_(std::move(key)) {}
  void add(uint32_t id, analyze::NamedFrame frame) {
    ids_.push_back(id);
    frames_.push_back(std::move(frame));
  }
  void finish();

 private:
  output::JsonWriter& json_;
  std::string key_;
  std::vector<uint32_t> ids_;
  std::vector<analyze::NamedFrame> frames_;
};

}  // namespace malloscope::serve
