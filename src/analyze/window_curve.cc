// SPDX-License-Identifier: Apache-2.0
#include "analyze/window_curve.h"

#include <algorithm>

namespace malloscope::analyze {

WindowCurve::WindowCurve(uint64_t from, uint64_t to, uint32_t slices, Wants wants,
                         std::vector<std::optional<uint64_t>> ends)
    : from_(from),
      to_(std::max(to, from + 1)),
      wants_(std::move(wants)),
      ends_(std::move(ends)),
      // A slice is a tick at least.
      slices_(std::min<uint64_t>(slices, to_ - from_)) {}

uint64_t WindowCurve::edge(uint32_t slice) const {
  auto share = static_cast<__uint128_t>(to_ - from_) * slice / slices_.size();
  return from_ + static_cast<uint64_t>(share);
}

void WindowCurve::go_to_slice(uint32_t slice) {
  while (now_ < static_cast<int64_t>(slice)) {
    if (now_ >= 0) {
      slices_[static_cast<size_t>(now_)].live_bytes = bytes_;
      slices_[static_cast<size_t>(now_)].live_blocks = blocks_;
      slices_[static_cast<size_t>(now_)].running_blocks = wants_ ? blocks_ : running_blocks_;
    }
    slices_[static_cast<size_t>(++now_)].live_max = wants_ ? bytes_ : running_;
  }
}

WholeSlice* WindowCurve::go_to(uint64_t tick) {
  // Of an event at the very tick of an end, the end was told first.
  if (!ending_.empty() && ending_.begin()->first <= tick) end_until(tick);
  if (tick <= from_ && now_ < 0) return nullptr;
  auto last = static_cast<uint32_t>(slices_.size() - 1);
  uint32_t slice = 0;
  if (tick > from_) {
    auto share = static_cast<__uint128_t>(tick - from_) * slices_.size() / (to_ - from_);
    slice = static_cast<uint32_t>(std::min<__uint128_t>(share, last));
    if (slice > 0 && tick <= edge(slice)) --slice;  // Its very last tick.
  }
  go_to_slice(slice);
  return &slices_[static_cast<size_t>(now_)];
}

void WindowCurve::add(ImageId image, uint64_t bytes, uint64_t blocks, WholeSlice* slice) {
  bytes_ += bytes;
  blocks_ += blocks;
  if (raw(image) >= processes_.size()) processes_.resize(raw(image) + size_t{1});
  Process& process = processes_[raw(image)];
  process.bytes += bytes;
  process.blocks += blocks;
  if (process.runs) running_ += bytes, running_blocks_ += blocks;
  if (slice) slice->live_max = std::max(slice->live_max, wants_ ? bytes_ : running_);
}

void WindowCurve::image_started(const trace::Image& image) {
  if (raw(image.id) >= processes_.size()) processes_.resize(raw(image.id) + size_t{1});
  forget_ended();
  processes_[raw(image.id)].runs = true;
}

// What the last process leaves stays, unless another one follows.
void WindowCurve::forget_ended() {
  running_ = running_blocks_ = 0;
  for (const Process& process : processes_)
    if (process.runs) running_ += process.bytes, running_blocks_ += process.blocks;
}

// That is told of right after the last event, and the process may have gone on for long.
void WindowCurve::image_ended(ImageId image) {
  std::optional<uint64_t> when;
  if (raw(image) <= ends_.size()) when = ends_[raw(image) - 1];
  if (when)
    ending_[*when].push_back(image);
  else
    end(image);
}

void WindowCurve::end_until(uint64_t tick) {
  while (!ending_.empty() && ending_.begin()->first <= tick) {
    auto [when, images] = *ending_.begin();
    ending_.erase(ending_.begin());
    go_to(when);  // That finds no more of this tick.
    for (ImageId image : images) end(image);
  }
}

void WindowCurve::end(ImageId image) {
  if (raw(image) >= processes_.size()) return;
  processes_[raw(image)].runs = false;
  if (std::ranges::any_of(processes_, &Process::runs)) forget_ended();
}

void WindowCurve::made(ImageId image, const Block& block, const wire::Event& event, bool) {
  WholeSlice* slice = go_to(event.tick);  // Whatever it is about: an event may come late.
  if (!wants(image, block)) return;
  add(image, block.bytes(), block.stands_for(), slice);
  if (!slice) return;
  slice->allocations += block.stands_for();
  slice->allocated_bytes += block.bytes();
}

void WindowCurve::changed(ImageId image, const Block& before, const Block& now,
                          const wire::Event& event, bool) {
  WholeSlice* slice = go_to(event.tick);
  bool had = wants(image, before), has = wants(image, now);
  if (!had && !has) return;
  add(image, (has ? now.bytes() : 0) - (had ? before.bytes() : 0),
      (has ? now.stands_for() : 0) - (had ? before.stands_for() : 0), slice);
  if (slice && has && now.bytes() > before.bytes())
    slice->allocated_bytes += now.bytes() - before.bytes();
}

void WindowCurve::gone(ImageId image, const Block& block, End how, const wire::Event& event, bool) {
  WholeSlice* slice = go_to(event.tick);
  if (!wants(image, block)) return;
  add(image, -block.bytes(), -block.stands_for(), slice);
  if (slice && how != End::kLost) slice->frees += block.stands_for();
}

const std::vector<WholeSlice>& WindowCurve::finish() {
  end_until(to_);
  go_to_slice(static_cast<uint32_t>(slices_.size() - 1));
  slices_.back().live_bytes = bytes_;
  slices_.back().live_blocks = blocks_;
  slices_.back().running_blocks = wants_ ? blocks_ : running_blocks_;
  return slices_;
}

}  // namespace malloscope::analyze
