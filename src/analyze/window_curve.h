// SPDX-License-Identifier: Apache-2.0
// How the heap went through a part of the time, in many equal slices with the highest moment of
// each: what index_curves.h has of the whole, as fine as one likes, but from events.

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "analyze/heap.h"
#include "analyze/index_curves.h"

namespace malloscope::analyze {

class WindowCurve : public HeapObserver {
 public:
  // What counts; null: everything. Then what a process leaves does not count as long as others run;
  // of a part of the blocks it does, as in IndexCurves.
  using Wants = std::function<bool(ImageId, const Block&)>;
  // Slices are behind a tick, up to and with the next: from `from` to `to`. `ends`: by image id -
  // 1, when it ended; of others, and of those that go on, it is when that is told of.
  WindowCurve(uint64_t from, uint64_t to, uint32_t slices, Wants wants,
              std::vector<std::optional<uint64_t>> ends = {});

  // What is before the first slice counts as in it.
  void begin() { go_to_slice(0); }
  // After the last event.
  const std::vector<WholeSlice>& finish();
  uint64_t edge(uint32_t slice) const;

  void image_started(const trace::Image& image) override;
  void made(ImageId image, const Block& block, const wire::Event& event, bool counts) override;
  void changed(ImageId image, const Block& before, const Block& now, const wire::Event& event,
               bool counts) override;
  void gone(ImageId image, const Block& block, End how, const wire::Event& event,
            bool counts) override;
  void image_ended(ImageId image) override;

 private:
  struct Process {
    bool runs = false;
    uint64_t bytes = 0, blocks = 0;
  };
  bool wants(ImageId image, const Block& block) const { return !wants_ || wants_(image, block); }
  // Goes on to the slice that a tick is in; nullptr: it is before the first.
  WholeSlice* go_to(uint64_t tick);
  void go_to_slice(uint32_t slice);
  void add(ImageId image, uint64_t bytes, uint64_t blocks, WholeSlice* slice);
  void forget_ended();
  void end(ImageId image);
  // Of those that have ended by that tick.
  void end_until(uint64_t tick);

  uint64_t from_, to_;
  Wants wants_;
  std::vector<std::optional<uint64_t>> ends_;
  std::map<uint64_t, std::vector<ImageId>> ending_;  // By when: told of before that.
  std::vector<WholeSlice> slices_;
  int64_t now_ = -1;  // The slice; -1: before the first.
  uint64_t bytes_ = 0, blocks_ = 0;
  uint64_t running_ = 0, running_blocks_ = 0;  // Of processes that run: bytes, blocks.
  std::vector<Process> processes_;             // By image.
};

}  // namespace malloscope::analyze
