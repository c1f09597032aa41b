// SPDX-License-Identifier: Apache-2.0
// Every byte that is live belongs to exactly one stack of one image. All totals
// follow from keeping that true at every event; three things need a thought.
//
// The peak. At a new maximum of the running sum, every stack's live bytes would
// have to be copied. Instead a maximum only counts up `peak_epoch_`, and a stack
// saves its live bytes when it is about to change for the first time after it:
//
//     event          sum   epoch    A: live, saved in     B: live, saved in
//                      0     1         0                     0
//     A alloc 10      10     2        10,    0 in 1          0
//     B alloc  5      15     3        10,    0 in 1          5,    0 in 2
//     A free  10       5     3         0,   10 in 3          5,    0 in 2
//
// The share of the peak is what was saved in the last epoch, or, if nothing was,
// what is live: it has not changed since. So A held 10 and B 5 of the 15, and
// the shares add up to the peak because they are what the sum was made of.
//
// A reallocation moves a block from the stack that owned it to the stack of the
// call: the new owner gets its growth as allocated bytes, and in every image
//
//     allocated - freed = live,     allocations - frees = live blocks
//
// (but for blocks whose end was never seen: see displace()). For a single stack
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
// `spent` there. A grandchild asks its parent, which asks its own.

#include "analyze/accounts.h"

#include <algorithm>

namespace malloscope::analyze {
namespace {

constexpr uint64_t kUndecided = ~uint64_t{0};
// A bound on the time that a hostile trace can make us spend on one free.
constexpr int kMaxForkDepth = 256;
constexpr size_t kFewGhosts = 64;  // Fewer are not worth looking through.

// A block that was freed in a parent after a fork.
struct Ghost {
  uint64_t born_tick;
  uint64_t died_tick;
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
};

}  // namespace

struct Accounts::ImageAccount {
  ImageId id = ImageId::kNone;
  bool selected = false;
  bool running = false;  // Selected and not ended: part of the running sum.
  bool ended = false;
  ImageAccount* parent = nullptr;  // Of a fork.
  uint64_t forked_tick = 0;

  Totals totals;
  Peak peak;
  BlockTable blocks;
  std::vector<StackAccount> stacks;
  std::vector<ThreadState> threads;
  uint64_t begun = 0;  // Over all threads.

  // For the children that were forked from it, and for theirs.
  std::vector<uint64_t> fork_ticks;  // Sorted. Of the children that may still ask.
  std::unordered_multimap<uint64_t, Ghost> ghosts;
  size_t ghosts_to_prune = kFewGhosts;
  // Inherited blocks it has freed, and when; kUndecided while a realloc of it is under way.
  std::unordered_map<uint64_t, uint64_t> spent;

  ThreadState& thread(ThreadId thread_id) {
    if (raw(thread_id) >= threads.size()) threads.resize(raw(thread_id) + size_t{1});
    return threads[raw(thread_id)];
  }

