// SPDX-License-Identifier: Apache-2.0
// One pass makes one epoch. The caller reads the clock first; then each lane is
// read up to what is committed, but no further than the events stamped before
// that moment. An event is committed before its call can affect another thread,
// so if an effect is in this epoch its cause is too, or came before.
//
// Not so the stack it names: that may have been defined by another thread between the event's
// stamp and its commit, in a lane that we had read by then. So after all lanes have been read,
// definitions alone are read ahead. (One of them may build on another that is not there yet; then
// nothing in this epoch names it, and the reader keeps it for the next.)
//
// The words come from the memory of another program, which may have any bug.
// Every word is read once into a local, every number is checked, and a lane that
// makes no sense is given up and counted; the others go on.

#include "collect/drain.h"

#include <algorithm>
#include <cstring>

#include "collect/process_info.h"

namespace malloscope::collect {

using wire::ChunkType;

Drain::Drain(wire::SharedMemory shared, uint32_t segment_count, trace::FileWriter* file)
    : shared_(shared),
      segment_count_(segment_count),
      file_(file),
      images_(wire::kImages),
      lanes_(wire::kLanes) {}

void Drain::add_image(uint32_t slot, std::unique_ptr<DrainedImage> image) {
  images_[slot] = std::move(image);
}

void Drain::pass(uint64_t limit_tick) {
  live_lanes_ = 0;
  for (uint32_t number = 0; number < wire::kLanes; ++number)
    if (shared_.lane(number).owner.load(std::memory_order_acquire) != 0)
      read_lane(number, limit_tick);
  for (uint32_t number = 0; number < wire::kLanes; ++number)
    if (shared_.lane(number).owner.load(std::memory_order_acquire) != 0) read_ahead(number);
  flush(limit_tick);
  earliest_ = std::max(earliest_, limit_tick);
}

void Drain::meet_lane(uint32_t number, DrainedImage* image) {
  const wire::LaneSlot& slot = shared_.lane(number);
  Lane& lane = lanes_[number];
  lane = {};
  lane.owner_slot = slot.owner.load(std::memory_order_relaxed) - 1;
  int tid = slot.tid;
  // A nested lane belongs to a thread that we know already.
  if (slot.nesting > 0) {
    for (size_t i = image->threads.size(); i-- > 0;)
      if (image->threads[i].tid == static_cast<uint64_t>(tid)) {
        lane.thread = ThreadId{static_cast<uint32_t>(i + 1)};
        return;
      }
  }
  wire::ThreadRecord thread;
  if (tid == 0) thread.name = "(ended threads)";
  if (tid < 0) thread.name = "(sandboxed thread)", tid = 0;
  thread.image = raw(image->id);
  thread.thread = image->threads.size() + 1;
  thread.tid = static_cast<uint64_t>(tid);
  image->threads.push_back(thread);
  wire::pack(thread, &threads_);
  lane.thread = ThreadId{static_cast<uint32_t>(thread.thread)};
}

// The image whose lane it is, if it is one that is to be read.
DrainedImage* Drain::open_lane(uint32_t number) {
  wire::LaneSlot& slot = shared_.lane(number);
  uint32_t owner = slot.owner.load(std::memory_order_acquire) - 1;
  if (owner >= wire::kImages || !images_[owner]) return nullptr;
  DrainedImage& image = *images_[owner];
  if (slot.state.load(std::memory_order_acquire) == 0 || slot.owner_stamp != image.stamp)
    return nullptr;
  Lane& lane = lanes_[number];
  if (lane.thread == ThreadId::kNone) meet_lane(number, &image);
  if (lane.segment == 0) lane.segment = slot.first.load(std::memory_order_acquire);
  return &image;
}

void Drain::read_lane(uint32_t number, uint64_t limit_tick) {
  uint32_t state = shared_.lane(number).state.load(std::memory_order_acquire);
  DrainedImage* lane_image = open_lane(number);
  if (!lane_image) return;
  DrainedImage& image = *lane_image;
  Lane& lane = lanes_[number];
  ++live_lanes_;

  bool all_read = true;
  run_open_ = false;
  while (lane.segment != 0) {
    if (lane.segment > segment_count_ ||
        shared_.segment_owner(lane.segment).load(std::memory_order_relaxed) != number + 1) {
      lane.garbled = true;
      break;
    }
    wire::Segment& segment = shared_.segment(lane.segment, segment_count_);
    // In this order: what is committed is final once `next` is set.
    uint32_t next = segment.next.load(std::memory_order_acquire);
    uint32_t committed =
        std::min(segment.committed.load(std::memory_order_acquire), wire::kSegmentWords);
    if (!lane.garbled)
      lane.at = read_words(lane, image, segment.words, lane.at, committed, limit_tick);
    if (lane.at < committed && !lane.garbled) {
      all_read = false;
      break;
    }
    if (next == wire::kNoSegment) break;
    return_segment(lane.segment);
    if (lane.ahead_segment == lane.segment) lane.ahead_segment = 0;
    lane.segment = next;
    lane.at = 0;
  }
  if (lane.garbled && !lane.counted) {
    lane.counted = true;
    ++image.garbled_lanes;
  }
  if (all_read && state == static_cast<uint32_t>(wire::LaneState::kEnded)) free_lane(number);
}

// They may change while we look at them.
static const uint64_t* copy_words(const uint64_t* shared_words, uint32_t count) {
  thread_local uint64_t words[wire::kMaxExtendedWords];
  for (uint32_t i = 0; i < count; ++i)
    words[i] = __atomic_load_n(&shared_words[i], __ATOMIC_RELAXED);
  return words;
}

// False if it is not a possible definition.
bool Drain::define_stack(DrainedImage& image, const uint64_t* words, uint32_t count) {
  uint32_t id = static_cast<uint32_t>(words[1] >> 32), owner = static_cast<uint32_t>(words[1]);
  if (count < 3 || id == 0 || owner >= id) return false;
  image.stacks.add(id, owner, static_cast<uint32_t>(words[2]),
                   static_cast<uint32_t>(words[2] >> 32),
                   static_cast<uint32_t>(wire::extended_payload(words[0])), {words + 3, count - 3});
  if (image.stacks.bytes() > wire::kMaxChunkBytes / 4)
    file_->append(ChunkType::kStacks, image.stacks.finish(image.id), 0, 0, true);
  return true;
}

// Up to where the words make sense; what is wrong there read_words() will find.
uint32_t Drain::define_ahead(DrainedImage& image, const uint64_t* words, uint32_t at,
                             uint32_t end) {
  using namespace wire;
  while (at < end) {
    uint64_t word = __atomic_load_n(&words[at], __ATOMIC_RELAXED), tag = word_tag(word);
    uint64_t count = 0;
    if (tag == kTagExtended) count = extended_words(word);
    if (tag == kTagAlloc || tag == kTagReallocEnd) count = 2;
    if (count == 0 && tag <= kTagLastFree) count = 1;
    if (count == 0 || at + count > end) break;
    if (tag == kTagExtended && extended_kind(word) == kStack) {
      const uint64_t* own = copy_words(words + at, static_cast<uint32_t>(count));
      if (!define_stack(image, own, static_cast<uint32_t>(count))) break;
    }
    at += static_cast<uint32_t>(count);
  }
  return at;
}

void Drain::read_ahead(uint32_t number) {
  DrainedImage* image = open_lane(number);
  Lane& lane = lanes_[number];
  if (!image || lane.garbled || lane.segment == 0) return;
  bool is_ahead =
      lane.ahead_segment != 0 && (lane.ahead_segment != lane.segment || lane.ahead_at > lane.at);
  if (!is_ahead) lane.ahead_segment = lane.segment, lane.ahead_at = lane.at;
  // The segments may be linked in a circle.
  for (uint32_t steps = 0; steps < segment_count_; ++steps) {
    if (lane.ahead_segment > segment_count_ ||
        shared_.segment_owner(lane.ahead_segment).load(std::memory_order_relaxed) != number + 1)
      break;
    wire::Segment& segment = shared_.segment(lane.ahead_segment, segment_count_);
    uint32_t next = segment.next.load(std::memory_order_acquire);
    uint32_t committed =
        std::min(segment.committed.load(std::memory_order_acquire), wire::kSegmentWords);
    lane.ahead_at = define_ahead(*image, segment.words, lane.ahead_at, committed);
    if (lane.ahead_at < committed || next == wire::kNoSegment) break;
    lane.ahead_segment = next;
    lane.ahead_at = 0;
  }
}

uint32_t Drain::read_words(Lane& lane, DrainedImage& image, const uint64_t* words, uint32_t at,
                           uint32_t end, uint64_t limit_tick) {
  using namespace wire;
  const uint32_t begin = at;
  while (at < end) {
    uint64_t word = __atomic_load_n(&words[at], __ATOMIC_RELAXED);
    uint64_t tag = word_tag(word);
    bool may_be_aligned = tag == kTagAlloc || (tag == kTagExtended && extended_kind(word) == kWide);
    if (lane.alignment != 0 && !may_be_aligned) [[unlikely]] {
      lane.garbled = true;
      return end;
    }
    if (tag == kTagExtended) {
      uint64_t count = extended_words(word);
      if (count == 0 || at + count > end) {
        lane.garbled = true;
        return end;
      }
      bool is_defined = extended_kind(word) == kStack && lane.ahead_segment != 0 &&
                        (lane.ahead_segment != lane.segment || at < lane.ahead_at);
      if (is_defined) {
        at += static_cast<uint32_t>(count);
        continue;
      }
      bool stop = false;
      if (!read_extended(lane, image, words + at, static_cast<uint32_t>(count), limit_tick,
                         &stop)) {
        lane.garbled = true;
        return end;
      }
      if (stop) return at;
      at += static_cast<uint32_t>(count);
      continue;
    }
    uint64_t tick = lane.tick + word_ticks(word);
    if (tick >= limit_tick) return at;
    open_run(lane, image);
    uint64_t when = told(tick);
    uint64_t address = word_address(word);
    if (tag == kTagAlloc || tag == kTagReallocEnd) {
      if (at + 2 > end) {
        lane.garbled = true;
        return end;
      }
      uint64_t block = __atomic_load_n(&words[at + 1], __ATOMIC_RELAXED);
      Op op = block_op(block);
      if (op > Op::kNewArrayAligned || !put_alignment(lane, Kind::kAlloc, op, when)) {
        lane.garbled = true;
        return end;
      }
      uint8_t code = tag == kTagAlloc ? static_cast<uint8_t>(op) : code_of(Kind::kReallocEnd, op);
      encoder_.block(code, when, address, block_size(block), raw(block_stack(block)));
      events_ += tag == kTagAlloc;
      at += 2;
    } else if (tag <= kTagLastFree) {
      uint8_t code = tag == kTagReallocBegin
                         ? kCodeReallocBegin
                         : static_cast<uint8_t>(kCodeFirstFree + tag - kTagFirstFree);
      if (tag != kTagReallocBegin) put_free_stack(lane, when);
      encoder_.release(code, when, address);
      ++events_;
      at += 1;
    } else {
      lane.garbled = true;
      return end;
    }
    lane.tick = tick;
  }
  if (at > begin) image.last_tick = std::max(image.last_tick, told(lane.tick));
  return at;
}

// For an event, and what may have to be said of it before.
void Drain::open_run(Lane& lane, DrainedImage& image) {
  if (encoder_.events() + 2 > wire::kMaxChunkEvents) write_events();
  if (run_open_) return;
  encoder_.start_run(image.id, lane.thread, told(lane.tick));
  run_open_ = true;
}

void Drain::put_free_stack(Lane& lane, uint64_t tick) {
  if (lane.free_stack == StackId::kNone) [[likely]]
    return;
  encoder_.free_stack(tick, raw(lane.free_stack));
  lane.free_stack = StackId::kNone;
}

// False if the event is not one that asks for an alignment, but is said to.
bool Drain::put_alignment(Lane& lane, wire::Kind kind, wire::Op op, uint64_t tick) {
  if (lane.alignment == 0) [[likely]]
    return true;
  if (kind != wire::Kind::kAlloc || !wire::is_aligned(op)) return false;
  encoder_.alignment(tick, lane.alignment);
  lane.alignment = 0;
  return true;
}

// As a record, and as an event that tells where among the thread's calls it was.
void Drain::put_mark(Lane& lane, DrainedImage& image, uint64_t tick, wire::MarkKind kind,
                     std::string_view name) {
  open_run(lane, image);
  encoder_.mark(tick, ++image.marks);
  wire::MarkRecord record = {raw(image.id), raw(lane.thread), tick, static_cast<uint64_t>(kind),
                             std::string(name)};
  put(ChunkType::kMarks, record, &marks_);
}

template <typename Record>
void Drain::put(ChunkType type, const Record& record, wire::Packer* records) {
  wire::pack(record, records);
  if (records->result().size() < wire::kMaxChunkBytes / 4) return;
  file_->append(type, records->result(), 0, 0, true);
  records->result().clear();
}

bool Drain::read_extended(Lane& lane, DrainedImage& image, const uint64_t* shared_words,
                          uint32_t count, uint64_t limit_tick, bool* stop) {
  using namespace wire;
  const uint64_t* words = copy_words(shared_words, count);
  uint64_t payload = extended_payload(words[0]);
  switch (extended_kind(words[0])) {
    case kTime:
      if (count != 2) return false;
      lane.tick = std::max(lane.tick, words[1]);
      return true;
    case kWide: {
      if (count != 5 || words[4] > UINT32_MAX) return false;
      uint64_t tick = std::max(words[1], lane.tick);
      if (tick >= limit_tick) {
        *stop = true;
        return true;
      }
      Kind kind = static_cast<Kind>(payload >> 8);
      Op op = static_cast<Op>(payload & 0xff);
      bool makes_block = kind == Kind::kAlloc || kind == Kind::kReallocEnd;
      if (kind > Kind::kReallocEnd || (makes_block && op > Op::kNewArrayAligned) ||
          (kind == Kind::kFree && (op < Op::kFree || op > Op::kDeleteArrayAligned)))
        return false;
      open_run(lane, image);
      uint64_t when = told(tick);
      if (!put_alignment(lane, kind, op, when)) return false;
      if (kind == Kind::kFree) put_free_stack(lane, when);
      if (makes_block)
        encoder_.block(code_of(kind, op), when, words[2], words[3],
                       static_cast<uint32_t>(words[4]));
      else
        encoder_.release(code_of(kind, op), when, words[2]);
      events_ += kind != Kind::kReallocEnd;
      lane.tick = tick;
      return true;
    }
    case kFreeStack:
      if (payload > UINT32_MAX) return false;
      lane.free_stack = StackId{static_cast<uint32_t>(payload)};
      return true;
    case kCallCycles:
      open_run(lane, image);
      encoder_.call_time(told(lane.tick), payload);
      return true;
    case kPassedOver:
      open_run(lane, image);
      encoder_.passed(told(lane.tick));
      return true;
    case kAlignment:
      if (payload == 0 || payload > kMaxAlignmentLog2) return false;
      lane.alignment = static_cast<uint8_t>(payload);
      return true;
    case kMappingEvent: {
      if (count != 6 || words[4] > UINT32_MAX) return false;
      uint64_t tick = std::max(words[1], lane.tick), op = payload & 0xff;
      if (op < static_cast<uint64_t>(Op::kMmap) || op >= kOps) return false;
      if (tick >= limit_tick) {
        *stop = true;
        return true;
      }
      MappingRecord record = {raw(image.id), raw(lane.thread), told(tick), op,      payload >> 8,
                              words[2],      words[3],         words[5],   words[4]};
      pack(record, &mappings_);
      lane.tick = tick;
      return true;
    }
    case kMarkEvent: {
      uint64_t kind = payload & 0xff, bytes = payload >> 8;
      if (kind == 0 || kind >= kMarkKinds || bytes > kMostMarkBytes || count != 2 + (bytes + 7) / 8)
        return false;
      uint64_t tick = std::max(words[1], lane.tick);
      if (tick >= limit_tick) {
        *stop = true;
        return true;
      }
      put_mark(lane, image, told(tick), static_cast<MarkKind>(kind),
               {reinterpret_cast<const char*>(words + 2), bytes});
      lane.tick = tick;
      return true;
    }
    case kCpuSample: {
      if (count != 3) return false;
      uint64_t tick = std::max(words[1], lane.tick);
      if (tick >= limit_tick) {
        *stop = true;
        return true;
      }
      CpuRecord record = {raw(image.id),
                          raw(lane.thread),
                          tick,
                          payload & UINT32_MAX,
                          std::min(words[2], kMostCpuNanoseconds),
                          payload >> 32};
      put(ChunkType::kCpu, record, &cpu_);
      lane.tick = tick;
      return true;
    }
    case kStack:
      return define_stack(image, words, count);
    case kModule: {
      if (count < 5) return false;
      uint64_t id_bytes = words[4] >> 16 & 0xffff, path_bytes = words[4] & 0xffff;
      uint64_t id_words = (id_bytes + 7) / 8, path_words = (path_bytes + 7) / 8;
      if (count != 5 + id_words + path_words) return false;
      ModuleRecord record;
      record.image = raw(image.id);
      record.start = words[1];
      record.end = words[2];
      record.bias = words[3];
      record.generation = words[4] >> 32;
      record.build_id.assign(reinterpret_cast<const char*>(words + 5), id_bytes);
      record.path.assign(reinterpret_cast<const char*>(words + 5 + id_words), path_bytes);
      if (record.path.empty()) record.path = image.executable;
      // As it was given to dlopen or is in LD_LIBRARY_PATH. The vdso has a name without a folder.
      if (record.path[0] != '/' && record.path.find('/') != std::string::npos)
        record.path = absolute_path(image.pid, image.folder, record.path, record.start);
      pack(record, &modules_);
      return true;
    }
    case kThreadName: {
      if (count != 3) return false;
      wire::ThreadRecord& thread = image.threads[raw(lane.thread) - 1];
      const char* name = reinterpret_cast<const char*>(words + 1);
      std::string fresh(name, strnlen(name, 16));
      if (fresh != thread.name) {
        thread.name = fresh;
        pack(thread, &threads_);
      }
      return true;
    }
    case kNotFollowed: {
      const char* name = reinterpret_cast<const char*>(words + 1);
      NotFollowed other = {std::string(name, strnlen(name, (count - 1) * 8)), payload};
      auto& known = image.not_followed;
      if (std::find(known.begin(), known.end(), other) == known.end()) known.push_back(other);
      return true;
    }
  }
  return false;
}

void Drain::write_events() {
  if (encoder_.events() == 0) return;
  uint64_t first = encoder_.first_tick(), last = encoder_.last_tick();
  file_->append(ChunkType::kEvents, encoder_.finish(), first, last);
  run_open_ = false;
}

void Drain::flush(uint64_t limit_tick) {
  auto write = [&](ChunkType type, wire::Packer& records) {
    if (records.result().empty()) return;
    file_->append(type, records.result(), limit_tick, limit_tick, true);
    records.result().clear();
  };
  write(ChunkType::kThread, threads_);
  write(ChunkType::kModule, modules_);
  for (auto& image : images_)
    if (image && !image->stacks.empty())
      file_->append(ChunkType::kStacks, image->stacks.finish(image->id), limit_tick, limit_tick,
                    true);
  write(ChunkType::kMappings, mappings_);
  write(ChunkType::kMarks, marks_);
  write(ChunkType::kCpu, cpu_);
  write_events();
}

void Drain::return_segment(uint32_t number) {
  wire::Control& control = shared_.control();
  shared_.segment_owner(number).store(0, std::memory_order_release);
  control.segments_returned.fetch_add(1, std::memory_order_relaxed);
  // The lowest numbers first, so that only as much memory is touched as there is backlog.
  if (number <= control.next_segment_hint.load(std::memory_order_relaxed))
    control.next_segment_hint.store(number - 1, std::memory_order_relaxed);
}

void Drain::free_lane(uint32_t number) {
  wire::LaneSlot& slot = shared_.lane(number);
  uint32_t owner = slot.owner.load(std::memory_order_relaxed) - 1;
  if (owner < wire::kImages && images_[owner])
    images_[owner]->lost += slot.dropped.load(std::memory_order_relaxed);
  if (lanes_[number].segment != 0 && lanes_[number].segment <= segment_count_ &&
      shared_.segment_owner(lanes_[number].segment).load() == number + 1)
    return_segment(lanes_[number].segment);
  lanes_[number] = {};
  slot.first.store(wire::kNoSegment, std::memory_order_relaxed);
  slot.dropped.store(0, std::memory_order_relaxed);
  slot.state.store(0, std::memory_order_relaxed);
  slot.owner.store(0, std::memory_order_release);
}

std::unique_ptr<DrainedImage> Drain::take_out(uint32_t slot) {
  DrainedImage& image = *images_[slot];
  for (uint32_t number = 0; number < wire::kLanes; ++number) {
    wire::LaneSlot& lane = shared_.lane(number);
    if (lane.owner.load(std::memory_order_acquire) != slot + 1) continue;
    if (lane.state.load(std::memory_order_acquire) != 0) read_lane(number, UINT64_MAX);
    // read_lane() has freed it if the thread had ended.
    if (lane.owner.load(std::memory_order_acquire) == slot + 1) free_lane(number);
    // A segment that was taken but not yet reached from the lane when the process died.
    for (uint32_t s = 1; s <= segment_count_; ++s)
      if (shared_.segment_owner(s).load(std::memory_order_relaxed) == number + 1) return_segment(s);
  }
  image.lost += shared_.image(slot).dropped.load(std::memory_order_relaxed);
  flush(image.last_tick);
  return std::move(images_[slot]);
}

}  // namespace malloscope::collect
