// SPDX-License-Identifier: Apache-2.0
// Small worlds of processes that fork, exec, allocate, reallocate and end at random,
// with a few impossible events among them. A model that does everything the slow
// way (it copies the heap at a fork and adds up every block after every event)
// must come to the same totals, peak shares and live blocks.
// There are few addresses, so that a block, its successor at the same address and
// its copy in a child are met all the time.

#include "analyze/accounts.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace malloscope::analyze {
namespace {

using wire::Event;
using wire::Kind;
using wire::Op;

struct ModelBlock {
  uint64_t size;
  uint32_t stack;
  uint64_t serial;  // Tells blocks at the same address apart.
  bool counts;      // Made in the window.
};

struct ModelBegun {
  uint64_t address;
  std::optional<ModelBlock> own;
  bool inherited = false;
};

struct ModelImage {
  trace::Image image;
  bool ended = false;
  bool begun_life = true;  // False while it is announced but not yet forked.
  std::map<uint64_t, ModelBlock> live;
  std::set<uint64_t> inherited;
  std::map<uint32_t, std::vector<ModelBegun>> begun;
  struct Newest {
    uint64_t serial = 0;
  };
  std::map<uint32_t, Newest> newest;
  Totals totals;
  Peak peak;

  uint64_t bytes() const {
    uint64_t sum = 0;
    for (auto& [address, block] : live) sum += block.size;
    for (auto& [thread, open] : begun)
      for (auto& b : open) sum += b.own ? b.own->size : 0;
    return sum;
  }
  void add_bytes(std::map<uint32_t, uint64_t>* by_stack) const {
    for (auto& [address, block] : live) (*by_stack)[block.stack] += block.size;
    for (auto& [thread, open] : begun)
      for (auto& b : open)
        if (b.own) (*by_stack)[b.own->stack] += b.own->size;
  }
  uint64_t blocks() const {
    uint64_t n = live.size();
    for (auto& [thread, open] : begun)
      for (auto& b : open) n += b.own.has_value();
    return n;
  }
};

using ByStack = std::map<std::pair<uint32_t, uint32_t>, Amounts>;  // (image, stack)

class Model {
 public:
  Model(Selection selection, uint64_t from_tick)
      : selection_(selection), from_tick_(from_tick), counts_(from_tick == 0) {}

  std::vector<ModelImage> images;  // [i] has id i + 1.
  Peak peak;
  ByStack stacks;

  bool selected(const ModelImage& m) const { return selection_.contains(m.image); }
  bool counts() const { return counts_; }

  void fork_into(ModelImage& child) {
    const ModelImage& parent = images[raw(child.image.parent) - 1];
    child.inherited = parent.inherited;
    for (auto& [address, block] : parent.live) child.inherited.insert(address);
    for (auto& [thread, open] : parent.begun)
      for (auto& b : open)
        if (b.own || b.inherited) child.inherited.insert(b.address);
    child.begun_life = true;
  }

  void apply(const Event& e) {
    ModelImage& m = images[raw(e.image) - 1];
    if (!counts_ && e.tick >= from_tick_) enter_window();
    if (e.kind != Kind::kReallocBegin && !(e.flags & wire::kInsideAllocator))
      ++m.totals.calls[static_cast<size_t>(e.op)];
    if (e.kind == Kind::kAlloc) allocate(m, e);
    if (e.kind == Kind::kFree) free_block(m, e);
    if (e.kind == Kind::kReallocBegin) begin(m, e);
    if (e.kind == Kind::kReallocEnd) end(m, e);
    m.totals.live_bytes = m.bytes();
    m.totals.live_blocks = m.blocks();
    if (m.totals.live_bytes > m.peak.bytes) m.peak = {m.totals.live_bytes, e.tick};
    look_for_peak(e.tick);
  }

  ByStack amounts() const {
    ByStack all = stacks;
    for (const ModelImage& m : images) {
      std::map<uint32_t, uint64_t> bytes;
      m.add_bytes(&bytes);
      for (auto& [stack, n] : bytes) all[{raw(m.image.id), stack}].live_bytes = n;
      for (auto& [address, block] : m.live) ++all[{raw(m.image.id), block.stack}].live_blocks;
      for (auto& [thread, open] : m.begun)
        for (auto& b : open)
          if (b.own) ++all[{raw(m.image.id), b.own->stack}].live_blocks;
    }
    for (auto& [key, n] : at_peak_) all[key].peak_bytes = n;
    std::erase_if(all, [&](auto& entry) { return !selected(images[entry.first.first - 1]); });
    return all;
  }

