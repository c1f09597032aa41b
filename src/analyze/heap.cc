// SPDX-License-Identifier: Apache-2.0
// Every byte that is live belongs to exactly one block of one image. All totals
// follow from keeping that true at every event; two things need a thought.
//
// A reallocation moves a block from the stack that owned it to the stack of the
// call: the new owner gets its growth as allocated bytes, and in every image
//
//     allocated - freed = live,     allocations - frees = live blocks
//
// (but for blocks whose end was never seen: see put()). For a single stack
// the first holds only up to the bytes that reallocations moved in or out. The old
// block leaves the table at the begin record, since from there on another thread
// may be given its address; its bytes stay in the sums until the end record tells
// what became of it. A begin without an end so needs no repair: the block lives on.
// A call interrupted by a signal handler that reallocates leaves two begins; the
// ends come in the opposite order, hence a stack of them per thread.
//
// A forked child begins with an empty account, but it may free what its parent
// had. Its parent's heap is not copied: we ask the parent's table, and for what
// the parent has freed since, its *ghosts*, kept only of blocks that a fork has
// seen and only while that child lives. What the child has freed of it is
// `spent` there. A grandchild asks its parent, which asks its own. The moment of the
// fork is known only to lie between two ticks, since other threads of the parent go on
// meanwhile: whatever the parent had at some moment between them may be the child's.

#include "analyze/heap.h"

#include <algorithm>
#include <utility>

#include "wire/sampling.h"

namespace malloscope::analyze {
namespace {

constexpr uint64_t kUndecided = ~uint64_t{0};
// A bound on the time that a hostile trace can make us spend on one free.
constexpr int kMaxForkDepth = 256;
constexpr size_t kFewGhosts = 64;  // Fewer are not worth looking through.

// A block that was freed in a parent after a fork; or several at one address
// between whose lives no child was forked.
struct Ghost {
  uint64_t born_tick;
  uint64_t died_tick;
};

// Between which ticks a child was forked.
struct Forked {
  uint64_t first = 0, last = 0;
  bool operator==(const Forked&) const = default;
  // Whether it may have seen a block of that life.
  bool saw(uint64_t born, uint64_t died) const { return born <= last && died > first; }
  // Whether it was forked after one block had died and before the next was born.
  bool between(uint64_t died, uint64_t born) const { return died <= first && last < born; }
};

// A begun realloc's old block.
struct Begun {
  enum class Whose : uint8_t { kNobody, kOwn, kInherited, kUnknown };
  Whose whose = Whose::kNobody;
  Block block;
  uint64_t made = 0;  // ThreadState::made of the block's thread.
};

struct ThreadState {
  uint64_t newest_block = 0;  // What the thread allocated last, if it reallocated nothing since.
  uint64_t made = 0;          // Counts its allocations and reallocations.
  std::vector<Begun> begun;
  std::optional<Block> last_call;  // What its last call made, changed or freed.
};

}  // namespace

struct Heap::ImageAccount {
  ImageId id = ImageId::kNone;
  bool selected = false;
  bool running = false;  // Selected and not ended: part of the running sum.
  bool ended = false;
  bool let_go = false;  // Nothing is kept of it any more.
  unsigned sample_log2 = 0;
  std::optional<uint64_t> end_tick;
  ImageAccount* parent = nullptr;  // Of a fork.
  Forked forked;

  Totals totals;
  Peak peak;
  BlockTable blocks;
  std::vector<ThreadState> threads;
  uint64_t begun = 0;  // Over all threads.

  // For the children that were forked from it, and for theirs.
  std::vector<Forked> forks;                                // Of the children that may still ask.
  uint64_t last_fork = 0;                                   // The latest of their ticks.
  std::unordered_map<uint64_t, std::vector<Ghost>> ghosts;  // By address, oldest first.
  size_t ghosts_to_prune = kFewGhosts;
  // Inherited blocks it has freed, and when; kUndecided while a realloc of it is under way.
  std::unordered_map<uint64_t, uint64_t> spent;