  bool had(uint64_t address, uint64_t tick) const;
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

Amounts& Amounts::operator+=(const Amounts& other) {
  allocations += other.allocations;
  reallocations += other.reallocations;
  allocated_bytes += other.allocated_bytes;
  live_bytes += other.live_bytes;
  live_blocks += other.live_blocks;
  temporary += other.temporary;
  peak_bytes += other.peak_bytes;
  return *this;
}

Accounts::Accounts(Selection selection) : selection_(selection) {}
Accounts::~Accounts() = default;

Accounts::ImageAccount* Accounts::account(ImageId id) const {
  return raw(id) < images_.size() ? images_[raw(id)].get() : nullptr;
}

void Accounts::image_started(const trace::Image& image) {
  if (account(image.id)) return;
  if (raw(image.id) >= images_.size()) images_.resize(raw(image.id) + size_t{1});
  auto fresh = std::make_unique<ImageAccount>();
  fresh->id = image.id;
  fresh->selected = fresh->running = selection_.contains(image);
  if (image.origin == trace::Origin::kForked && image.parent != image.id) {
    if (ImageAccount* parent = account(image.parent)) {
      fresh->parent = parent;
      fresh->forked_tick = image.forked_tick;
      auto& ticks = parent->fork_ticks;
      ticks.insert(std::upper_bound(ticks.begin(), ticks.end(), image.forked_tick),
                   image.forked_tick);
    }
  }
  images_[raw(image.id)] = std::move(fresh);
}

void Accounts::image_ended(const trace::Image& image) {
  ImageAccount* ended = account(image.id);
  if (!ended || ended->ended) return;
  ended->ended = true;
  if (ended->running) {
    for (uint32_t s = 0; s < ended->stacks.size(); ++s) touch(*ended, StackId{s});
    running_bytes_ -= ended->totals.live_bytes;
    ended->running = false;
  }
  ended->stacks.shrink_to_fit();
  let_go(*ended);
}

void Accounts::events(std::span<const wire::Event> events) {
  // Far enough for a line to arrive from memory, near enough to be still there.
  constexpr size_t kAhead = 8;
  ImageAccount* image = nullptr;
  if (!events.empty()) last_tick_ = std::max(last_tick_, events.back().tick);
  for (size_t i = 0; i < events.size(); ++i) {
    const wire::Event& event = events[i];
    if (!image || image->id != event.image) {
      image = account(event.image);
      if (!image) continue;
    }
    if (i + kAhead < events.size() && events[i + kAhead].image == event.image)
      image->blocks.prefetch(events[i + kAhead].address);
    apply(*image, event);
  }
}

void Accounts::apply(ImageAccount& image, const wire::Event& event) {
  switch (event.kind) {
    case wire::Kind::kAlloc:
      ++image.totals.calls[static_cast<size_t>(event.op) & 31];
      allocate(image, event);
      break;
    case wire::Kind::kFree:
      ++image.totals.calls[static_cast<size_t>(event.op) & 31];
      free_block(image, event);
      break;
    case wire::Kind::kReallocBegin:
      begin_realloc(image, event);
      break;
    case wire::Kind::kReallocEnd:
      ++image.totals.calls[static_cast<size_t>(event.op) & 31];
      end_realloc(image, event);
      break;
    case wire::Kind::kMapping:
      map(image, event);
      break;
  }
}

Accounts::StackAccount& Accounts::touch(ImageAccount& image, StackId id) {
  if (raw(id) >= image.stacks.size())
    image.stacks.resize(std::max<size_t>(raw(id) + size_t{1}, image.stacks.size() * 2));
  StackAccount& stack = image.stacks[raw(id)];
  if (stack.peak_epoch != peak_epoch_ && image.running) {
    stack.peak_bytes = stack.live_bytes;
    stack.peak_epoch = peak_epoch_;
  }
  return stack;
}

void Accounts::settle(ImageAccount& image, uint64_t live_before, uint64_t tick) {
  uint64_t live = image.totals.live_bytes;
  if (live > image.peak.bytes) image.peak = {live, tick};
  if (!image.running) return;
  running_bytes_ += live - live_before;
  if (running_bytes_ > peak_.bytes) {
    peak_ = {running_bytes_, tick};
    ++peak_epoch_;
  }
}

void Accounts::allocate(ImageAccount& image, const wire::Event& event) {
  Totals& totals = image.totals;
  if (event.address == 0) {
    ++totals.failed;
    return;
  }
  uint64_t live_before = totals.live_bytes;
  displace(image, event.address, event.tick);

  image.blocks.insert({event.address, event.size, event.tick, event.stack, event.thread});
  StackAccount& stack = touch(image, event.stack);
  ++stack.allocations;
  ++stack.live_blocks;
  stack.allocated_bytes += event.size;
  stack.live_bytes += event.size;
  ++totals.allocations;
  ++totals.live_blocks;
  totals.allocated_bytes += event.size;
  totals.live_bytes += event.size;
  ThreadState& state = image.thread(event.thread);
  state.newest_block = event.address;
  ++state.made;
  settle(image, live_before, event.tick);
}

// The address is handed out again although its block was never freed: an event
// was lost, or the order is wrong. The block ends here, in the bytes but not in `frees`.
void Accounts::displace(ImageAccount& image, uint64_t address, uint64_t tick) {
  Block* found = image.blocks.find(address);
  if (!found) [[likely]]
    return;
  ++image.totals.order_violations;
  forget(image, *found, tick);
  image.blocks.erase(found);
}

// Takes the block out of the sums.
void Accounts::forget(ImageAccount& image, const Block& block, uint64_t tick) {
  StackAccount& stack = touch(image, block.stack);
  --stack.live_blocks;
  stack.live_bytes -= block.size;
  --image.totals.live_blocks;
  image.totals.live_bytes -= block.size;
  image.totals.freed_bytes += block.size;
  bury(image, block, tick);
}

void Accounts::release(ImageAccount& image, const Block& block, const wire::Event& event) {
  ++image.totals.frees;
  // The newest block of the thread that frees it. Another block at the same
  // address, allocated by another thread meanwhile, is told apart by its thread.
  if (block.thread == event.thread && image.thread(event.thread).newest_block == block.address) {
    ++image.totals.temporary;
    ++touch(image, block.stack).temporary;
  }
  uint64_t live_before = image.totals.live_bytes;
  forget(image, block, event.tick);
  settle(image, live_before, event.tick);
}

void Accounts::free_block(ImageAccount& image, const wire::Event& event) {
  if (event.address == 0) return;
  if (Block* block = image.blocks.find(event.address)) [[likely]] {
    release(image, *block, event);
    image.blocks.erase(block);
  } else if (inherits(image, event.address)) {
    ++image.totals.inherited_frees;
    image.spent[event.address] = event.tick;
  } else {
    ++image.totals.unmatched_frees;
  }
}

void Accounts::begin_realloc(ImageAccount& image, const wire::Event& event) {
  Begun begun;
  begun.block.address = event.address;
  if (event.address == 0) {
    begun.whose = Begun::Whose::kNobody;
  } else if (Block* block = image.blocks.find(event.address)) {
    begun = {Begun::Whose::kOwn, *block, image.thread(block->thread).made};
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

void Accounts::end_realloc(ImageAccount& image, const wire::Event& event) {
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
  Block& old = begun.block;
  // A block that was away cannot be told by its address from one made meanwhile.
  if (image.thread(old.thread).made != begun.made) old.thread = ThreadId::kNone;

  if (event.address == 0 && event.size == 0 && begun.whose != Whose::kNobody) {  // A free.
    if (begun.whose == Whose::kOwn) release(image, old, event);
    if (begun.whose == Whose::kInherited) ++totals.inherited_frees;
    if (begun.whose == Whose::kInherited) image.spent[old.address] = event.tick;
    if (begun.whose == Whose::kUnknown) ++totals.unmatched_frees;
    return;
  }
  if (event.address == 0) {
    ++totals.failed;
    if (begun.whose == Whose::kInherited) image.spent.erase(old.address);
    if (begun.whose != Whose::kOwn) return;
    if (image.blocks.find(old.address)) {  // Somebody was given the address of a live block.
      uint64_t live_before = totals.live_bytes;
      ++totals.order_violations;
      forget(image, old, event.tick);
      settle(image, live_before, event.tick);
    } else {
      image.blocks.insert(old);
    }
    return;
  }
  if (begun.whose != Whose::kOwn) {
    if (begun.whose == Whose::kInherited) image.spent[old.address] = event.tick;
    if (begun.whose == Whose::kUnknown) ++totals.unmatched_frees;
    allocate(image, event);
    return;
  }

  uint64_t live_before = totals.live_bytes;
  displace(image, event.address, event.tick);
  bury(image, old, event.tick);
  // The block's thread is kNone from now on: it has outlived a reallocation and
  // is not temporary, whoever frees it.
  image.blocks.insert({event.address, event.size, event.tick, event.stack, ThreadId::kNone});
  ThreadState& state = image.thread(event.thread);
  state.newest_block = 0;
  ++state.made;

  StackAccount& from = touch(image, old.stack);
  --from.live_blocks;
  from.live_bytes -= old.size;
  StackAccount& to = touch(image, event.stack);  // May move `from`.
  ++to.live_blocks;
  to.live_bytes += event.size;
  ++to.reallocations;
  ++totals.reallocations;
  if (event.size > old.size) {
    to.allocated_bytes += event.size - old.size;
    totals.allocated_bytes += event.size - old.size;
  } else {
    totals.freed_bytes += old.size - event.size;
  }
  totals.live_bytes += event.size - old.size;
  settle(image, live_before, event.tick);
}

void Accounts::map(ImageAccount& image, const wire::Event& event) {
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
}

// A block has gone; if a fork saw it, that child may yet free its copy.
void Accounts::bury(ImageAccount& image, const Block& block, uint64_t tick) {
  const auto& ticks = image.fork_ticks;
  if (ticks.empty() || ticks.back() < block.born_tick) [[likely]]
    return;
  auto seen = std::lower_bound(ticks.begin(), ticks.end(), block.born_tick);
  if (*seen < tick) image.ghosts.emplace(block.address, Ghost{block.born_tick, tick});
}

// Whether the image itself had a block there when it was forked at `tick`.
bool Accounts::ImageAccount::had(uint64_t address, uint64_t tick) const {
  if (const Block* block = blocks.find(address); block && block->born_tick <= tick) return true;
  auto [first, last] = ghosts.equal_range(address);
  for (auto ghost = first; ghost != last; ++ghost)
    if (ghost->second.born_tick <= tick && tick < ghost->second.died_tick) return true;
  if (begun == 0) return false;
  for (const ThreadState& state : threads)
    for (const Begun& b : state.begun)
      if (b.whose == Begun::Whose::kOwn && b.block.address == address && b.block.born_tick <= tick)
        return true;
  return false;
}

bool Accounts::inherits(const ImageAccount& image, uint64_t address) const {
  if (!image.parent || image.spent.contains(address)) return false;
  const ImageAccount* child = &image;
  for (int depth = 0; child->parent && depth < kMaxForkDepth; ++depth) {
    uint64_t tick = child->forked_tick;
    child = child->parent;
    if (child->had(address, tick)) return true;
    auto spent = child->spent.find(address);
    if (spent != child->spent.end() && spent->second <= tick) return false;
  }
  return false;
}

// Frees what is kept of an image once neither it nor a child can ask for it.
void Accounts::let_go(ImageAccount& image) {
  for (ImageAccount* i = &image; i && i->ended && i->fork_ticks.empty(); i = i->parent) {
    i->blocks.clear();
    i->threads = {};
    i->begun = 0;
    i->ghosts = {};
    i->spent = {};
    if (!i->parent) return;

    ImageAccount& parent = *i->parent;
    auto& ticks = parent.fork_ticks;
    ticks.erase(std::lower_bound(ticks.begin(), ticks.end(), i->forked_tick));
    auto unseen = [&ticks](const auto& entry) {
      auto seen = std::lower_bound(ticks.begin(), ticks.end(), entry.second.born_tick);
      return seen == ticks.end() || *seen >= entry.second.died_tick;
    };
    if (ticks.empty() || parent.ghosts.size() > parent.ghosts_to_prune) {
      std::erase_if(parent.ghosts, unseen);
      parent.ghosts_to_prune = kFewGhosts + 2 * parent.ghosts.size();
    }
  }
}

bool Accounts::is_live(ImageId image, uint64_t address) {
  ImageAccount* asked = account(image);
  return asked && address != 0 && (asked->blocks.find(address) || inherits(*asked, address));
}

Totals Accounts::totals() const {
  Totals sum;
  for (const auto& image : images_)
    if (image && image->selected) sum += image->totals;
  return sum;
}

Totals Accounts::totals(ImageId image) const {
  const ImageAccount* asked = account(image);
  return asked ? asked->totals : Totals{};
}

Peak Accounts::peak(ImageId image) const {
  const ImageAccount* asked = account(image);
  return asked ? asked->peak : Peak{};
}

uint32_t Accounts::stack_count(ImageId image) const {
  const ImageAccount* asked = account(image);
  return asked && asked->selected ? static_cast<uint32_t>(asked->stacks.size()) : 0;
}

std::optional<Amounts> Accounts::stack(ImageId image, StackId id) const {
  const ImageAccount& asked = *images_[raw(image)];
  StackAccount found = asked.stacks[raw(id)];
  if (found.allocations == 0 && found.reallocations == 0) return std::nullopt;
  if (found.peak_epoch != peak_epoch_) found.peak_bytes = asked.running ? found.live_bytes : 0;
  return found;
}

}  // namespace malloscope::analyze
