// SPDX-License-Identifier: Apache-2.0
// Two allocations in a row usually share most of their stack: main() and
// whatever it called have not returned in between. Unwinding those frames again
// costs a rule and two or three loads each. Checking that they are the ones we
// saw last time costs one compared word each.
//
// The memo holds a stack as it was captured at some time, root first. A new walk
// goes from the leaf outwards; at each frame it looks whether the memo has a
// frame in that place, with the same pc and sp. One such frame proves nothing
// about those outside it:
//
//     main -> load  -> parse -> malloc
//     main -> store -> parse -> malloc     // Same slot, same return into parse.
//
// so we also check that every word that was loaded on the way out from there
// still holds what it held. That is enough. A step is determined by the frame's
// rule, which is a function of its key, by sp, by fp if the rule reads it, and by
// the words it loads. If two walks agree in a frame on (key, slot, sp) and, where
// it matters, on fp, they use the same rule, load from the same addresses, and,
// those words being equal, agree in the next frame too; so on to the root.
//
//     frame i ---- words: [saved fp] [return address] [cfa, if it is loaded] ----> frame i - 1
//
// Whether fp matters in frame i (fp_live): if its rule reads it; or if the rule
// leaves it alone and it matters in frame i - 1. Where it does not matter, the
// remembered fp may be stale, and is not used.
//
// A frame that was popped and pushed again with the same words is the same call
// path. So a longjmp, an exception or a switched stack needs no notice, and the
// memo need not be the last stack, only a true one.
//
// Words outside the thread's own stack are checked from the inside out, each
// before the next is loaded: an address is then one that the full walk, too, would
// load from at that point, which it is allowed to (stack_reader.h); it is asked
// for again if the program's maps have changed.
//
// Not all frames can be kept: inside of a slow frame (slow_step.h) words do not
// tell the whole story, and a walk that went astray may go elsewhere next time.
//
// The leaf cache. Programs that go to and fro between a few stacks make the memo
// forget the one and learn the other all the time. The leaf cache keeps, for many
// stacks, the words of their inner ends, out to a frame (the anchor) that the memo
// has too. After one exact step, a leaf whose caller, words and anchor are the
// present ones tells the stack by the argument above; nothing is learnt or
// forgotten. If the memo's path out to the anchor is the one the leaf was met with,
// the id is at hand; if it is another, the path hash is put together from both
// parts, and the finder asked for it.
//
//     root ---------- anchor ---------- caller  leaf
//     [ checked by the memo ][ by the leaf's words ][ one step ]
//
// A far anchor serves as long as the memo forgets what lies between, a near one as
// long as the program reaches the leaf by many ways. So at first it is as far out
// as there is room for words; once that has been found changed, it is where the
// walk met the memo. The cache takes 140 KiB, so a thread must capture 1000 stacks
// first.
//
// Programs do the same things again in the same order. So before anything is looked
// up, the leaf that came next last time is tried (recall): if the hook was called
// from there and all its words hold, not even the one step is needed.

#include "unwind/stack_memo.h"

#include <cstring>

#include "unwind/counts.h"
#include "unwind/rule_cache.h"