  ThreadState& thread(ThreadId thread_id) {
    if (raw(thread_id) >= threads.size()) threads.resize(raw(thread_id) + size_t{1});
    return threads[raw(thread_id)];
  }

  bool had(uint64_t address, Forked forked) const;
};

Totals& Totals::operator+=(const Totals& other) {
  allocations += other.allocations;
  reallocations += other.reallocations;
  frees += other.frees;
  inherited_frees += other.inherited_frees;
  allocated_bytes += other.allocated_bytes;
  freed_bytes += other.freed_bytes;
  live_bytes += other.live_bytes;
  live_blocks += other.live_blocks;
  temporary += other.temporary;
  failed += other.failed;
  unmatched_frees += other.unmatched_frees;
  order_violations += other.order_violations;
  unblamed_call_cycles += other.unblamed_call_cycles;
  for (size_t i = 0; i < calls.size(); ++i) calls[i] += other.calls[i];
  auto add = [](Mappings& a, const Mappings& b) {
    a.calls += b.calls;
    a.failed += b.failed;
    a.mapped_bytes += b.mapped_bytes;
    a.unmapped_bytes += b.unmapped_bytes;
  };
  add(mappings, other.mappings);
  add(allocator_mappings, other.allocator_mappings);
  return *this;
}

Heap::Heap(Selection selection, Window window)
    : selection_(selection), window_(window), counts_(window.from_tick == 0) {}
Heap::~Heap() = default;

Heap::ImageAccount* Heap::account(ImageId id) const {
  return raw(id) < images_.size() ? images_[raw(id)].get() : nullptr;
}

void Heap::image_started(const trace::Image& image) {
  if (account(image.id)) return;
  if (raw(image.id) >= images_.size()) images_.resize(raw(image.id) + size_t{1});
  auto fresh = std::make_unique<ImageAccount>();
  fresh->id = image.id;
  fresh->selected = fresh->running = selection_.contains(image);
  fresh->sample_log2 = image.sample_log2;
  if (image.origin == trace::Origin::kForked && image.parent != image.id) {
    if (ImageAccount* parent = account(image.parent)) {
      fresh->parent = parent;
      fresh->forked = {image.forked_tick, std::max(image.forked_tick, image.start_tick)};
      parent->forks.push_back(fresh->forked);
      parent->last_fork = std::max(parent->last_fork, fresh->forked.last);
    }
  }
  if (fresh->selected)
    for (HeapObserver* observer : observers_) observer->image_started(image);
  images_[raw(image.id)] = std::move(fresh);
}

void Heap::image_ended(const trace::Image& image) {
  ImageAccount* ended = account(image.id);
  if (!ended || ended->ended) return;
  // What ends at the peak knows only what came before it in the file, whatever its tick.
  bool later = window_.to_bytes == Window::kNever
                   ? image.end_tick && *image.end_tick > window_.to_tick
                   : over_;
  if (later) return;
  ended->ended = true;
  ended->end_tick = image.end_tick;
  if (ended->running) {
    show_live(*ended, &HeapObserver::left);
    for (HeapObserver* observer : observers_) observer->image_ended(ended->id);
    running_bytes_ -= ended->totals.live_bytes;
    ended->running = false;
  }
  let_go(*ended);
}

void Heap::finish() {
  if (!counts_) enter_window();
  for (auto& image : images_) {
    if (!image) continue;
    if (image->running) show_live(*image, &HeapObserver::left);
    image->blocks.clear();
  }
}

void Heap::restore(const trace::Image& image, const Totals& totals, Peak peak) {
  image_started(image);
  ImageAccount& restored = *account(image.id);
  restored.totals = totals;
  restored.peak = peak;
  restored.ended = true;
  restored.running = false;
}

void Heap::restore(Peak peak, uint64_t last_tick) {
  peak_ = peak;
  last_tick_ = last_tick;
  counts_ = true;
}

void Heap::show_live(ImageAccount& image, void (HeapObserver::*show)(ImageId, const BlockTable&)) {
  // Blocks whose reallocation never ended live on, though the table must not know of them: another
  // block may have the address by now.
  std::vector<uint64_t> lent;
  std::vector<Block> others;
  for (const ThreadState& state : image.threads)
    for (const Begun& begun : state.begun) {
      if (begun.whose != Begun::Whose::kOwn) continue;
      if (image.blocks.find(begun.block.address)) {
        others.push_back(begun.block);
      } else {
        image.blocks.insert(begun.block);
        lent.push_back(begun.block.address);
      }
    }
  auto show_all = [&](const BlockTable& blocks) {
    for (HeapObserver* observer : observers_) (observer->*show)(image.id, blocks);
  };
  show_all(image.blocks);
  for (uint64_t address : lent) image.blocks.erase(image.blocks.find(address));
  for (const Block& block : others) {
    BlockTable alone;
    alone.insert(block);
    show_all(alone);
  }
}

void Heap::events(std::span<const wire::Event> events) {
  // Far enough for a line to arrive from memory, near enough to be still there.
  constexpr size_t kAhead = 8;
  ImageAccount* image = nullptr;
  if (!events.empty()) last_tick_ = std::max(last_tick_, events.back().tick);
  const HeapObserver* expecting = nullptr;
  for (const HeapObserver* observer : observers_)
    if (observer->has_much()) expecting = observer;
  for (size_t i = 0; i < events.size(); ++i) {
    const wire::Event& event = events[i];
    // Ticks may go back a little from epoch to epoch; what comes later in the file is later.
    if (event.tick > window_.to_tick && window_.to_bytes == Window::kNever) [[unlikely]]
      over_ = true;
    if (over_) [[unlikely]]
      break;
    if (!counts_ && event.tick >= window_.from_tick && window_.from_bytes == Window::kNever)
        [[unlikely]]
      enter_window();
    if (!image || image->id != event.image) {
      image = account(event.image);
      if (!image) continue;
    }
    if (i + 2 * kAhead < events.size() && events[i + 2 * kAhead].image == event.image)
      image->blocks.prefetch_place(events[i + 2 * kAhead].address);
    if (i + kAhead < events.size() && events[i + kAhead].image == event.image)
      image->blocks.prefetch_block(events[i + kAhead].address);
    if (expecting && i + kAhead / 2 < events.size()) {
      const wire::Event& next = events[i + kAhead / 2];
      const Block* dies = next.kind == wire::Kind::kFree && next.image == event.image
                              ? image->blocks.find(next.address)
                              : nullptr;
      expecting->expect(next.image, dies ? dies->stack : next.stack);
    }
    apply(*image, event);
  }
}

// From here on events count, and the heap that is there is the first candidate for the peak.
void Heap::enter_window() {
  counts_ = true;
  for (auto& image : images_) {
    if (!image) continue;
    Totals fresh;
    fresh.live_bytes = image->totals.live_bytes;
    fresh.live_blocks = image->totals.live_blocks;
    image->totals = fresh;
    image->peak = {fresh.live_bytes, window_.from_tick};
    // What is freed without having been made in the window is no temporary allocation of it.
    for (ThreadState& state : image->threads) state.newest_block = 0;
    if (image->running) show_live(*image, &HeapObserver::found);
  }
  peak_ = {running_bytes_, window_.from_tick};
  ++peak_epoch_;
}

Block Heap::block_of(const ImageAccount& image, const wire::Event& event) const {
  Block block;
  block.address = event.address;
  block.size = std::min(event.size, Block::kMostSize) & Block::kMostSize;
  if (image.sample_log2 != 0) [[unlikely]]
    block.weight_log2 = wire::sample_weight_log2(event.size, image.sample_log2) & 63;
  block.born_tick = event.tick;
  block.stack = event.stack;
  block.strand = strand_;
  return block;
}

void Heap::apply(ImageAccount& image, const wire::Event& event) {
  strand_ = phases_.strand(image.id, event.thread);
  if (keeps_last_calls_ && event.kind <= wire::Kind::kReallocEnd) {
    std::optional<Block>& last = image.thread(event.thread).last_call;
    const Block* freed = event.kind == wire::Kind::kFree && event.address
                             ? image.blocks.find(event.address)
                             : nullptr;
    if (event.kind == wire::Kind::kAlloc || event.kind == wire::Kind::kReallocEnd)
      last = block_of(image, event);
    else
      last = freed ? std::optional(*freed) : std::nullopt;
  }
  switch (event.kind) {
    case wire::Kind::kAlloc:
      allocate(image, event);
      break;
    case wire::Kind::kFree:
      free_block(image, event);
      break;
    case wire::Kind::kReallocBegin:
      begin_realloc(image, event);
      break;
    case wire::Kind::kReallocEnd:
      end_realloc(image, event);
      break;
    case wire::Kind::kPassed:
      pass_over(image, event);
      break;
    case wire::Kind::kMapping:
      map(image, event);
      break;
    case wire::Kind::kCallTime:
      time(image, event);
      break;
    case wire::Kind::kMark:
      phases_.take(event);
      break;
  }
}

void Heap::time(ImageAccount& image, const wire::Event& event) {
  if (!keeps_last_calls_) return;
  std::optional<Block> call = std::exchange(image.thread(event.thread).last_call, std::nullopt);
  if (!call) {
    image.totals.unblamed_call_cycles += event.size;
  } else if (image.selected) {
    for (HeapObserver* observer : observers_) observer->timed(image.id, *call, event.size, counts_);
  }
}

void Heap::pass_over(ImageAccount& image, const wire::Event& event) {
  ThreadState& state = image.thread(event.thread);
  state.newest_block = 0;
  ++state.made;
}

void Heap::count_call(ImageAccount& image, const wire::Event& event, uint64_t times) {
  image.totals.calls[static_cast<size_t>(event.op) & 31] += times;
}

void Heap::count_unmatched(ImageAccount& image, uint64_t address, const wire::Event& event) {
  if (image.sample_log2 != 0) return;  // Of most blocks nothing is known.
  ++image.totals.unmatched_frees;
  if (image.selected)
    for (HeapObserver* observer : observers_)
      observer->unmatched(image.id, address, event, counts_);
}

// Observers have been told of the change, so a new epoch is after it.
void Heap::settle(ImageAccount& image, uint64_t live_before, uint64_t tick) {
  uint64_t live = image.totals.live_bytes;
  if (live > image.peak.bytes) image.peak = {live, tick};
  if (!image.running) return;
  running_bytes_ += live - live_before;
  if (running_bytes_ > peak_.bytes) {
    peak_ = {running_bytes_, tick};
    ++peak_epoch_;
    reach_peak();
  }
}

// Called last of all that an event does.
void Heap::reach_peak() {
  if (running_bytes_ == window_.from_bytes && !counts_) enter_window();
  if (running_bytes_ == window_.to_bytes) over_ = true;
}

void Heap::allocate(ImageAccount& image, const wire::Event& event) {
  Totals& totals = image.totals;
  if (event.address == 0) {
    count_call(image, event, 1);
    ++totals.failed;
    return;
  }
  uint64_t live_before = totals.live_bytes;
  Block block = block_of(image, event);
  count_call(image, event, block.stands_for());
  put(image, block, event);
  if (image.selected)
    for (HeapObserver* observer : observers_) observer->made(image.id, block, event, counts_);
  totals.allocations += block.stands_for();
  totals.live_blocks += block.stands_for();
  totals.allocated_bytes += block.bytes();
  totals.live_bytes += block.bytes();
  ThreadState& state = image.thread(event.thread);
  state.newest_block = event.address;
  ++state.made;
  settle(image, live_before, event.tick);
}

// If its address is handed out again although its block was never freed, an event was lost, or
// the order is wrong. That block ends here, in the bytes but not in `frees`.
void Heap::put(ImageAccount& image, const Block& block, const wire::Event& event) {
  Block* lost = image.blocks.insert(block);
  if (!lost) [[likely]]
    return;
  ++image.totals.order_violations;
  forget(image, *lost, HeapObserver::End::kLost, event);
  *lost = block;
}

// Takes the block out of the sums.
void Heap::forget(ImageAccount& image, const Block& block, HeapObserver::End how,
                  const wire::Event& event) {
  if (image.selected)
    for (HeapObserver* observer : observers_) observer->gone(image.id, block, how, event, counts_);
  image.totals.live_blocks -= block.stands_for();
  image.totals.live_bytes -= block.bytes();
  image.totals.freed_bytes += block.bytes();
  bury(image, block, event.tick);
}

void Heap::release(ImageAccount& image, const Block& block, const wire::Event& event,
                   bool may_be_newest) {
  image.totals.frees += block.stands_for();
  // The newest block of the thread that frees it. Another block at the same
  // address, allocated by another thread meanwhile, is told apart by its thread.
  bool temporary = may_be_newest && thread_of(block.strand) == event.thread &&
                   image.thread(event.thread).newest_block == block.address;
  if (temporary) image.totals.temporary += block.stands_for();
  uint64_t live_before = image.totals.live_bytes;
  forget(image, block, temporary ? HeapObserver::End::kTemporary : HeapObserver::End::kFreed,
         event);
  settle(image, live_before, event.tick);
}

void Heap::free_block(ImageAccount& image, const wire::Event& event) {
  Block* block = event.address ? image.blocks.find(event.address) : nullptr;
  // In a sample, some frees of what is not in it are told, which nobody asked for.
  bool known = block || event.address == 0 || image.sample_log2 == 0;
  if (known) count_call(image, event, block ? block->stands_for() : 1);
  if (event.address == 0) return;
  if (block) [[likely]] {
    release(image, *block, event);
    image.blocks.erase(block);
  } else if (inherits(image, event.address)) {
    ++image.totals.inherited_frees;
    image.spent[event.address] = event.tick;
  } else {
    count_unmatched(image, event.address, event);
  }
}

void Heap::begin_realloc(ImageAccount& image, const wire::Event& event) {
  Begun begun;
  begun.block.address = event.address;
  if (event.address == 0) {
    begun.whose = Begun::Whose::kNobody;
  } else if (Block* block = image.blocks.find(event.address)) {
    begun = {Begun::Whose::kOwn, *block, image.thread(thread_of(block->strand)).made};
    image.blocks.erase(block);
  } else if (inherits(image, event.address)) {
    begun.whose = Begun::Whose::kInherited;
    image.spent[event.address] = kUndecided;
  } else {
    begun.whose = Begun::Whose::kUnknown;
  }
  image.thread(event.thread).begun.push_back(begun);
  ++image.begun;
}

void Heap::end_realloc(ImageAccount& image, const wire::Event& event) {
  using Whose = Begun::Whose;
  Totals& totals = image.totals;
  std::vector<Begun>& open = image.thread(event.thread).begun;
  if (open.empty()) {
    ++totals.order_violations;
    allocate(image, event);
    return;
  }
  Begun begun = open.back();
  open.pop_back();
  --image.begun;
  // What was no block becomes one by allocate(), which counts it; as does, in a sample, the
  // allocation that is told after the free.
  bool allocates = event.address != 0 && begun.whose != Whose::kOwn;
  if (!allocates && (image.sample_log2 == 0 || event.size != 0)) count_call(image, event, 1);
  Block& old = begun.block;
  // A block that was away cannot be told by its address from one made meanwhile.
  ThreadId maker = thread_of(old.strand);
  bool newer = image.thread(maker).made != begun.made;
  if (newer && image.thread(maker).newest_block == old.address && !image.blocks.find(old.address))
    image.thread(maker).newest_block = 0;

  if (event.address == 0 && event.size == 0 && begun.whose != Whose::kNobody) {  // A free.
    if (begun.whose == Whose::kOwn) release(image, old, event, !newer);
    if (begun.whose == Whose::kInherited) ++totals.inherited_frees;
    if (begun.whose == Whose::kInherited) image.spent[old.address] = event.tick;
    if (begun.whose == Whose::kUnknown) count_unmatched(image, old.address, event);
    return;
  }
  if (event.address == 0) {
    ++totals.failed;
    if (begun.whose == Whose::kInherited) image.spent.erase(old.address);
    if (begun.whose != Whose::kOwn) return;
    if (image.blocks.find(old.address)) {  // Somebody was given the address of a live block.
      uint64_t live_before = totals.live_bytes;
      ++totals.order_violations;
      forget(image, old, HeapObserver::End::kLost, event);
      settle(image, live_before, event.tick);
    } else {
      image.blocks.insert(old);
    }
    return;
  }
  if (begun.whose != Whose::kOwn) {
    if (begun.whose == Whose::kInherited) image.spent[old.address] = event.tick;
    if (begun.whose == Whose::kUnknown) count_unmatched(image, old.address, event);
    allocate(image, event);
    return;
  }

  uint64_t live_before = totals.live_bytes;
  // It has outlived a reallocation and is never temporary: it is nobody's newest block.
  Block now = block_of(image, event);
  put(image, now, event);
  bury(image, old, event.tick);
  ThreadState& state = image.thread(event.thread);
  state.newest_block = 0;
  ++state.made;

  if (image.selected)
    for (HeapObserver* observer : observers_) observer->changed(image.id, old, now, event, counts_);
  ++totals.reallocations;
  totals.live_blocks += now.stands_for() - old.stands_for();  // The same, but in a forged sample.
  if (now.bytes() > old.bytes())
    totals.allocated_bytes += now.bytes() - old.bytes();
  else
    totals.freed_bytes += old.bytes() - now.bytes();
  totals.live_bytes += now.bytes() - old.bytes();
  settle(image, live_before, event.tick);
}

void Heap::map(ImageAccount& image, const wire::Event& event) {
  bool inside = event.flags & wire::kInsideAllocator;
  Mappings& mappings = inside ? image.totals.allocator_mappings : image.totals.mappings;
  if (!inside) ++image.totals.calls[static_cast<size_t>(event.op) & 31];
  ++mappings.calls;
  if (event.flags & wire::kFailed)
    ++mappings.failed;
  else if (event.op == wire::Op::kMmap)
    mappings.mapped_bytes += event.size;
  else if (event.op == wire::Op::kMunmap)
    mappings.unmapped_bytes += event.size;
  if (image.selected)
    for (HeapObserver* observer : observers_) observer->mapped(event, strand_, counts_);
}

// A block has gone; if a fork saw it, that child may yet free its copy.
void Heap::bury(ImageAccount& image, const Block& block, uint64_t tick) {
  if (image.forks.empty() || image.last_fork < block.born_tick) [[likely]]
    return;
  auto any_fork = [&](auto is) { return std::any_of(image.forks.begin(), image.forks.end(), is); };
  if (!any_fork([&](const Forked& f) { return f.saw(block.born_tick, tick); })) return;
  // A thread may use one address over and over while a fork is under way: the
  // ghosts of an address are as many as the forks, not as its blocks.
  std::vector<Ghost>& ghosts = image.ghosts[block.address];
  if (ghosts.empty() || any_fork([&](const Forked& f) {
        return f.between(ghosts.back().died_tick, block.born_tick);
      }))
    ghosts.push_back({block.born_tick, tick});
  else  // Also a realloc's old block, whose address was used again before the realloc returned.
    ghosts.back() = {std::min(ghosts.back().born_tick, block.born_tick), tick};
}

// Whether the image itself had a block there when it was forked.
bool Heap::ImageAccount::had(uint64_t address, Forked fork) const {
  if (const Block* block = blocks.find(address); block && block->born_tick <= fork.last)
    return true;
  if (auto here = ghosts.find(address); here != ghosts.end())
    for (const Ghost& ghost : here->second)
      if (fork.saw(ghost.born_tick, ghost.died_tick)) return true;
  if (begun == 0) return false;
  for (const ThreadState& state : threads)
    for (const Begun& b : state.begun)
      if (b.whose == Begun::Whose::kOwn && b.block.address == address &&
          b.block.born_tick <= fork.last)
        return true;
  return false;
}

bool Heap::inherits(const ImageAccount& image, uint64_t address) const {
  if (!image.parent || image.spent.contains(address)) return false;
  const ImageAccount* child = &image;
  for (int depth = 0; child->parent && depth < kMaxForkDepth; ++depth) {
    Forked forked = child->forked;
    child = child->parent;
    if (child->had(address, forked)) return true;
    auto spent = child->spent.find(address);
    if (spent != child->spent.end() && spent->second <= forked.first) return false;
  }
  return false;
}

// Frees what is kept of an image once neither it nor a child can ask for it.
void Heap::let_go(ImageAccount& image) {
  for (ImageAccount* i = &image; i && i->ended && i->forks.empty(); i = i->parent) {
    // A file may claim a child of an image that had ended.
    if (std::exchange(i->let_go, true)) return;
    i->blocks.clear();
    i->threads = std::vector<ThreadState>();
    i->begun = 0;
    i->ghosts = decltype(i->ghosts)();
    i->spent = decltype(i->spent)();
    // A child of a parent that had ended before brings us here again; its fork is gone by then.
    if (!i->parent) return;

    ImageAccount& parent = *i->parent;
    auto& forks = parent.forks;
    forks.erase(std::find(forks.begin(), forks.end(), i->forked));
    parent.last_fork = 0;
    for (const Forked& f : forks) parent.last_fork = std::max(parent.last_fork, f.last);
    if (forks.empty() || parent.ghosts.size() > parent.ghosts_to_prune) {
      for (auto& [address, ghosts] : parent.ghosts)
        std::erase_if(ghosts, [&](const Ghost& ghost) {
          return std::none_of(forks.begin(), forks.end(), [&](const Forked& f) {
            return f.saw(ghost.born_tick, ghost.died_tick);
          });
        });
      std::erase_if(parent.ghosts, [](const auto& entry) { return entry.second.empty(); });
      parent.ghosts_to_prune = kFewGhosts + 2 * parent.ghosts.size();
    }
  }
}

bool Heap::is_live(ImageId image, uint64_t address) {
  ImageAccount* asked = account(image);
  return asked && address != 0 && (asked->blocks.find(address) || inherits(*asked, address));
}

bool Heap::is_reallocating(ImageId image) const {
  const ImageAccount* asked = account(image);
  return asked && std::ranges::any_of(asked->threads, [](const ThreadState& state) {
           return std::ranges::any_of(
               state.begun, [](const Begun& begun) { return begun.whose == Begun::Whose::kOwn; });
         });
}

const Block* Heap::block(ImageId image, uint64_t address) const {
  const ImageAccount* asked = account(image);
  return asked && address != 0 ? asked->blocks.find(address) : nullptr;
}

void Heap::expect(std::span<const wire::Event> events) const {
  for (const wire::Event& event : events)
    if (const ImageAccount* asked = account(event.image))
      asked->blocks.prefetch_place(event.address);
  for (const wire::Event& event : events)
    if (const ImageAccount* asked = account(event.image))
      asked->blocks.prefetch_block(event.address);
}

uint64_t Heap::end_tick(ImageId image) const {
  const ImageAccount* asked = account(image);
  uint64_t end = asked && asked->end_tick ? *asked->end_tick : last_tick_;
  return std::min(end, window_.to_tick);
}

Totals Heap::totals() const {
  Totals sum;
  for (const auto& image : images_)
    if (image && image->selected) sum += image->totals;
  return sum;
}

Totals Heap::totals(ImageId image) const {
  const ImageAccount* asked = account(image);
  return asked ? asked->totals : Totals{};
}

Peak Heap::peak(ImageId image) const {
  const ImageAccount* asked = account(image);
  return asked ? asked->peak : Peak{};
}

}  // namespace malloscope::analyze
