// SPDX-License-Identifier: Apache-2.0
// A made-up recording: a few functions that call each other at random, with much
// recursion, and a few threads that allocate, reallocate and free.

#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "analyze/reading.h"

namespace malloscope::analyze {

// The function at offset 0x10 * n is f<n>, of line n; every third is plumbing.
class ToyNaming : public Naming {
 public:
  std::vector<symbols::SymbolFrame> frames(const symbols::ModuleFile&, uint64_t offset) override {
    uint64_t n = offset / 16;
    return {{"f" + std::to_string(n), "f.cc", static_cast<int>(n)}};
  }
  bool is_plumbing(const std::string& function, const std::string&) override {
    return std::stoi(function.substr(1)) % 3 == 0;
  }
};

struct ToyRecording {
  static constexpr uint32_t kFunctions = 9, kStacks = 60, kThreads = 3;
  static constexpr uint64_t kModule = 0x10000;

  std::mt19937 random;
  trace::Tables tables;
  std::vector<wire::Event> events;
  std::vector<std::vector<int>> stacks = {{}};  // Functions, innermost first, by StackId.

  // `tick_events`: so many events may share a tick.
  explicit ToyRecording(unsigned seed, int count = 3000, unsigned tick_events = 1)
      : random(seed), tick_events_(tick_events) {
    tables.header.ns_per_tick = 100;
    tables.header.start_tick = 1;
    trace::Image image;
    image.id = ImageId{1};
    image.pid = 7;
    image.modules = {{kModule, kModule + 0x1000, kModule, 0, "/bin/toy", ""}};
    for (uint32_t t = 1; t <= kThreads; ++t)
      image.threads.push_back({ThreadId{t}, static_cast<int>(100 + t), "t" + std::to_string(t), 1});
    for (uint32_t s = 1; s <= kStacks; ++s) {
      std::vector<int> functions;
      std::vector<uint64_t> outer_first;
      for (unsigned depth = 1 + pick(6); depth-- > 0;)
        functions.push_back(static_cast<int>(1 + pick(kFunctions)));
      for (size_t i = functions.size(); i-- > 0;)
        outer_first.push_back(kModule + static_cast<uint64_t>(functions[i]) * 16 + 1);
      image.stacks.define(StackId{s}, StackId::kNone, 0, 0, 0, outer_first.data(),
                          outer_first.size());
      stacks.push_back(functions);
    }
    tables.images.push_back(std::move(image));
    make_events(count);
    tables.images[0].end_tick = tables.end_tick = events.back().tick + 1;
    tables.complete = true;
  }

  unsigned pick(unsigned below) { return static_cast<unsigned>(random() % below); }

  std::unique_ptr<Reading> read(
      Window window = {}, TallyOptions options = {},
      std::unique_ptr<Naming> naming = std::make_unique<ToyNaming>()) const {
    auto accounts = std::make_unique<Accounts>(Selection{}, window, options);
    accounts->image_started(tables.images[0]);
    accounts->events(events);
    accounts->image_ended(tables.images[0]);
    accounts->finish();
    return std::make_unique<Reading>("toy", tables, std::move(accounts), std::move(naming));
  }

 private:
  unsigned tick_events_;

  void make_events(int count) {
    std::vector<uint64_t> live;
    uint64_t tick = 10, next = 0x100;
    auto event = [&](wire::Kind kind, wire::Op op, uint64_t address, uint64_t size) {
      wire::Event e;
      e.tick = tick;
      e.address = address;
      e.size = size;
      e.stack = StackId{1 + pick(kStacks)};
      e.thread = ThreadId{1 + pick(kThreads)};
      e.image = ImageId{1};
      e.kind = kind;
      e.op = op;
      events.push_back(e);
      return &events.back();
    };
    for (int i = 0; i < count; ++i) {
      if (tick_events_ == 1 || pick(tick_events_) == 0) tick += 1 + pick(5);
      unsigned what = pick(10);
      if (what < 5 || live.empty()) {
        live.push_back(next += 16);
        event(wire::Kind::kAlloc, wire::Op::kMalloc, next, 1 + pick(1000));
      } else {
        size_t i_live = pick(static_cast<unsigned>(live.size()));
        uint64_t old = live[i_live];
        if (what < 9) {
          event(wire::Kind::kFree, wire::Op::kFree, old, 0);
          live.erase(live.begin() + static_cast<ptrdiff_t>(i_live));
        } else {
          ThreadId thread = event(wire::Kind::kReallocBegin, wire::Op::kRealloc, old, 0)->thread;
          live[i_live] = pick(2) ? old : next += 16;
          event(wire::Kind::kReallocEnd, wire::Op::kRealloc, live[i_live], 1 + pick(2000))->thread =
              thread;
        }
      }
    }
  }
};

}  // namespace malloscope::analyze