 private:
  Amounts& of(const ModelImage& m, uint32_t stack) { return stacks[{raw(m.image.id), stack}]; }

  void enter_window() {
    counts_ = true;
    stacks.clear();
    for (ModelImage& m : images) {
      m.totals = {};
      m.totals.live_bytes = m.bytes();
      m.totals.live_blocks = m.blocks();
      m.peak = {m.bytes(), from_tick_};
    }
    peak = {};
    at_peak_.clear();
    look_for_peak(from_tick_);
    peak.tick = from_tick_;
  }

  void look_for_peak(uint64_t tick) {
    uint64_t sum = 0;
    for (const ModelImage& m : images)
      if (selected(m) && !m.ended) sum += m.bytes();
    if (sum <= peak.bytes) return;
    peak = {sum, tick};
    at_peak_.clear();
    for (const ModelImage& m : images) {
      if (!selected(m) || m.ended) continue;
      std::map<uint32_t, uint64_t> bytes;
      m.add_bytes(&bytes);
      for (auto& [stack, n] : bytes)
        if (n > 0) at_peak_[{raw(m.image.id), stack}] = n;
    }
  }

  void displace(ModelImage& m, uint64_t address) {
    auto found = m.live.find(address);
    if (found == m.live.end()) return;
    ++m.totals.order_violations;
    m.totals.freed_bytes += found->second.size;
    m.live.erase(found);
  }

  void allocate(ModelImage& m, const Event& e) {
    if (e.address == 0) {
      ++m.totals.failed;
      return;
    }
    displace(m, e.address);
    m.live[e.address] = {e.size, raw(e.stack), ++serial_, counts_};
    m.newest[raw(e.thread)] = {serial_};
    ++m.totals.allocations;
    m.totals.allocated_bytes += e.size;
    ++of(m, raw(e.stack)).allocations;
    of(m, raw(e.stack)).allocated_bytes += e.size;
  }

  void gone(ModelImage& m, const ModelBlock& block, const Event& e) {
    ++m.totals.frees;
    m.totals.freed_bytes += block.size;
    if (block.counts && m.newest[raw(e.thread)].serial == block.serial) {
      ++m.totals.temporary;
      ++of(m, block.stack).temporary;
    }
  }

  void free_block(ModelImage& m, const Event& e) {
    if (e.address == 0) return;
    if (auto found = m.live.find(e.address); found != m.live.end()) {
      gone(m, found->second, e);
      m.live.erase(found);
    } else if (m.inherited.erase(e.address)) {
      ++m.totals.inherited_frees;
    } else {
      ++m.totals.unmatched_frees;
    }
  }

  void begin(ModelImage& m, const Event& e) {
    ModelBegun b{e.address, std::nullopt};
    if (auto found = m.live.find(e.address); found != m.live.end()) {
      b.own = found->second;
      m.live.erase(found);
    } else if (m.inherited.erase(e.address)) {
      b.inherited = true;
    }
    m.begun[raw(e.thread)].push_back(b);
  }

  void end(ModelImage& m, const Event& e) {
    auto& open = m.begun[raw(e.thread)];
    if (open.empty()) {
      ++m.totals.order_violations;
      allocate(m, e);
      return;
    }
    ModelBegun b = open.back();
    open.pop_back();
    bool unknown = b.address && !b.own && !b.inherited;
    if (e.address == 0 && e.size == 0 && b.address != 0) {
      if (b.own) gone(m, *b.own, e);
      m.totals.inherited_frees += b.inherited;
      m.totals.unmatched_frees += unknown;
    } else if (e.address == 0) {
      ++m.totals.failed;
      if (b.inherited) m.inherited.insert(b.address);
      if (b.own && m.live.contains(b.address)) {
        ++m.totals.order_violations;
        m.totals.freed_bytes += b.own->size;
      } else if (b.own) {
        m.live[b.address] = *b.own;
      }
    } else if (!b.own) {
      m.totals.unmatched_frees += unknown;
      allocate(m, e);
    } else {
      displace(m, e.address);
      m.live[e.address] = {e.size, raw(e.stack), ++serial_, counts_};
      m.newest[raw(e.thread)] = {0};
      ++m.totals.reallocations;
      ++of(m, raw(e.stack)).reallocations;
      if (e.size > b.own->size) {
        m.totals.allocated_bytes += e.size - b.own->size;
        of(m, raw(e.stack)).allocated_bytes += e.size - b.own->size;
      } else {
        m.totals.freed_bytes += b.own->size - e.size;
      }
    }
  }

