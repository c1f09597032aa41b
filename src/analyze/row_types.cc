// SPDX-License-Identifier: Apache-2.0
#include "analyze/row_types.h"

#include <string_view>

#include "symbols/type_clue.h"

namespace malloscope::analyze {

const std::string& RowTypes::of(const Row& row) {
  FrameTable& table = reading_.frames();
  table.stack(row.image, row.stack, &frames_);
  size_t count = 0;
  while (count < frames_.size() && table.frame(frames_[count]).plumbing) ++count;
  // A class's own operator new is nobody's plumbing.
  if (count < frames_.size()) ++count;
  std::string key;
  for (size_t i = 0; i < count; ++i) key += std::to_string(static_cast<uint32_t>(frames_[i])) + ' ';
  auto [known, fresh] = known_.try_emplace(std::move(key));
  if (fresh) {
    std::vector<std::string_view> functions;
    for (size_t i = 0; i < count; ++i) functions.push_back(table.frame(frames_[i]).function);
    known->second = symbols::allocated_type(functions);
  }
  return known->second;
}

}  // namespace malloscope::analyze
