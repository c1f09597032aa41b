// SPDX-License-Identifier: Apache-2.0
// A small made-up recording: a program with two stacks and a leak, and its forked
// child, with names as nasty as names get.

#pragma once

#include <map>
#include <memory>

#include "analyze/reading.h"
#include "trace/event_stream.h"

namespace malloscope::output {

class MadeUpNaming : public analyze::Naming {
 public:
  std::vector<symbols::SymbolFrame> frames(const symbols::ModuleFile&, uint64_t offset) override {
    switch (offset) {
      case 0x10:
        return {{"load(std::map<int, int> const&)", "/home/me/app/src/load.cc", 40}};
      case 0x20:
        return {{"std::vector<int>::reserve(unsigned long)", "/usr/include/v.h", 9},
                {"parse;\n\x1b[31mevil\xff", "parse.cc", 0}};
      case 0x30:
        return {{"main", "/home/me/app/src/main.cc", 7}};
    }
    return {{"app+0x99", "", 0}};
  }
  bool is_plumbing(const std::string& function, const std::string&) override {
    return function.starts_with("std::");
  }
  std::string remark(const symbols::ModuleFile&) override {
    return "app has no debug information; build it with -g to see source lines.";
  }
};

struct MadeUp {
  trace::Tables tables;
  std::unique_ptr<analyze::Accounts> accounts;
  uint64_t tick = 1000;

  explicit MadeUp(analyze::Selection selection = {}, analyze::Window window = {},
                  analyze::TallyOptions options = {})
      : accounts(std::make_unique<analyze::Accounts>(selection, window, options)) {
    tables.header.version = 1;
    tables.header.ns_per_tick = 100;
    tables.header.start_tick = 1000;
    tables.header.start_unix_ns = 1'700'000'000'000'000'000;
    tables.header.recorder_version = "0.1.0";
    tables.header.settings = {"follow=yes"};
    tables.file_bytes = 4321;
    tables.events = 9;
    tables.complete = true;
    tables.end_tick = 51'000'000;
    tables.notes = {{"pid 12 (\"foo\") is statically linked; its allocations are not seen."}};
    for (uint32_t i = 1; i <= 2; ++i) {
      trace::Image image;
      image.id = ImageId{i};
      image.pid = 100 + static_cast<int>(i);
      image.parent = ImageId{i - 1};
      image.parent_pid = i == 1 ? 0 : 101;
      image.origin = i == 1 ? trace::Origin::kLaunched : trace::Origin::kForked;
      image.executable = "/home/me/app/app";
      image.command = {"./app", "--name", "a b\n\x1b]0;x\x07"};
      image.start_tick = image.forked_tick = 1000 + i;
      image.end_tick = 50'000'000;
      image.exit =
          i == 1 ? trace::Exit{.code = 3, .signal = {}} : trace::Exit{.code = {}, .signal = 9};
      image.threads = {{ThreadId{1}, 100, "main\x1b[2J", 1000}};
      image.modules = {{0x1000, 0x2000, 0x1000, 0, "/home/me/app/app", "abcd"}};
      image.peak_rss_bytes = 10 << 20;
      image.recorder_rss_bytes = 1 << 20;
      define(&image, 1, {0x1011, 0x1031}, 0);
      define(&image, 2, {0x1021, 0x1031}, 0);
      define(&image, 3, {0x1011}, wire::kStackCut);
      define(&image, 4, {0x1011}, wire::kStackStopped);
      tables.images.push_back(std::move(image));
    }
    for (const trace::Image& image : tables.images) accounts->image_started(image);
  }

  static void define(trace::Image* image, uint32_t id, std::vector<uint64_t> innermost_first,
                     uint32_t flags) {
    std::vector<uint64_t> frames(innermost_first.rbegin(), innermost_first.rend());
    image->stacks.define(StackId{id}, StackId::kNone, 0, 0, flags, frames.data(), frames.size());
  }

  void show(wire::Kind kind, wire::Op op, uint64_t address, uint64_t size, uint32_t stack,
            uint32_t image = 1, uint32_t thread = 1, uint64_t other = 0, uint8_t flags = 0) {
    wire::Event event;
    event.tick = tick += 1000;
    event.address = address;
    event.size = size;
    event.stack = StackId{stack};
    event.thread = ThreadId{thread};
    event.other = other;
    event.flags = flags;
    event.image = ImageId{image};
    event.kind = kind;
    event.op = op;
    accounts->events({&event, 1});
  }

  // What most tests look at: 5,360 bytes at the peak.
  void play() {
    using wire::Kind, wire::Op;
    show(Kind::kAlloc, Op::kMalloc, 16, 100, 1);
    show(Kind::kAlloc, Op::kNew, 32, 5000, 2);
    show(Kind::kAlloc, Op::kMalloc, 48, 200, 1, 2);
    show(Kind::kAlloc, Op::kMalloc, 64, 30, 3);
    show(Kind::kAlloc, Op::kMalloc, 80, 20, 4);
    show(Kind::kAlloc, Op::kMalloc, 96, 10, 0);
    show(Kind::kFree, Op::kFree, 96, 0, 0);
    show(Kind::kFree, Op::kDelete, 32, 0, 0);
    show(Kind::kFree, Op::kFree, 16, 0, 0,
         2);  // Unknown to the child: older than the fork, or lost.
  }

  std::unique_ptr<analyze::Reading> reading(std::string path = "app.mscope") {
    return std::make_unique<analyze::Reading>(
        std::move(path), std::move(tables), std::move(accounts), std::make_unique<MadeUpNaming>());
  }
};

}  // namespace malloscope::output
