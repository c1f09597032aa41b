// SPDX-License-Identifier: Apache-2.0
// Reads the lanes of the recorded processes and turns what they hold into chunks.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "trace/file_writer.h"
#include "wire/encode.h"
#include "wire/lane.h"
#include "wire/records.h"
#include "wire/stacks.h"

namespace malloscope::collect {

// A program that was exec'd without the recorder, and why (see wire::kNotFollowed).
struct NotFollowed {
  std::string program;
  uint64_t why;
  bool operator==(const NotFollowed&) const = default;
};

// An image as the collector knows it while its lanes are being read.
struct DrainedImage {
  ImageId id = ImageId::kNone;
  uint32_t stamp = 0;
  int pid = 0;
  std::string executable;
  std::string folder;  // Where it began to work.
  uint64_t lost = 0;
  uint64_t last_tick = 0;      // Of its latest event.
  uint32_t garbled_lanes = 0;  // Lanes whose words made no sense.
  std::vector<NotFollowed> not_followed;
  uint64_t marks = 0;
  std::vector<wire::ThreadRecord> threads;
  wire::StackEncoder stacks;
};

class Drain {
 public:
  Drain(wire::SharedMemory shared, uint32_t segment_count, trace::FileWriter* file);

  // From now on the lanes of this slot are read.
  void add_image(uint32_t slot, std::unique_ptr<DrainedImage> image);
  DrainedImage* image(uint32_t slot) { return images_[slot].get(); }

  // Writes every event stamped before `limit_tick`, from every lane. What was stamped before the
  // limit of the pass before, but committed after it, is told to have happened at that: its thread
  // was interrupted in between, or it is one that does not look at the clock for each event. So all
  // that a pass writes is later than what was written before.
  void pass(uint64_t limit_tick);

  // Writes all that an image left behind, and gives back its lanes and segments. To be
  // called once it can write no more.
  std::unique_ptr<DrainedImage> take_out(uint32_t slot);

  // Ends the lanes of threads that are gone without having said so. `is_gone(slot, tid)` asks.
  template <typename IsGone>
  void end_abandoned(IsGone&& is_gone) {
    for (uint32_t number = 0; number < wire::kLanes; ++number) {
      if (lanes_[number].thread == ThreadId::kNone) continue;
      wire::LaneSlot& slot = shared_.lane(number);
      uint32_t live = static_cast<uint32_t>(wire::LaneState::kLive);
      if (slot.state.load(std::memory_order_acquire) == live &&
          is_gone(lanes_[number].owner_slot, slot.tid))
        slot.state.store(static_cast<uint32_t>(wire::LaneState::kEnded), std::memory_order_release);
    }
  }

  uint64_t events() const { return events_; }
  uint32_t live_lanes() const { return live_lanes_; }

  // Writes what is still in memory; part of pass() and take_out() for their callers' sake.
  void flush(uint64_t limit_tick);

 private:
  struct Lane {
    uint32_t owner_slot = 0;  // Valid if thread is set.
    ThreadId thread = ThreadId::kNone;
    uint32_t segment = 0;
    uint32_t at = 0;  // Words of the segment that have been read.
    // Where reading ahead has come to, in this segment or a later one; 0: not further than this.
    uint32_t ahead_segment = 0;
    uint32_t ahead_at = 0;
    uint64_t tick = 0;
    StackId free_stack = StackId::kNone;  // Of the free that is to come.
    uint8_t alignment = 0;                // Of the very next event, if it is not 0.
    bool garbled = false;
    bool counted = false;  // ... in garbled_lanes.
  };

  DrainedImage* open_lane(uint32_t number);
  void read_lane(uint32_t number, uint64_t limit_tick);
  void read_ahead(uint32_t number);
  uint32_t define_ahead(DrainedImage& image, const uint64_t* words, uint32_t at, uint32_t end);
  bool define_stack(DrainedImage& image, const uint64_t* words, uint32_t count);
  void meet_lane(uint32_t number, DrainedImage* image);
  void free_lane(uint32_t number);
  uint32_t read_words(Lane& lane, DrainedImage& image, const uint64_t* words, uint32_t from,
                      uint32_t to, uint64_t limit_tick);
  bool read_extended(Lane& lane, DrainedImage& image, const uint64_t* words, uint32_t count,
                     uint64_t limit_tick, bool* stop);
  // When an event that is stamped so is told to have happened.
  uint64_t told(uint64_t tick) const { return std::max(tick, earliest_); }
  void open_run(Lane& lane, DrainedImage& image);
  void put_free_stack(Lane& lane, uint64_t tick);
  void put_mark(Lane& lane, DrainedImage& image, uint64_t tick, wire::MarkKind kind,
                std::string_view name);
  // Adds to records that may become too many for one chunk.
  template <typename Record>
  void put(wire::ChunkType type, const Record& record, wire::Packer* records);
  bool put_alignment(Lane& lane, wire::Kind kind, wire::Op op, uint64_t tick);
  void return_segment(uint32_t number);
  void write_events();

  wire::SharedMemory shared_;
  uint32_t segment_count_;
  trace::FileWriter* file_;
  wire::EventEncoder encoder_;
  std::vector<std::unique_ptr<DrainedImage>> images_;
  std::vector<Lane> lanes_;
  wire::Packer threads_, modules_, mappings_, marks_, cpu_;
  bool run_open_ = false;
  uint64_t events_ = 0;
  uint32_t live_lanes_ = 0;
  uint64_t earliest_ = 0;  // The limit of the pass before.
};

}  // namespace malloscope::collect
