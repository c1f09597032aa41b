// SPDX-License-Identifier: Apache-2.0
#include "replay/untangle.h"

#include <algorithm>

namespace malloscope::replay {

using wire::Event;
using wire::Kind;

void Untangler::add_slowly(const Event& event) {
  // Their blocks did not come.
  for (;;) {
    auto late = std::ranges::find_if(
        held_, [&](const auto& held) { return event.tick > held.second.front().tick + kWindow; });
    if (late == held_.end()) break;
    release(late->first);
  }
  if (auto own = held_.find(raw(event.thread)); own != held_.end()) {
    own->second.push_back(event);
    return;
  }
  if (!perform_(event, false)) {
    held_[raw(event.thread)].push_back(event);
    return;
  }
  if ((event.kind != Kind::kAlloc && event.kind != Kind::kReallocEnd) || event.address == 0) return;
  auto helped = std::ranges::find_if(
      held_, [&](const auto& held) { return held.second.front().address == event.address; });
  if (helped == held_.end()) return;
  ++put_right_;
  release(helped->first);
}

void Untangler::release(uint32_t thread) {
  std::deque<Event> events = std::move(held_.extract(thread).mapped());
  perform_(events.front(), true);
  // One of them may hold the thread back again, and the others with it.
  events.pop_front();
  for (const Event& event : events) add(event);
}

void Untangler::flush() {
  while (!held_.empty()) {
    auto first = std::ranges::min_element(
        held_, {}, [](const auto& held) { return held.second.front().tick; });
    release(first->first);
  }
}

}  // namespace malloscope::replay