  Selection selection_;
  uint64_t from_tick_;
  bool counts_;
  uint64_t serial_ = 0;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> at_peak_;
};

void expect_equal(const Totals& a, const Totals& b) {
  ASSERT_EQ(a.allocations, b.allocations);
  ASSERT_EQ(a.reallocations, b.reallocations);
  ASSERT_EQ(a.frees, b.frees);
  ASSERT_EQ(a.inherited_frees, b.inherited_frees);
  ASSERT_EQ(a.allocated_bytes, b.allocated_bytes);
  ASSERT_EQ(a.freed_bytes, b.freed_bytes);
  ASSERT_EQ(a.live_bytes, b.live_bytes);
  ASSERT_EQ(a.live_blocks, b.live_blocks);
  ASSERT_EQ(a.temporary, b.temporary);
  ASSERT_EQ(a.failed, b.failed);
  ASSERT_EQ(a.unmatched_frees, b.unmatched_frees);
  ASSERT_EQ(a.order_violations, b.order_violations);
  ASSERT_EQ(a.calls, b.calls);
}

// Drives the accounts and the model with the same random events.
class World {
 public:
  World(uint32_t seed, Selection selection, uint64_t from_tick = 0)
      : random_(seed),
        accounts_(selection, {.from_tick = from_tick}),
        model_(selection, from_tick),
        whole_(from_tick == 0),
        addresses_(4 + draw(20)) {
    start(trace::Origin::kLaunched, 0, 0);
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      ++tick_;
      begin_forks();
      uint64_t dice = draw(100);
      ModelImage* m = any_running();
      if (!m || dice < 1) {
        start(trace::Origin::kExeced, 0, 0);
      } else if (dice < 4 && model_.images.size() < 40) {
        // Forks are sometimes told of a little early.
        start(trace::Origin::kForked, raw(m->image.id), tick_ + draw(2) * draw(20));
      } else if (dice < 5 && model_.images.size() > 1) {
        flush();
        end(*m);
      } else {
        event(*m);
      }
      if (draw(16) == 0) compare();
      if (::testing::Test::HasFatalFailure()) return;
    }
    compare();
  }

 private:
  uint64_t draw(uint64_t below) { return random_() % below; }
  uint64_t any_address() { return 16 * (1 + draw(addresses_)); }

  ModelImage* any_running() {
    std::vector<ModelImage*> running;
    for (ModelImage& m : model_.images)
      if (!m.ended && m.begun_life) running.push_back(&m);
    return running.empty() ? nullptr : running[draw(running.size())];
  }

  void start(trace::Origin origin, uint32_t parent, uint64_t forked_tick) {
    flush();
    ModelImage m;
    m.image.id = ImageId{static_cast<uint32_t>(model_.images.size() + 1)};
    m.image.parent = ImageId{parent};
    m.image.pid = 1 + static_cast<int>(draw(3));
    m.image.origin = origin;
    m.image.forked_tick = forked_tick;
    m.begun_life = origin != trace::Origin::kForked;
    accounts_.image_started(model_.images.emplace_back(std::move(m)).image);
    begin_forks();
  }

  void begin_forks() {
    for (ModelImage& m : model_.images)
      if (!m.begun_life && (m.image.forked_tick < tick_)) model_.fork_into(m);
  }

  void end(ModelImage& m) {
    // Children announced but not yet forked are forked first.
    for (ModelImage& child : model_.images)
      if (!child.begun_life && child.image.parent == m.image.id) return;
    m.ended = true;
    m.image.end_tick = tick_;
    accounts_.image_ended(m.image);
  }

