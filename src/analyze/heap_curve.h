// SPDX-License-Identifier: Apache-2.0
// How much of the heap was live over time, of each image and of all together, in a
// bounded number of points that never lose a peak or a low.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "analyze/heap.h"

namespace malloscope::analyze {

// A step function, thinned as it grows: time is cut in slots of equal length, and of each its
// first, lowest, highest and last point is kept. When the slots run out, pairs of them become one.
class Curve {
 public:
  struct Point {
    uint64_t tick = 0;
    uint64_t bytes = 0;
    uint64_t blocks = 0;
    bool operator==(const Point&) const = default;
  };

  explicit Curve(size_t most_slots = 1024) : most_slots_(most_slots) {}

  // Ticks must not decrease; one that does is taken for the last.
  void add(Point point);
  bool empty() const { return slots_.empty(); }

  // In order of time, at most four for each slot.
  std::vector<Point> points() const;

 private:
  struct Slot {
    bool used = false;
    Point first, lowest, highest, last;
  };
  static void join(Slot* slot, const Slot& later);

  size_t most_slots_;
  uint64_t origin_ = 0;  // Of the first slot.
  unsigned shift_ = 0;   // A slot is 2^shift_ ticks long.
  uint64_t last_tick_ = 0;
  std::vector<Slot> slots_;
};

class HeapCurve : public HeapObserver {
 public:
  // The heap that it observes must outlive it.
  explicit HeapCurve(Heap* heap, size_t most_slots = 1024);

  // Of one image, empty if it has none; and of all that are running, whose highest point is the
  // heap's peak.
  std::vector<Curve::Point> of(ImageId image) const;
  std::vector<Curve::Point> of_all() const;

  void made(ImageId image, const Block& block, const wire::Event& event, bool counts) override;
  void changed(ImageId image, const Block& before, const Block& now, const wire::Event& event,
               bool counts) override;
  void gone(ImageId image, const Block& block, End how, const wire::Event& event,
            bool counts) override;
  void image_ended(ImageId image) override;

 private:
  struct ImageCurve {
    explicit ImageCurve(size_t most_slots) : curve(most_slots) {}
    Curve curve;
    uint64_t bytes = 0, blocks = 0;
    bool ended = false;
  };

  ImageCurve& curve_of(ImageId image);
  void change(ImageId image, uint64_t bytes_more, uint64_t blocks_more, uint64_t tick, bool counts);
  void begin();

  Heap& heap_;
  size_t most_slots_;
  bool begun_ = false;              // The window.
  std::vector<ImageCurve> images_;  // By id.
  Curve all_;
  uint64_t bytes_ = 0, blocks_ = 0;  // Of the images that are running.
};

}  // namespace malloscope::analyze
