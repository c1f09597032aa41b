// SPDX-License-Identifier: Apache-2.0
// How far each track knows the others to have come: from what it waited for, and from what those
// knew when they had done that. A wait that this implies need not be written.
//
// What a track knew at earlier times is remembered only so far back that all of it together stays
// small. What is forgotten costs a needless wait, never a missing one.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

namespace malloscope::replay {

class VectorClocks {
 public:
  void add_track() {
    tracks_.emplace_back();
    remembered_ = std::clamp<size_t>(kMostRemembered / (tracks_.size() * tracks_.size()), 1, 16);
  }

  // Whether `track` comes after the operation `count` of `other` without waiting for it.
  bool knows(uint32_t track, uint32_t other, uint64_t count) const {
    if (track == other || count == 0) return true;
    const Clock& clock = tracks_[track].clock;
    return other < clock.size() && clock[other] >= count;
  }

  // As its operation `at`, `track` waits until `other` has done `count`.
  void wait(uint32_t track, uint64_t at, uint32_t other, uint64_t count) {
    Track& self = tracks_[track];
    auto learn = [&self](size_t whom, uint64_t how_far) {
      if (self.clock.size() <= whom) self.clock.resize(whom + 1);
      self.clock[whom] = std::max(self.clock[whom], how_far);
    };
    learn(other, count);
    const auto& earlier = tracks_[other].earlier;
    auto after = std::ranges::upper_bound(earlier, count, {}, &Moment::first);
    if (after != earlier.begin()) {
      const Clock& knew = std::prev(after)->second;
      for (size_t i = 0; i < knew.size(); ++i) learn(i, knew[i]);
    }
    self.earlier.emplace_back(at, self.clock);
    while (self.earlier.size() > remembered_) self.earlier.pop_front();
  }

 private:
  // Numbers that all tracks together may remember.
  static constexpr size_t kMostRemembered = size_t{1} << 22;

  using Clock = std::vector<uint64_t>;        // By track; those missing are 0.
  using Moment = std::pair<uint64_t, Clock>;  // After which operation it knew what.
  struct Track {
    Clock clock;
    std::deque<Moment> earlier;
  };

  std::vector<Track> tracks_;
  size_t remembered_ = 16;
};

}  // namespace malloscope::replay