  void event(ModelImage& m) {
    Event e;
    e.tick = tick_;
    e.image = m.image.id;
    e.thread = ThreadId{static_cast<uint32_t>(1 + draw(3))};
    e.stack = StackId{static_cast<uint32_t>(draw(5))};
    e.size = draw(3) ? 1 + draw(100) : draw(2) * 1000;
    bool begun = !m.begun[raw(e.thread)].empty();
    uint64_t dice = draw(100);
    if (begun && dice < 40) {
      e.kind = Kind::kReallocEnd;
      e.op = draw(2) ? Op::kRealloc : Op::kReallocarray;
      e.address = draw(4) ? any_address() : 0;
      if (e.address == 0 && draw(2)) e.size = 0;
      if (m.live.contains(e.address) && draw(8)) return;
    } else if (dice < 42) {
      e.kind = Kind::kAlloc;
      e.op = draw(2) ? Op::kMalloc : Op::kNew;
      e.address = draw(20) ? any_address() : 0;
      if (m.live.contains(e.address) && draw(16)) return;  // Seldom the impossible.
    } else if (dice < 80) {
      e.kind = Kind::kFree;
      e.op = draw(2) ? Op::kFree : Op::kDelete;
      e.address = draw(20) ? any_address() : 0;
      // Half of the time the one just allocated.
      if (draw(2)) e.address = last_address_;
    } else if (dice < 96) {
      e.kind = Kind::kReallocBegin;
      e.op = Op::kRealloc;
      e.address = draw(20) ? any_address() : 0;
    } else if (dice < 97) {
      e.kind = Kind::kReallocEnd;
      e.op = Op::kRealloc;
      e.address = any_address();
    } else {
      e.kind = Kind::kMapping;
      e.op = draw(2) ? Op::kMmap : Op::kMunmap;
      e.address = any_address();
      e.flags = static_cast<uint8_t>(draw(4));
    }
    if (e.kind == Kind::kAlloc && e.address) last_address_ = e.address;
    batch_.push_back(e);
    model_.apply(e);
  }

  void flush() {
    accounts_.events(batch_);
    batch_.clear();
  }

  void compare() {
    flush();
    if (!model_.counts()) return;
    Totals sum;
    for (const ModelImage& m : model_.images) {
      ASSERT_NO_FATAL_FAILURE(expect_equal(accounts_.totals(m.image.id), m.totals));
      ASSERT_EQ(accounts_.peak(m.image.id).bytes, m.peak.bytes);
      ASSERT_EQ(accounts_.peak(m.image.id).tick, m.peak.tick);
      if (model_.selected(m)) sum += m.totals;
      if (m.ended || !m.begun_life) continue;
      for (uint64_t a = 1; a <= addresses_; ++a)
        ASSERT_EQ(accounts_.is_live(m.image.id, a * 16),
                  m.live.contains(a * 16) || m.inherited.contains(a * 16));
    }
    ASSERT_NO_FATAL_FAILURE(expect_equal(accounts_.totals(), sum));
    if (whole_) {
      ASSERT_EQ(sum.allocated_bytes - sum.freed_bytes, sum.live_bytes);
    }
    ASSERT_LE(sum.temporary, sum.allocations);
    ASSERT_EQ(accounts_.peak().bytes, model_.peak.bytes);
    ASSERT_EQ(accounts_.peak().tick, model_.peak.tick);

    ByStack expected = model_.amounts();
    size_t met = 0;
    Amounts all;
    accounts_.for_each_stack([&](ImageId image, StackId stack, const Amounts& is) {
      const Amounts& should = expected[{raw(image), raw(stack)}];
      EXPECT_EQ(is.allocations, should.allocations);
      EXPECT_EQ(is.reallocations, should.reallocations);
      EXPECT_EQ(is.allocated_bytes, should.allocated_bytes);
      EXPECT_EQ(is.live_bytes, should.live_bytes);
      EXPECT_EQ(is.live_blocks, should.live_blocks);
      EXPECT_EQ(is.temporary, should.temporary);
      EXPECT_EQ(is.peak_bytes, should.peak_bytes);
      all += is;
      ++met;
    });
    ASSERT_EQ(met, expected.size());
    ASSERT_EQ(all.peak_bytes, model_.peak.bytes);
    ASSERT_EQ(all.live_bytes, sum.live_bytes);
    ASSERT_EQ(all.allocated_bytes, sum.allocated_bytes);
    ASSERT_EQ(all.temporary, sum.temporary);
    ASSERT_FALSE(::testing::Test::HasFailure());
  }

  std::mt19937 random_;
  Accounts accounts_;
  Model model_;
  bool whole_;
  uint64_t addresses_;
  uint64_t tick_ = 0;
  uint64_t last_address_ = 16;
  std::vector<Event> batch_;
};