namespace malloscope::unwind {

void StackMemo::begin(Arena& arena, StackBounds bounds, StackFinder finder) {
  arena_ = &arena;
  finder_ = finder;
  reader_.set_bounds(bounds);
  clear();
}

void StackMemo::clear() {
  forget_frames();
  cut_slot_ = 0;
  leaves_.clear();
}

void StackMemo::forget_frames() {
  size_ = valid_ = own_words_ = last_end_ = 0;
  uneasy_ = root_unknown_ = root_stopped_ = false;
}

// The state of the process's code has changed, or may have.
MSCOPE_SLOW bool StackMemo::refresh(Epoch now) {
  if (!arena_) return false;
  if (now.unloading()) now = epoch_here();
  if (now.generation() != epoch_.generation()) {
    clear();
  } else if (now != epoch_ || now.unloading() || frames_ == nullptr ||
             (root_unknown_ && is_known(lookup_pc(frames_[0].key)))) {
    forget_frames();
  }
  epoch_ = now;
  uneasy_ = now.unloading() || root_unknown_;
  return frames_ || grow();
}

MSCOPE_FAST Rule StackMemo::rule_of(uintptr_t key) {
  if (!epoch_.unloading()) [[likely]] {
    Rule rule = rule_cache.find(key, epoch_.generation());
    if (rule.kind() != Rule::kNone) [[likely]]
      return rule;
  }
  return find_rule_cached(key, epoch_);
}

// How many frames, of the first `inside`, do not depend on the given word.
uint32_t StackMemo::frames_outside(uint32_t word, uint32_t inside) const {
  uint32_t low = 0;
  while (low < inside) {
    uint32_t middle = (low + inside) / 2;
    if (frames_[middle].word_end > word) {
      inside = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

Captured StackMemo::capture(Start start) {
  StackId id = recall(start);
  if (id == StackId::kNone) return walk(start);
  Captured captured;
  captured.id = id;
  captured.generation = epoch_.generation();
  return captured;
}

Captured StackMemo::walk(Start start) {
  Epoch now = epoch();
  if (now != epoch_ || uneasy_ || !frames_) [[unlikely]] {
    if (!refresh(now)) return no_stack(now);
  }
  reader_.enter(start.slot);
  last_was_cut_ = leaf_moved_ = false;
  unnamed_leaf_ = nullptr;
  Captured captured;
  if (cut_slot_) [[unlikely]] {
    if (is_cut_again(start, &captured)) return captured;
  }

  State at = first_state(start);
  uint32_t fresh = 0, uncertified = 0, base = 0;
  uint32_t limit = valid_;  // Frames from here on are known not to hold.
  Ending ending;
  for (;;) {
    if (at.key == 0) {
      ending = Ending::kZero;
      break;
    }
    if (fresh == 1 && leaves_.is_on() && has_leaf(at, &captured)) return captured;
    Rule rule;
    uint32_t i = hint(at.slot);
    if (i < valid_ && frames_[i].slot == at.slot && frames_[i].key == at.key &&
        frames_[i].sp == at.sp) {
      const Frame& met = frames_[i];
      if (i < limit && (!met.fp_live || met.fp == at.fp)) {
        uint32_t bad = first_bad(met.word_end);
        if (bad == kAllHold) {
          base = i + 1;
          ending = Ending::kMet;
          break;
        }
        limit = frames_outside(bad, i);
      }
      rule = met.rule;
    } else {
      rule = rule_of(at.key);
    }
    if (size_ + fresh == capacity_ && !grow()) [[unlikely]] {
      ending = Ending::kTooDeep;
      break;
    }
    Frame& frame = frames_[capacity_ - ++fresh];
    frame.key = at.key;
    frame.slot = at.slot;
    frame.sp = at.sp;
    frame.fp = at.fp;
    frame.rule = rule;
    if (rule.kind() >= Rule::kEnd) [[unlikely]] {
      if (rule.kind() == Rule::kSlow && slow_step(&at, uncertified == 0)) {
        uncertified = fresh;
        continue;
      }
      ending = rule.kind() == Rule::kEnd       ? Ending::kRoot
               : rule.kind() == Rule::kStop    ? Ending::kNoCfi
               : rule.kind() == Rule::kUnknown ? Ending::kUnknown
                                               : Ending::kBroken;
      break;
    }
    if (!step(&at, rule, reader_)) [[unlikely]] {
      ending = Ending::kBroken;
      break;
    }
  }
  stepped_ = fresh;
  if (ending == Ending::kTooDeep) [[unlikely]]
    return too_deep(start);
  if (base + fresh == 0) [[unlikely]]
    return no_stack(now);
  if (fresh > 0) append(base, fresh, uncertified, ending, at);
  if (++captures_ == kLeafCacheAfter) leaves_.turn_on(*arena_);
  captured = result(base, fresh);
  if (captured.id != StackId::kNone && captured.id == last_met_ && leaves_.is_on())
    expect_again(captured.id);
  last_met_ = captured.id;
  return captured;
}

// Puts the walk's `fresh` frames onto the first `base` frames of the memo. All but
// the innermost `uncertified` ones can be met again.
void StackMemo::append(uint32_t base, uint32_t fresh, uint32_t uncertified, Ending ending,
                       const State& beyond) {
  uint32_t word_end = base > 0 ? frames_[base - 1].word_end : 0;
  if (own_words_ > word_end) own_words_ = word_end;
  size_ = base + fresh;
  // Should a signal handler jump out of here, no half-written frame is believed.
  valid_ = base;
  uint32_t valid = size_ - uncertified;
  if (word_end + 3 * fresh > word_capacity_ && !grow_words(word_end + 3 * fresh)) valid = base;
  if (base == 0) {
    root_stopped_ = ending >= Ending::kNoCfi;
    root_unknown_ = ending == Ending::kUnknown;
    uneasy_ = root_unknown_ || epoch_.unloading();
    if (ending == Ending::kBroken) valid = 0;
  }

  uint64_t hash =
      base > 0 ? frames_[base - 1].hash : path_seed(epoch_.generation(), false, root_stopped_);
  const Frame* walked = frames_ + capacity_ - fresh;
  for (uint32_t i = base; i < size_; ++i, ++walked) {
    // Both run inwards, and the copy never overtakes what is still to be copied.
    Frame& frame = frames_[i];
    frame = *walked;
    hash = extended(hash, frame.key);
    frame.hash = hash;
    frame.owner = frame.self = StackId::kNone;
    keys_[i] = frame.key;
    if (i >= valid) continue;

    State outer = beyond;
    bool outer_fp_live = false;
    if (i > 0) {
      const Frame& caller = frames_[i - 1];
      outer = {caller.key, caller.slot, caller.sp, caller.fp};
      outer_fp_live = caller.fp_live;
    }
    frame.word_end = word_end;
    if (i > 0 || ending == Ending::kZero) {
      add_words(frame, outer, outer_fp_live);
      word_end = frame.word_end;
    }
    frame.fp_live = frame.rule.reads_fp() || (frame.rule.passes_fp() && outer_fp_live);
    hint(frame.slot) = static_cast<uint16_t>(i);
  }
  asm volatile("" ::: "memory");
  valid_ = valid;
}

// The words that the step from `frame` to `outer` has loaded, so that from the
// last to the first they are in the order of the loads.
MSCOPE_FAST void StackMemo::add_words(Frame& frame, const State& outer, bool outer_fp_live) {
  uint32_t& end = frame.word_end;
  auto add = [&](uintptr_t address, uintptr_t value) {
    words_[end] = {address, value};
    if (own_words_ == end && reader_.is_own(address)) ++own_words_;
    ++end;
  };
  Rule rule = frame.rule;
  if (outer_fp_live) {
    if (rule.kind() == Rule::kSignal) {
      add(frame.sp + arch::kSignalFp, outer.fp);
    } else if (rule.kind() == Rule::kFpDeref) {
      add(frame.fp, outer.fp);
    } else if (rule.fp_offset() != 0) {
      add(outer.sp + rule.fp_offset(), outer.fp);
    }
  }
  add(outer.slot, pc_of(outer.key));
  if (rule.kind() == Rule::kSignal) add(frame.sp + arch::kSignalSp, outer.sp);
  if (rule.kind() == Rule::kFpDeref) add(frame.fp + rule.offset(), outer.sp);
}

// There is no memory, or the hook was called from nowhere.
MSCOPE_SLOW Captured StackMemo::no_stack(Epoch now) {
  last_end_ = 0;
  Captured captured;
  captured.hash = named(path_seed(now.generation(), false, true));
  captured.generation = now.generation();
  captured.stopped = true;
  return captured;
}

MSCOPE_FAST Captured StackMemo::result(uint32_t base, uint32_t fresh) {
  Captured captured;
  last_base_ = base;
  last_end_ = base + fresh;
  captured.generation = epoch_.generation();
  captured.stopped = root_stopped_;
  const Frame& leaf = frames_[last_end_ - 1];
  captured.hash = named(leaf.hash);
  if (fresh == 0 && leaf.self != StackId::kNone) {
    captured.id = leaf.self;
    return captured;
  }
  // Frames whose stack was never defined (it was dropped) are told again.
  uint32_t kept = base;
  while (kept > 0 && frames_[kept - 1].owner == StackId::kNone) --kept;
  captured.kept = kept;
  if (kept > 0) captured.owner = frames_[kept - 1].owner;
  captured.fresh = {keys_ + kept, last_end_ - kept};
  first_unnamed_ = kept;
  return captured;
}

void StackMemo::name(StackId id) {
  if (last_was_cut_) {
    cut_id_ = id;
    return;
  }
  if (last_end_ == 0) return;
  for (uint32_t i = first_unnamed_; i < last_end_; ++i) frames_[i].owner = id;
  frames_[last_end_ - 1].self = id;
  if (unnamed_leaf_ && unnamed_leaf_->anchor < valid_) {
    name_leaf(unnamed_leaf_, id);
  } else if (leaves_.is_on()) {
    remember_leaf(id);
  }
}

// kPathStep to the power of n.
static constexpr auto kPathSteps = [] {
  struct {
    uint64_t power[Leaf::kWords + 2];
  } table = {};
  uint64_t power = 1;
  for (uint64_t& entry : table.power) {
    entry = power;
    power *= kPathStep;
  }
  return table;
}();

// The memo itself has this stack, again; next time, recall() shall.
void StackMemo::expect_again(StackId id) {
  if (last_end_ < 2) return;
  const Frame &inner = frames_[last_end_ - 1], &caller = frames_[last_end_ - 2];
  Leaf* leaf = leaves_.find(inner.key, inner.slot, inner.fp,
                            {caller.key, caller.slot, caller.sp, caller.fp}, &leaf_moved_);
  if (leaf && leaf->id == id) {
    leaves_.hit(leaf);
  } else {
    remember_leaf(id);
  }
}

// The walk has made one step, from the innermost frame to `caller`.
MSCOPE_FAST bool StackMemo::has_leaf(const State& caller, Captured* captured) {
  const Frame& inner = frames_[capacity_ - 1];
  Leaf* leaf = leaves_.find(inner.key, inner.slot, inner.fp, caller, &leaf_moved_);
  if (leaf && tell(leaf, captured)) return true;
  leaves_.miss();
  return false;
}

// The leaf's words hold; what it tells of the stack, if the rest holds too.
MSCOPE_FAST bool StackMemo::tell(Leaf* leaf, Captured* captured) {
  if (epoch_.unloading() || !(leaf->whole || has_anchor_of(*leaf))) return false;
  captured->hash = hash_of(*leaf);
  if (!leaf->whole && frames_[leaf->anchor].hash != leaf->anchor_hash &&
      !learn_id(leaf, captured->hash)) {
    unnamed_leaf_ = leaf;
    return false;
  }
  leaves_.hit(leaf);
  captured->id = leaf->id;
  captured->generation = epoch_.generation();
  captured->stopped = leaf->whole ? leaf->stopped : root_stopped_;
  stepped_ = 1;
  last_end_ = 0;
  return true;
}

uint64_t StackMemo::hash_of(const Leaf& leaf) const {
  if (leaf.whole) return named(leaf.inner_hash);
  return named(frames_[leaf.anchor].hash * kPathSteps.power[leaf.inner_frames] + leaf.inner_hash);
}

// The leaf was met by another way than last time.
bool StackMemo::learn_id(Leaf* leaf, uint64_t hash) {
  StackId id = finder_.find ? finder_.find(finder_.context, hash) : StackId::kNone;
  if (id == StackId::kNone) return false;
  name_leaf(leaf, id);
  return true;
}

void StackMemo::name_leaf(Leaf* leaf, StackId id) {
  leaf->id = id;
  leaf->anchor_hash = frames_[leaf->anchor].hash;
}

void StackMemo::remember_leaf(StackId id) {
  // Its words will be loaded without asking, so they must be on our own stack.
  if (last_end_ < 2 || last_end_ > valid_ || root_unknown_ || epoch_.unloading() ||
      own_words_ < frames_[last_end_ - 1].word_end)
    return;
  const Frame& inner = frames_[last_end_ - 1];
  uint32_t anchor = last_end_ - 2;
  const Frame& caller = frames_[anchor];
  uint32_t nearest = leaf_moved_ && last_base_ > 0 ? last_base_ - 1 : 0;
  while (anchor > nearest && inner.word_end - frames_[anchor - 1].word_end <= Leaf::kWords)
    --anchor;
  bool whole = anchor == 0 && inner.word_end <= Leaf::kWords;
  const Frame& outer = frames_[anchor];
  uint32_t first_word = whole ? 0 : outer.word_end;

  auto has_plain_sp = [](const Frame& frame) { return frame.sp == frame.slot + sizeof(uintptr_t); };
  if (!has_plain_sp(inner) || !has_plain_sp(outer)) return;
  auto distance = [&](uint32_t i) {
    return static_cast<intptr_t>(words_[i].address - inner.slot) / 8;
  };
  for (uint32_t i = first_word; i < inner.word_end; ++i)
    if (distance(i) != static_cast<int16_t>(distance(i))) return;
  Leaf* leaf = leaves_.place(inner.key, {caller.key, caller.slot, caller.sp, caller.fp});
  if (!leaf) return;
  leaf->key = inner.key;
  leaf->slot = inner.slot;
  leaf->fp = inner.fp;
  leaf->fp_live = inner.fp_live;
  leaf->words = 0;
  leaf->word_sum = 0;
  for (uint32_t i = inner.word_end; i-- > first_word; ++leaf->words) {
    leaf->distance[leaf->words] = static_cast<int16_t>(distance(i));
    leaf->word_sum += Leaf::weighed(leaf->words, words_[i].value);
  }
  leaf->anchor = static_cast<uint16_t>(anchor);
  leaf->anchor_slot = outer.slot;
  leaf->anchor_fp = outer.fp;
  leaf->anchor_fp_live = outer.fp_live;
  leaf->anchor_hash = outer.hash;
  leaf->inner_frames = static_cast<uint8_t>(last_end_ - 1 - anchor);
  leaf->whole = whole;
  leaf->inner_hash =
      whole ? inner.hash : inner.hash - outer.hash * kPathSteps.power[leaf->inner_frames];
  leaf->id = id;
  leaf->stopped = root_stopped_;
  leaves_.came(leaf);
}

MSCOPE_SLOW bool StackMemo::slow_step(State* at, bool is_first) {
  if (!full_walk_) full_walk_ = static_cast<FullWalk*>(arena_->take(sizeof(FullWalk)));
  if (!full_walk_) return false;
  if (is_first) full_walk_->forget();
  return full_walk_->step(at, reader_);
}

// Doubles the room. At the limit, what the memo has gives way to the walk.
MSCOPE_SLOW bool StackMemo::grow() {
  if (capacity_ == kMaxFrames) {
    if (size_ == 0) return false;
    --size_;
    if (valid_ > size_) valid_ = size_;
    return true;
  }
  uint32_t capacity = capacity_ ? capacity_ * 2 : kFirstFrames;
  uint32_t hints = capacity * 8 < 8192 ? capacity * 8 : 8192;
  size_t frame_bytes = capacity * sizeof(Frame), key_bytes = capacity * sizeof(uintptr_t);
  auto* memory =
      static_cast<char*>(arena_->take(frame_bytes + key_bytes + hints * sizeof(uint16_t)));
  if (!memory) {
    count(counts.no_memory);
    return false;
  }
  auto* frames = reinterpret_cast<Frame*>(memory);
  auto* keys = reinterpret_cast<uintptr_t*>(memory + frame_bytes);
  if (frames_) {
    // It is full: size_ frames of the memo in front, the walk's behind them.
    uint32_t walked = capacity_ - size_;
    memcpy(frames, frames_, size_ * sizeof(Frame));
    memcpy(frames + capacity - walked, frames_ + size_, walked * sizeof(Frame));
    memcpy(keys, keys_, size_ * sizeof(uintptr_t));
  }
  frames_ = frames;
  keys_ = keys;
  hints_ = reinterpret_cast<uint16_t*>(memory + frame_bytes + key_bytes);
  asm volatile("" ::: "memory");  // First the room, then its size: see append().
  hint_mask_ = hints - 1;
  capacity_ = capacity;
  for (uint32_t i = 0; i < valid_; ++i) hint(frames_[i].slot) = static_cast<uint16_t>(i);
  return true;
}

MSCOPE_SLOW bool StackMemo::grow_words(uint32_t wanted) {
  uint32_t capacity = word_capacity_ ? word_capacity_ : kFirstFrames;
  while (capacity < wanted) capacity *= 2;
  auto* words = arena_->take_array<Word>(capacity);
  if (!words) {
    count(counts.no_memory);
    return false;
  }
  if (words_) memcpy(words, words_, word_capacity_ * sizeof(Word));
  words_ = words;
  word_capacity_ = capacity;
  return true;
}

// Deeper than the limit: we keep the innermost frames only. A recursion that
// is too deep goes on being so, and walking all of it to find that out each time would
// make its every allocation cost a tenth of a millisecond. So as long as captures
// are made from further in than the outermost frame kept (256 frames have at
// least two words each), only those frames are walked, and the whole but once in
// 64 times. A stack may thus stay cut for a while though it has become
// shorter; but it says so.
MSCOPE_SLOW Captured StackMemo::too_deep(Start start) {
  forget_frames();
  count(counts.cut);
  uint32_t room = capacity_ < kCutFrames ? capacity_ : kCutFrames;
  Captured captured = walk_plain(start, reader_, epoch_, {keys_, room});
  cut_slot_ = start.slot + kCutFrames * 2 * sizeof(uintptr_t);
  cut_left_ = 64;
  cut_hash_ = captured.hash;
  cut_id_ = StackId::kNone;
  last_was_cut_ = true;
  return captured;
}

MSCOPE_SLOW bool StackMemo::is_cut_again(Start start, Captured* captured) {
  if (cut_left_-- == 0 || start.slot >= cut_slot_ || cut_slot_ - start.slot > (size_t{1} << 30)) {
    cut_slot_ = 0;
    return false;
  }
  uint32_t room = capacity_ < kCutFrames ? capacity_ : kCutFrames;
  *captured = walk_plain(start, reader_, epoch_, {keys_, room});
  if (!captured->cut) {
    cut_slot_ = 0;
    return false;
  }
  last_was_cut_ = true;
  stepped_ = room;
  if (captured->hash == cut_hash_) {
    captured->id = cut_id_;
  } else {
    cut_hash_ = captured->hash;
    cut_id_ = StackId::kNone;
  }
  return true;
}

}  // namespace malloscope::unwind
