// SPDX-License-Identifier: Apache-2.0
#include "analyze/heap_curve.h"

#include <algorithm>

namespace malloscope::analyze {

void Curve::join(Slot* slot, const Slot& later) {
  if (!later.used) return;
  if (!slot->used) {
    *slot = later;
    return;
  }
  // Of equals the earlier one stays, as with the heap's own peak.
  if (later.lowest.bytes < slot->lowest.bytes) slot->lowest = later.lowest;
  if (later.highest.bytes > slot->highest.bytes) slot->highest = later.highest;
  slot->last = later.last;
}

void Curve::add(Point point) {
  if (slots_.empty()) origin_ = last_tick_ = point.tick;
  point.tick = last_tick_ = std::max(point.tick, last_tick_);
  uint64_t place = (point.tick - origin_) >> shift_;
  while (place >= most_slots_) {
    for (size_t i = 0; i < slots_.size(); i += 2) {
      Slot pair = slots_[i];
      if (i + 1 < slots_.size()) join(&pair, slots_[i + 1]);
      slots_[i / 2] = pair;
    }
    slots_.resize((slots_.size() + 1) / 2);
    ++shift_;
    place = (point.tick - origin_) >> shift_;
  }
  if (place >= slots_.size()) slots_.resize(place + 1);
  join(&slots_[place], {true, point, point, point, point});
}

std::vector<Curve::Point> Curve::points() const {
  std::vector<Point> points;
  for (const Slot& slot : slots_) {
    if (!slot.used) continue;
    bool low_first = slot.lowest.tick <= slot.highest.tick;
    for (const Point& point : {slot.first, low_first ? slot.lowest : slot.highest,
                               low_first ? slot.highest : slot.lowest, slot.last})
      if (points.empty() || !(points.back() == point)) points.push_back(point);
  }
  return points;
}

HeapCurve::HeapCurve(Heap* heap, size_t most_slots)
    : heap_(*heap), most_slots_(most_slots), all_(most_slots) {
  heap->add_observer(this);
}

HeapCurve::ImageCurve& HeapCurve::curve_of(ImageId image) {
  while (images_.size() <= raw(image)) images_.emplace_back(most_slots_);
  return images_[raw(image)];
}

// A window in which nothing happens has one point: what it found.
std::vector<Curve::Point> HeapCurve::of(ImageId image) const {
  if (raw(image) >= images_.size()) return {};
  const ImageCurve& found = images_[raw(image)];
  if (begun_ || found.ended) return found.curve.points();
  return {{heap_.window().from_tick, found.bytes, found.blocks}};
}

std::vector<Curve::Point> HeapCurve::of_all() const {
  if (begun_) return all_.points();
  return {{heap_.window().from_tick, bytes_, blocks_}};
}

// The heap that a window finds is where its curves begin.
void HeapCurve::begin() {
  begun_ = true;
  uint64_t tick = heap_.window().from_tick;
  if (tick == 0) return;
  for (ImageCurve& image : images_)
    if (image.blocks > 0 && !image.ended) image.curve.add({tick, image.bytes, image.blocks});
  all_.add({tick, bytes_, blocks_});
}

void HeapCurve::change(ImageId id, uint64_t bytes_more, uint64_t blocks_more, uint64_t tick,
                       bool counts) {
  if (counts && !begun_) begin();
  ImageCurve& image = curve_of(id);
  image.bytes += bytes_more;
  image.blocks += blocks_more;
  if (counts) image.curve.add({tick, image.bytes, image.blocks});
  if (image.ended) return;
  bytes_ += bytes_more;
  blocks_ += blocks_more;
  if (counts) all_.add({tick, bytes_, blocks_});
}

void HeapCurve::made(ImageId image, const Block& block, const wire::Event& event, bool counts) {
  change(image, block.bytes(), block.stands_for(), event.tick, counts);
}

void HeapCurve::changed(ImageId image, const Block& before, const Block& now,
                        const wire::Event& event, bool counts) {
  change(image, now.bytes() - before.bytes(), 0, event.tick, counts);
}

void HeapCurve::gone(ImageId image, const Block& block, End, const wire::Event& event,
                     bool counts) {
  change(image, -block.bytes(), -block.stands_for(), event.tick, counts);
}

void HeapCurve::image_ended(ImageId id) {
  ImageCurve& image = curve_of(id);
  image.ended = true;
  bytes_ -= image.bytes;
  blocks_ -= image.blocks;
  if (begun_) all_.add({heap_.last_tick(), bytes_, blocks_});
}

}  // namespace malloscope::analyze
