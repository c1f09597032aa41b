// SPDX-License-Identifier: Apache-2.0
// A trace has far fewer distinct addresses than nodes in its trees of stacks, and far
// fewer distinct places in modules than addresses (every image loads them elsewhere).
// So an address is looked up in two steps, each remembered: to its module and
// offset, and from there to its frames. Names are fetched once per offset.

#include "analyze/frames.h"

#include <fmt/format.h>

#include <functional>
#include <optional>

#include "trace/event_stream.h"

namespace malloscope::analyze {

// A return address is behind the call, maybe already in the next line or function.
static uint64_t pc_of(uint64_t address) {
  return address & wire::kInterrupted ? address & ~wire::kInterrupted : address - 1;
}

size_t FrameTable::FrameHash::operator()(const Frame& frame) const {
  std::hash<std::string> hash;
  size_t h = hash(frame.function);
  h = h * 31 + hash(frame.file);
  h = h * 31 + hash(frame.module);
  return h * 31 + static_cast<size_t>(frame.line);
}

FrameId FrameTable::intern(const Frame& frame) {
  auto [found, fresh] = ids_.try_emplace(frame, FrameId{static_cast<uint32_t>(frames_.size())});
  if (fresh) frames_.push_back(frame);
  Frame& known = frames_[static_cast<uint32_t>(found->second)];
  if (known.column != frame.column) known.column = 0;
  return found->second;
}

FrameTable::Run FrameTable::add_run(std::span<const Frame> frames) {
  Run run = {static_cast<uint32_t>(runs_.size()), static_cast<uint32_t>(frames.size())};
  for (const Frame& frame : frames) runs_.push_back(intern(frame));
  return run;
}

FrameTable::Run FrameTable::resolve_in(uint64_t module, uint64_t offset) {
  auto [found, fresh] = by_offset_.try_emplace({offset, module});
  if (!fresh) return found->second;
  const symbols::ModuleFile& file = modules_[module];
  std::vector<Frame> frames;
  for (symbols::SymbolFrame& s : naming_.frames(file, offset)) {
    bool plumbing = naming_.is_plumbing(s.function, file.path);
    frames.push_back(
        {std::move(s.function), std::move(s.file), s.line, file.path, plumbing, s.column});
  }
  return found->second = add_run(frames);
}

FrameTable::Run FrameTable::resolve(const trace::Module* module, uint64_t pc) {
  if (!module) {
    Frame frame;
    frame.function = fmt::format("{:#x}", pc);
    return add_run({&frame, 1});
  }
  auto [found, fresh] = module_of_.try_emplace(module);
  if (fresh) {
    auto [id, unknown] =
        module_ids_.try_emplace(module->path + '\0' + module->build_id, modules_.size());
    if (unknown) modules_.push_back({module->path, module->build_id});
    found->second = id->second;
  }
  return resolve_in(found->second, pc - module->bias);
}

const trace::Module* FrameTable::module_at(const trace::Image& image, uint64_t pc,
                                           uint32_t generation) {
  return finders_.try_emplace(image.id, image.modules).first->second.find(pc, generation);
}

std::span<const FrameId> FrameTable::at(ImageId id, trace::StackNode node) {
  if (raw(id) >= by_code_.size()) by_code_.resize(raw(id) + size_t{1});
  std::vector<Run>& runs = by_code_[raw(id)];
  const trace::Image& image = tables_.image(id);
  if (runs.empty()) runs.resize(image.stacks.code_count());
  Run& run = runs[image.stacks.code(node)];
  if (run.count == 0) {
    uint64_t pc = pc_of(image.stacks.address(node));
    const trace::Module* module = module_at(image, pc, image.stacks.generation(node));
    if (module && is_ours(module->path)) {
      // Looked at again each time: few stacks have any.
      if (image.stacks.outer(node) != trace::StackNode::kRoot) return {};
      ours_ = unknown();
      return {&ours_, 1};
    }
    run = resolve(module, pc);
  }
  return std::span(runs_).subspan(run.first, run.count);
}

void FrameTable::stack(ImageId id, StackId stack, std::vector<FrameId>* frames) {
  const trace::StackTable& stacks = tables_.image(id).stacks;
  frames->clear();
  for (trace::StackNode n = stacks.node(stack); n != trace::StackNode::kRoot; n = stacks.outer(n)) {
    std::span<const FrameId> here = at(id, n);
    frames->insert(frames->end(), here.begin(), here.end());
  }
  if (frames->empty()) frames->push_back(unknown());
}

void FrameTable::calls(ImageId id, StackId stack, std::vector<Call>* calls) {
  const trace::Image& image = tables_.image(id);
  calls->clear();
  for (trace::StackNode n = image.stacks.node(stack); n != trace::StackNode::kRoot;
       n = image.stacks.outer(n)) {
    uint64_t pc = pc_of(image.stacks.address(n));
    calls->push_back({pc, module_at(image, pc, image.stacks.generation(n)),
                      static_cast<uint32_t>(at(id, n).size())});
  }
  if (calls->empty()) calls->push_back({0, nullptr, 1});
}

FrameId FrameTable::site(ImageId id, StackId stack) {
  const trace::StackTable& stacks = tables_.image(id).stacks;
  trace::StackNode innermost = stacks.node(stack);
  if (innermost == trace::StackNode::kRoot) return unknown();
  bool looks_through = !stacks.is_of_cpu(stack);
  std::optional<FrameId> first;
  for (trace::StackNode n = innermost; n != trace::StackNode::kRoot; n = stacks.outer(n))
    for (FrameId candidate : at(id, n)) {
      if (!looks_through || !frame(candidate).plumbing) return candidate;
      if (!first) first = candidate;
    }
  return *first;
}

FrameTable::Root FrameTable::root(ImageId image, StackId id) const {
  const trace::StackTable& stacks = tables_.image(image).stacks;
  if (stacks.flags(id) & wire::kStackCut) return Root::kCut;
  return stacks.flags(id) & wire::kStackStopped || !stacks.defined(id) ? Root::kStopped
                                                                       : Root::kReached;
}

}  // namespace malloscope::analyze