TEST(Accounts, AgreeWithASlowModelOverAllProcesses) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    World(seed, {}).run(1'500);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
  }
}

TEST(Accounts, AgreeWithASlowModelForOneProcess) {
  for (uint32_t seed = 1'000; seed < 1'040; ++seed) {
    World(seed, {.pid = 2}).run(1'500);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
  }
}

TEST(Accounts, AgreeWithASlowModelForOneImage) {
  for (uint32_t seed = 1'000; seed < 1'020; ++seed) {
    World(seed, {.image = ImageId{1 + seed % 3}}).run(1'500);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
  }
}

TEST(Accounts, AgreeWithASlowModelInAWindow) {
  for (uint32_t seed = 2'000; seed < 2'060; ++seed) {
    World(seed, {}, 1 + seed % 7 * 100).run(1'000);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
  }
}

// The rest are the cases that a reader wants to see spelt out.

struct Story {
  Accounts accounts;
  uint64_t tick = 0;

  explicit Story(Window window = {}) : accounts({}, window) { start(1, trace::Origin::kLaunched); }

  trace::Image start(uint32_t id, trace::Origin origin, uint32_t parent = 0) {
    trace::Image image;
    image.id = ImageId{id};
    image.parent = ImageId{parent};
    image.pid = static_cast<int>(id);
    image.origin = origin;
    image.forked_tick = image.start_tick = ++tick;
    accounts.image_started(image);
    return image;
  }
  void end(uint32_t id) {
    trace::Image image;
    image.id = ImageId{id};
    accounts.image_ended(image);
  }
  void show(Kind kind, Op op, uint64_t address, uint64_t size, uint32_t thread = 1,
            uint32_t image = 1, uint32_t stack = 1) {
    Event e;
    e.tick = ++tick;
    e.kind = kind;
    e.op = op;
    e.address = address;
    e.size = size;
    e.thread = ThreadId{thread};
    e.image = ImageId{image};
    e.stack = StackId{stack};
    accounts.events({&e, 1});
  }
  void alloc(uint64_t a, uint64_t n, uint32_t thread = 1, uint32_t image = 1, uint32_t stack = 1) {
    show(Kind::kAlloc, Op::kMalloc, a, n, thread, image, stack);
  }
  void free(uint64_t a, uint32_t thread = 1, uint32_t image = 1) {
    show(Kind::kFree, Op::kFree, a, 0, thread, image);
  }
  void begin(uint64_t a, uint32_t thread = 1, uint32_t image = 1) {
    show(Kind::kReallocBegin, Op::kRealloc, a, 0, thread, image);
  }
  void end_at(uint64_t a, uint64_t n, uint32_t thread = 1, uint32_t image = 1, uint32_t stack = 2) {
    show(Kind::kReallocEnd, Op::kRealloc, a, n, thread, image, stack);
  }
};

TEST(Accounts, AGrowingBlockBelongsToTheStackThatGrewIt) {
  Story s;
  s.alloc(16, 100);
  s.begin(16);
  s.end_at(32, 150);
  std::map<uint32_t, Amounts> stacks;
  s.accounts.for_each_stack(
      [&](ImageId, StackId stack, const Amounts& a) { stacks[raw(stack)] = a; });
  EXPECT_EQ(stacks[1].allocated_bytes, 100u);
  EXPECT_EQ(stacks[1].live_bytes, 0u);
  EXPECT_EQ(stacks[2].allocated_bytes, 50u);
  EXPECT_EQ(stacks[2].live_bytes, 150u);
  EXPECT_EQ(stacks[2].peak_bytes, 150u);
  EXPECT_EQ(s.accounts.totals().allocated_bytes, 150u);
  EXPECT_EQ(s.accounts.peak().bytes, 150u);
}

TEST(Accounts, ABlockLivesOnIfItsReallocNeverEnds) {
  Story s;
  s.alloc(16, 100);
  s.begin(16);
  EXPECT_FALSE(s.accounts.is_live(ImageId{1}, 16));
  s.end(1);
  EXPECT_EQ(s.accounts.totals().live_bytes, 100u);
  EXPECT_EQ(s.accounts.totals().live_blocks, 1u);
  EXPECT_EQ(s.accounts.totals().calls[static_cast<size_t>(Op::kRealloc)], 0u);
}

TEST(Accounts, TheOldAddressMayBeHandedOutWhileTheReallocIsUnderWay) {
  Story s;
  s.alloc(16, 100);
  s.begin(16, 1);
  s.alloc(16, 30, 2);  // realloc() has freed it already.
  s.end_at(32, 200, 1);
  Totals totals = s.accounts.totals();
  EXPECT_EQ(totals.order_violations, 0u);
  EXPECT_EQ(totals.live_bytes, 230u);
  EXPECT_EQ(totals.live_blocks, 2u);
  s.free(16, 2);
  s.free(32, 1);
  EXPECT_EQ(s.accounts.totals().live_bytes, 0u);
  EXPECT_EQ(s.accounts.totals().unmatched_frees, 0u);
}

// Sizes of the blocks that there are when the window begins, and when it ends.
struct Seen : HeapObserver {
  std::multiset<uint64_t> at_begin, at_end;
  static void add(const BlockTable& live, std::multiset<uint64_t>* sizes) {
    live.for_each([&](const Block& block) { sizes->insert(block.size); });
  }
  void found(ImageId, const BlockTable& live) override { add(live, &at_begin); }
  void left(ImageId, const BlockTable& live) override { add(live, &at_end); }
};

TEST(Accounts, BlocksWithOneAddressAreAllShown) {
  Seen seen;
  Story s({.from_tick = 6, .to_tick = 8});
  s.accounts.add_observer(&seen);
  s.alloc(16, 100);
  s.begin(16, 1);
  s.alloc(16, 30, 2);
  s.begin(16, 2);
  s.alloc(16, 7, 3);  // The window begins with this one, so it is not among those that were there.
  EXPECT_EQ(seen.at_begin, (std::multiset<uint64_t>{30, 100}));
  s.alloc(48, 5, 3);
  s.begin(48, 3);
  s.free(16, 3);  // Behind the window.
  s.accounts.finish();
  EXPECT_EQ(seen.at_end, (std::multiset<uint64_t>{5, 7, 30, 100}));
  EXPECT_EQ(s.accounts.totals().live_blocks, 4u);
}

TEST(Accounts, ReallocToNothingIsAFreeAndMayBeTemporary) {
  Story s;
  s.alloc(16, 100);
  s.begin(16);
  s.end_at(0, 0);
  Totals totals = s.accounts.totals();
  EXPECT_EQ(totals.frees, 1u);
  EXPECT_EQ(totals.temporary, 1u);
  EXPECT_EQ(totals.failed, 0u);
  EXPECT_EQ(totals.reallocations, 0u);

  s.alloc(16, 100);
  s.begin(16);
  s.end_at(32, 0);
  totals = s.accounts.totals();
  EXPECT_EQ(totals.reallocations, 1u);
  EXPECT_EQ(totals.live_bytes, 0u);
  EXPECT_EQ(totals.live_blocks, 1u);
}

TEST(Accounts, FreeOfNullCountsOnlyAsACall) {
  Story s;
  s.free(0);
  Totals totals = s.accounts.totals();
  EXPECT_EQ(totals.calls[static_cast<size_t>(Op::kFree)], 1u);
  EXPECT_EQ(totals.frees + totals.unmatched_frees + totals.failed, 0u);
}

TEST(Accounts, TemporaryIsDecidedByBlockNotByAddress) {
  Story s;
  s.alloc(16, 1, 1);
  s.free(16, 2);      // By another thread.
  s.alloc(16, 1, 2);  // Another block at that address.
  s.free(16, 1);      // Thread 1 allocated its last block here, but not this one.
  EXPECT_EQ(s.accounts.totals().temporary, 0u);
  s.alloc(16, 1, 1);
  s.free(16, 1);
  EXPECT_EQ(s.accounts.totals().temporary, 1u);
}

TEST(Accounts, TemporaryIsDecidedByBlockWhileAReallocIsUnderWay) {
  Story s;
  s.alloc(16, 1);
  s.begin(16);
  s.alloc(16, 1);  // In a signal handler, say.
  s.end_at(0, 0);  // The first block was not the newest any more.
  EXPECT_EQ(s.accounts.totals().temporary, 0u);
  s.free(16);
  EXPECT_EQ(s.accounts.totals().temporary, 1u);
}

TEST(Accounts, AForkedChildFreesItsCopyEvenIfTheParentFreedItsOwn) {
  Story s;
  s.alloc(16, 100);
  s.alloc(32, 100);
  s.start(2, trace::Origin::kForked, 1);
  s.free(16);
  s.alloc(16, 5);  // The parent's new block is no business of the child.
  s.free(16, 1, 2);
  s.free(16, 1, 2);
  s.begin(32, 1, 2);
  s.end_at(48, 300, 1, 2);
  Totals child = s.accounts.totals(ImageId{2});
  EXPECT_EQ(child.inherited_frees, 1u);
  EXPECT_EQ(child.unmatched_frees, 1u);
  EXPECT_EQ(child.allocations, 1u);
  EXPECT_EQ(child.reallocations, 0u);
  EXPECT_EQ(child.allocated_bytes, 300u);
  EXPECT_EQ(child.freed_bytes, 0u);
}

TEST(Accounts, AGrandchildInheritsWhatItsParentHadNotFreed) {
  Story s;
  s.alloc(16, 1);
  s.alloc(32, 1);
  s.start(2, trace::Origin::kForked, 1);
  s.free(16, 1, 2);
  s.start(3, trace::Origin::kForked, 2);
  s.free(32, 1, 2);  // After the second fork: the grandchild still has it.
  s.end(1);
  s.end(2);
  s.free(16, 1, 3);
  s.free(32, 1, 3);
  EXPECT_EQ(s.accounts.totals(ImageId{3}).unmatched_frees, 1u);
  EXPECT_EQ(s.accounts.totals(ImageId{3}).inherited_frees, 1u);
}

TEST(Accounts, WhatOneChildNoLongerNeedsIsKeptForAnother) {
  Story s;
  for (uint64_t i = 1; i <= 200; ++i) s.alloc(16 * i, 1);
  s.start(2, trace::Origin::kForked, 1);
  for (uint64_t i = 1; i <= 100; ++i) s.free(16 * i);
  s.start(3, trace::Origin::kForked, 1);
  for (uint64_t i = 101; i <= 200; ++i) s.free(16 * i);
  s.end(2);
  for (uint64_t i = 1; i <= 200; ++i) s.free(16 * i, 1, 3);
  EXPECT_EQ(s.accounts.totals(ImageId{3}).inherited_frees, 100u);
  EXPECT_EQ(s.accounts.totals(ImageId{3}).unmatched_frees, 100u);
}

// No recorder writes such a thing, but a file may claim it.
TEST(Accounts, AChildOfAnImageThatHadEndedDoesNoHarm) {
  Story s;
  s.alloc(16, 100);
  s.start(2, trace::Origin::kForked, 1);
  s.end(2);
  s.start(3, trace::Origin::kForked, 2);
  s.free(16, 1, 3);
  s.end(3);
  s.end(1);
  EXPECT_EQ(s.accounts.totals().live_bytes, 100u);
}

TEST(Accounts, AnEndedImageLeavesTheRunningSumButStaysLive) {
  Story s;
  s.alloc(16, 100);
  s.end(1);
  s.start(2, trace::Origin::kExeced, 1);
  s.alloc(16, 60, 1, 2);
  EXPECT_EQ(s.accounts.peak().bytes, 100u);
  EXPECT_EQ(s.accounts.totals().live_bytes, 160u);
  s.alloc(32, 60, 1, 2);
  EXPECT_EQ(s.accounts.peak().bytes, 120u);
  s.accounts.for_each_stack([](ImageId image, StackId, const Amounts& a) {
    EXPECT_EQ(a.peak_bytes, image == ImageId{1} ? 0u : 120u);
  });
}

TEST(Accounts, MappingsAreKeptApartFromTheHeap) {
  Story s;
  s.show(Kind::kMapping, Op::kMmap, 4096, 8192);
  s.show(Kind::kMapping, Op::kMunmap, 4096, 4096);
  Totals totals = s.accounts.totals();
  EXPECT_EQ(totals.mappings.mapped_bytes, 8192u);
  EXPECT_EQ(totals.mappings.unmapped_bytes, 4096u);
  EXPECT_EQ(totals.calls[static_cast<size_t>(Op::kMmap)], 1u);
  EXPECT_EQ(totals.allocations + totals.frees + totals.live_bytes, 0u);
}

}  // namespace
}  // namespace malloscope::analyze
