// SPDX-License-Identifier: Apache-2.0

#include "wire/decode.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace malloscope::wire {

EventDecoder::EventDecoder()
    : predictor_(std::make_unique<Predictor>()), zstd_(ZSTD_createDCtx()) {}
EventDecoder::~EventDecoder() { ZSTD_freeDCtx(zstd_); }

std::optional<std::vector<uint8_t>> decompress(ZSTD_DCtx* context, std::span<const uint8_t> stored,
                                               uint64_t raw_bytes) {
  if (raw_bytes > kMaxChunkBytes) return std::nullopt;
  std::vector<uint8_t> raw(raw_bytes);
  size_t size = ZSTD_decompressDCtx(context, raw.data(), raw.size(), stored.data(), stored.size());
  if (ZSTD_isError(size) || size != raw_bytes) return std::nullopt;
  return raw;
}

bool EventDecoder::decode(std::span<const uint8_t> payload, DecodedChunk* out) {
  if (!begin(payload)) return false;
  out->events.reserve(out->events.size() + columns_[kTagColumn].size());
  while (more())
    if (!part(UINT32_MAX, out)) return false;
  return true;
}

bool EventDecoder::begin(std::span<const uint8_t> payload) {
  runs_.clear();
  run_ = 0;
  Unpacker in(payload);
  uint64_t run_count = in.number();
  if (run_count > kMaxChunkEvents) return false;
  uint64_t total = 0;
  for (uint64_t i = 0; i < run_count && in.ok(); ++i) {
    uint64_t image = in.number(), thread = in.number(), events = in.number(), tick = in.number();
    total += events;
    if (image > UINT32_MAX || thread > UINT32_MAX || events > kMaxChunkEvents ||
        total > kMaxChunkEvents)
      return false;
    runs_.push_back({{ImageId{static_cast<uint32_t>(image)},
                      ThreadId{static_cast<uint32_t>(thread)}, 0, static_cast<uint32_t>(events)},
                     tick});
  }
  for (auto& column : columns_) {
    uint64_t size = in.number(), stored = in.number();
    std::span<const uint8_t> bytes = in.bytes(stored);
    if (!in.ok() || stored > size) return false;
    if (stored == size) {
      column.assign(bytes.begin(), bytes.end());
    } else {
      auto plain = decompress(zstd_, bytes, size);
      if (!plain) return false;
      column = std::move(*plain);
    }
  }
  if (!in.done() || columns_[kTagColumn].size() != total || columns_[kTimeColumn].size() != total)
    return false;

  for (int i = 0; i < kColumns; ++i) {
    at_[i] = columns_[i].data();
    end_[i] = at_[i] + columns_[i].size();
  }
  predictor_->start_chunk();
  return more() || all_used();
}

bool EventDecoder::all_used() const {
  for (int i = 0; i < kColumns; ++i)
    if (at_[i] != end_[i]) return false;
  return true;
}

bool EventDecoder::part(uint32_t least, DecodedChunk* out) {
  Run& run = runs_[run_];
  if (run.decoded == 0) predictor_->start_run();
  if (!decode_some(&run, least, out)) return false;
  if (run.decoded == run.run.count) ++run_;
  return more() || all_used();
}

