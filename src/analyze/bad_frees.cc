// SPDX-License-Identifier: Apache-2.0
#include "analyze/bad_frees.h"

#include <fmt/format.h>

#include "analyze/view.h"
#include "symbols/name_rules.h"

namespace malloscope::analyze {

using Kind = Column::Kind;

void BadFrees::attach(Heap* heap, bool has_free_stacks) {
  has_stacks_ = has_free_stacks;
  heap->add_observer(this);
}

void BadFrees::made(ImageId image, const Block& block, const wire::Event&, bool) {
  if (raw(image) < freed_.size()) freed_[raw(image)].erase(block.address);
}

void BadFrees::changed(ImageId image, const Block& before, const Block& now,
                       const wire::Event& event, bool counts) {
  if (before.address != now.address) gone(image, before, End::kFreed, event, counts);
  made(image, now, event, counts);
}

void BadFrees::gone(ImageId image, const Block& block, End how, const wire::Event& event, bool) {
  if (!has_stacks_ || how == End::kLost) return;
  if (raw(image) >= freed_.size()) freed_.resize(raw(image) + size_t{1});
  freed_[raw(image)].insert_or_assign(block.address,
                                      Freed{block, {event.stack, event.thread, event.tick}});
}

void BadFrees::unmatched(ImageId image, uint64_t address, const wire::Event& event, bool counts) {
  if (!counts) return;
  ++count_;
  if (!has_stacks_) return;
  BadFree bad = {image, address, {event.stack, event.thread, event.tick}, false, {}};
  if (raw(image) < freed_.size())
    if (auto before = freed_[raw(image)].find(address); before != freed_[raw(image)].end()) {
      bad.was_block = true;
      bad.before = before->second;
    }
  Stacks stacks = {raw(image), raw(bad.call.stack), raw(bad.before.by.stack),
                   raw(bad.before.block.stack)};
  auto [place, fresh] = places_.try_emplace(stacks, found_.size());
  if (fresh) found_.push_back(bad);
  ++found_[place->second].times;
}

void BadFrees::image_ended(ImageId image) {
  if (raw(image) < freed_.size()) freed_[raw(image)] = {};
}

Table BadFrees::table(Reading* reading, bool full_names) const {
  Table table;
  table.key = "bad_frees";
  table.title = "Double and bad frees";
  table.list = false;
  table.columns = {{"number", "", Kind::kCount, false}, {"times", "times", Kind::kCount},
                   {"what", "", Kind::kText},           {"time_ns", "at", Kind::kTime},
                   {"pid", "", Kind::kCount, false},    {"thread", "thread", Kind::kText},
                   {"address", "", Kind::kText, false}, {"size", "size", Kind::kBytes},
                   {"frame", "by", Kind::kFrame},       {"stack", "", Kind::kStack}};
  FrameTable& frames = reading->frames();
  uint64_t number = 0;
  for (const BadFree& bad : found_) {
    ++number;
    const trace::Image& image = reading->tables().image(bad.image);
    auto add = [&](const char* what, const Call& call, Cell times, Cell size) {
      std::vector<FrameId> ids;
      frames.stack(bad.image, call.stack, &ids);
      std::vector<NamedFrame> stack;
      for (FrameId id : ids) {
        const Frame& frame = frames.frame(id);
        // The allocator's own frames say nothing of who called it.
        if (stack.empty() && frame.plumbing && id != ids.back()) continue;
        stack.push_back({full_names ? frame.function : symbols::short_name(frame.function),
                         frame.file, frame.line, frame.module, frame.function});
      }
      TableRow row;
      row.cells = {number,
                   std::move(times),
                   std::string(what),
                   reading->tables().time_ns(call.tick),
                   static_cast<uint64_t>(image.pid),
                   thread_name(image, call.thread),
                   fmt::format("{:#x}", bad.address),
                   std::move(size),
                   stack.front(),
                   named_stack(stack)};
      table.rows.push_back(std::move(row));
    };
    if (!bad.was_block) {
      add("freed, was no block", bad.call, bad.times, {});
      continue;
    }
    const Block& block = bad.before.block;
    add("freed again", bad.call, bad.times, block.size);
    add("first freed", bad.before.by, {}, {});
    add("allocated", {block.stack, thread_of(block.strand), block.born_tick}, {}, {});
  }
  return table;
}

}  // namespace malloscope::analyze
