// SPDX-License-Identifier: Apache-2.0
// A sample is taken in a signal handler of the recorder's, and the walk begins there: innermost are
// the recorder's own frames, if any, then the trampoline that the handler returns to
// (__restore_rt), then the instruction that was interrupted. That one is where the thread was:
//
//     __restore_rt, interrupted in hash(), index(), main()          hash, index, main
//
// A sample that is due while the thread is in malloc has the stack of that call instead, which ends
// with the caller of malloc. An interrupted frame in it is further out, and of a handler of the
// program's own, so nothing may be cut off there:
//
//     on_timer(), __restore_rt, interrupted in poll(), main()       all of them

#include "trace/cpu_stacks.h"

#include <algorithm>
#include <unordered_map>

#include "trace/module_finder.h"

namespace malloscope::trace {
namespace {

class Namer {
 public:
  explicit Namer(Image* image) : stacks_(image->stacks), modules_(image->modules) {}

  StackId name(StackId recorded) {
    auto [known, fresh] = by_recorded_.try_emplace(raw(recorded), StackId::kNone);
    if (!fresh) return known->second;
    StackNode innermost = computing(stacks_.node(recorded));
    uint32_t flags = stacks_.flags(recorded);
    uint64_t key = uint64_t{static_cast<uint32_t>(innermost)} << 8 | flags;
    auto [same, first] = by_node_.try_emplace(key, StackId::kNone);
    if (first) same->second = stacks_.add_of_cpu(innermost, flags);
    return known->second = same->second;
  }

 private:
  bool is_interrupted(StackNode node) const {
    return node != StackNode::kRoot && (stacks_.address(node) & wire::kInterrupted) != 0;
  }
  bool is_recorders(StackNode node) const {
    const Module* module = modules_.find(stacks_.address(node) - 1, stacks_.generation(node));
    return module && is_recorder(module->path);
  }

  StackNode computing(StackNode recorded) const {
    StackNode node = recorded;
    while (node != StackNode::kRoot && !is_interrupted(node) && is_recorders(node))
      node = stacks_.outer(node);
    if (node == StackNode::kRoot) return recorded;
    if (is_interrupted(node)) return node;
    return is_interrupted(stacks_.outer(node)) ? stacks_.outer(node) : recorded;
  }

  StackTable& stacks_;
  ModuleFinder modules_;
  std::unordered_map<uint32_t, StackId> by_recorded_;
  std::unordered_map<uint64_t, StackId> by_node_;  // And flags.
};

}  // namespace

void name_cpu_stacks(Image* image) {
  if (image->cpu.empty()) return;
  Namer namer(image);
  for (CpuSample& sample : image->cpu)
    if (sample.stack != StackId::kNone) sample.stack = namer.name(sample.stack);
}

void part_cpu_of_execs(std::vector<Image>* images) {
  // What the clock of the thread that goes on has told up to the end of each image: it is the one
  // that told last.
  std::vector<uint64_t> clocks(images->size(), 0);
  for (size_t i = 0; i < images->size(); ++i) {
    Image& image = (*images)[i];
    size_t before = raw(image.parent);
    bool goes_on = image.origin == Origin::kExeced && before >= 1 && before <= i &&
                   (*images)[before - 1].pid == image.pid;
    uint64_t told = goes_on ? clocks[before - 1] : 0;
    if (image.cpu.empty()) {
      clocks[i] = told;
      continue;
    }
    uint64_t& first = image.cpu.front().nanoseconds;
    const uint64_t counted = std::min(first, told);
    first -= counted;
    clocks[i] = counted;
    for (const CpuSample& sample : image.cpu)
      if (sample.thread == image.cpu.back().thread) clocks[i] += sample.nanoseconds;
  }
}

}  // namespace malloscope::trace