bool EventDecoder::decode_some(Run* whole, uint32_t least, DecodedChunk* out) {
  Predictor& p = *predictor_;
  // Copies, which nothing else can change, stay in registers.
  DecodedRun run = whole->run;
  uint64_t tick = whole->tick;
  const uint8_t* at[kColumns];
  std::copy(std::begin(at_), std::end(at_), at);
  const uint8_t* const* end = end_;
  run.first = static_cast<uint32_t>(out->events.size());
  bool ok = true;
  auto varint = [&](Column column) {
    uint64_t value = 0;
    const uint8_t* next = get_varint(at[column], end[column], &value);
    if (next) {
      at[column] = next;
    } else {
      ok = false;
    }
    return value;
  };
  auto address = [&] {
    uint64_t code = varint(kAddressColumn);
    if (code & 1) return varint(kAddressColumn);
    uint64_t result = p.previous_address() + static_cast<uint64_t>(unzigzag(code >> 1)) * 16;
    p.wrote_address(result);
    return result;
  };
  auto stack = [&](bool predicted) {
    uint32_t id = p.next_stack();
    if (!predicted) {
      uint64_t coded = varint(kStackColumn);
      if (coded > uint64_t{UINT32_MAX} + 1) ok = false;
      id = static_cast<uint32_t>(coded == 0 ? p.highest_stack() + 1 : coded - 1);
    }
    p.saw_stack(id);
    return StackId{id};
  };
  StackId free_stack = whole->free_stack;
  uint64_t alignment = whole->alignment;
  uint32_t i = whole->decoded;
  uint32_t enough = least < run.count - i ? i + least : run.count;
  for (; i < enough && ok; ++i) {
    uint8_t tag = *at[kTagColumn]++, code = tag & kCodeMask;
    uint8_t passed = *at[kTimeColumn]++;
    tick += passed == kLate ? varint(kLateColumn) : passed;
    Event& event = out->events.emplace_back();
    event.tick = tick;
    event.thread = run.thread;
    event.image = run.image;
    if (code < kCodeReallocBegin) {
      event.kind = code < kCodeReallocEnd ? Kind::kAlloc : Kind::kReallocEnd;
      event.op = code == kCodeReallocEnd        ? Op::kRealloc
                 : code == kCodeReallocarrayEnd ? Op::kReallocarray
                                                : static_cast<Op>(code);
      event.other = std::exchange(alignment, 0);
      event.stack = stack(tag & kStackPredicted);
      if (tag & kSizePredicted) {
        event.size = p.next_size(raw(event.stack));
      } else {
        event.size = varint(kSizeColumn);
        p.saw_size(raw(event.stack), event.size);
      }
      event.address = tag & kAddressIsLastFreed ? p.last_freed() : address();
      p.saw_block(event.address);
    } else if (tag == kFreeStackTag || tag == kSameFreeStackTag) {
      free_stack = stack(tag == kSameFreeStackTag);
      out->events.pop_back();  // It belongs to the next one.
    } else if (tag == kCallTimeTag) {
      event.kind = Kind::kCallTime;
      event.size = varint(kSizeColumn);
    } else if (tag == kMarkTag) {
      event.kind = Kind::kMark;
      event.size = varint(kSizeColumn);
    } else if (tag == kPassedTag) {
      event.kind = Kind::kPassed;
    } else if (tag == kAlignmentTag) {
      alignment = varint(kSizeColumn);
      if (alignment == 0 || alignment > kMaxAlignmentLog2 || i + 1 == run.count ||
          !is_aligned(static_cast<Op>(*at[kTagColumn] & kCodeMask)))
        return false;
      out->events.pop_back();
    } else if (code >= kCodeFirstFreeOfNull) {
      if (tag != code) return false;
      event.kind = Kind::kFree;
      event.op = static_cast<Op>(code - kCodeFirstFreeOfNull + kCodeFirstFree);
    } else {
      event.kind = code == kCodeReallocBegin ? Kind::kReallocBegin : Kind::kFree;
      event.op = code == kCodeReallocBegin ? Op::kRealloc : static_cast<Op>(code);
      uint8_t age = tag >> kAgeShift;
      event.address = age == kAgeUnknown ? address() : p.made(age);
      p.saw_free(event.address);
      if (event.kind == Kind::kFree) event.stack = std::exchange(free_stack, StackId::kNone);
    }
    if (i + 1 == enough && enough < run.count && *at[kTimeColumn] == 0) ++enough;
  }
  whole->tick = tick;
  whole->decoded = i;
  whole->free_stack = free_stack;
  whole->alignment = alignment;
  std::copy(std::begin(at), std::end(at), at_);
  run.count = static_cast<uint32_t>(out->events.size()) - run.first;
  if (ok && run.count > 0) out->runs.push_back(run);
  return ok;
}

}  // namespace malloscope::wire
