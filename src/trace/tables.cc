// SPDX-License-Identifier: Apache-2.0

#include "trace/tables.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <random>

#include "wire/sampling.h"

namespace malloscope::trace {

bool is_recorder(std::string_view module_path) {
  return module_path.substr(module_path.rfind('/') + 1).starts_with("libmalloscope");
}

std::optional<unsigned> Header::sample_setting() const {
  constexpr std::string_view kKey = "sample=";
  for (const std::string& setting : settings) {
    if (!setting.starts_with(kKey)) continue;
    uint64_t period = 0;
    const char* end = setting.data() + setting.size();
    auto read = std::from_chars(setting.data() + kKey.size(), end, period);
    if (read.ec != std::errc() || read.ptr != end || !std::has_single_bit(period) || period == 1)
      return std::nullopt;
    auto log2 = static_cast<unsigned>(std::countr_zero(period));
    return log2 <= wire::kMostSampleLog2 ? std::optional(log2) : std::nullopt;
  }
  return 0;
}

// No recorder follows stacks deeper than this; a file that claims more is lying.
static constexpr uint32_t kDeepest = 1 << 20;

// One multiplier is drawn afresh in every run: a file cannot be made to fill the same places.
static uint32_t hash_of(uint64_t a, uint32_t b) {
  static const uint64_t drawn = [] {
    std::random_device random;
    return (uint64_t{random()} << 32 | random()) | 1;
  }();
  uint64_t h = a * 0x9e3779b97f4a7c15;
  h = (h ^ h >> 32 ^ uint64_t{b} << 16) * drawn;
  return static_cast<uint32_t>(h >> 32);
}

uint32_t StackTable::code_of(const CodeAddress& wanted) {
  auto place_of = [this](const CodeAddress& code) {
    size_t mask = code_places_.size() - 1, at = hash_of(code.address, code.generation) & mask;
    while (code_places_[at] != 0 && codes_[code_places_[at]] != code) at = (at + 1) & mask;
    return at;
  };
  if (codes_.size() * 2 > code_places_.size()) {
    code_places_.assign(std::max<size_t>(64, std::bit_ceil(codes_.size() * 4)), 0);
    for (uint32_t i = 1; i < codes_.size(); ++i) code_places_[place_of(codes_[i])] = i;
  }
  uint32_t& code = code_places_[place_of(wanted)];
  if (code == 0) {
    code = code_count();
    codes_.push_back(wanted);
  }
  return code;
}

void StackTable::make_places(size_t nodes) {
  for (size_t i = hashes_.size(); i < nodes_.size(); ++i)
    hashes_.push_back(i == 0 ? 0 : hash_of(nodes_[i].code, hashes_[index(nodes_[i].outer)]));
  if (nodes * 4 < places_.size() * 3) return;
  places_ = std::vector<StackNode>();  // Gone before the new ones are made.
  places_.resize(std::max<size_t>(64, nodes * 2));
  for (size_t i = 1; i < nodes_.size(); ++i) {
    size_t at = home(hashes_[i]);
    while (places_[at] != StackNode::kRoot) at = next(at);
    places_[at] = static_cast<StackNode>(i);
  }
}

// Every node knows one further out besides the next, at distances such that any is reached in a
// number of steps that grows with the logarithm of the depth: a file may be made to ask for the
// farthest every time. (Myers, "An applicative random-access stack".)
StackNode StackTable::add(StackNode outer, uint32_t code, uint32_t hash) {
  size_t at = home(hash);
  for (; places_[at] != StackNode::kRoot; at = next(at)) {
    const Node& known = nodes_[index(places_[at])];
    if (known.code == code && known.outer == outer) return places_[at];
  }
  const Node& above = nodes_[index(outer)];
  const Node& far = nodes_[index(above.far)];
  bool even = above.depth - far.depth == far.depth - depth(far.far);
  auto node = static_cast<StackNode>(nodes_.size());
  places_[at] = node;
  nodes_.push_back({code, outer, even ? far.far : outer, above.depth + 1});
  hashes_.push_back(hash);
  return node;
}

StackNode StackTable::ancestor(StackNode node, uint32_t wanted) const {
  while (depth(node) > wanted) {
    const Node& from = nodes_[index(node)];
    node = depth(from.far) >= wanted ? from.far : from.outer;
  }
  return node;
}

bool StackTable::define(StackId id, StackId owner, uint32_t kept, uint32_t generation,
                        uint32_t flags, const uint64_t* frames_outermost_first, size_t count) {
  uint32_t number = raw(id);
  // Ids are handed out in order; a few may be missing, but not millions.
  constexpr uint32_t kGap = 1 << 20;
  if (number == 0 || raw(owner) >= number || number > tops_.size() + kGap) return false;
  if (kept > 0 && kept > depth(owner)) return false;
  if (count + kept > kDeepest || count + kept == 0) return false;
  tops_.grow_to(number + 1);
  flags_.grow_to(number + 1);
  StackNode at = kept > 0 ? ancestor(node(owner), kept) : StackNode::kRoot;
  // The same address may mean another library by now.
  if (kept > 0 && this->generation(at) != generation) return false;
  make_places(nodes_.size() + count);
  // Places depend on the frames alone, so memory is waited for once, not once for each of them.
  constexpr size_t kAtOnce = 64;
  for (size_t i = 0; i < count;) {
    size_t some = std::min(kAtOnce, count - i);
    std::array<uint32_t, kAtOnce> codes, hashes;
    uint32_t hash = hashes_[index(at)];
    for (size_t k = 0; k < some; ++k) {
      codes[k] = code_of({frames_outermost_first[i + k], generation});
      hashes[k] = hash = hash_of(codes[k], hash);
      __builtin_prefetch(&places_[home(hash)]);
    }
    for (size_t k = 0; k < some; ++k) __builtin_prefetch(&nodes_[index(places_[home(hashes[k])])]);
    for (size_t k = 0; k < some; ++k, ++i) at = add(at, codes[k], hashes[k]);
  }
  if (tops_[number] == StackNode::kRoot) ++count_;
  tops_[number] = at;
  if (number >= defined_.size()) defined_.resize(std::max(number + size_t{1}, defined_.size() * 2));
  defined_[number] = true;
  flags_[number] = static_cast<uint8_t>(flags);
  return true;
}

StackId StackTable::add_of_cpu(StackNode innermost, uint32_t flags) {
  uint32_t number = std::max(bound(), 1u);
  first_of_cpu_ = std::min(first_of_cpu_, number);
  tops_.grow_to(number + 1);
  flags_.grow_to(number + 1);
  tops_[number] = innermost;
  flags_[number] = static_cast<uint8_t>(flags);
  defined_.resize(number + size_t{1});
  defined_[number] = true;
  return StackId{number};
}

void StackTable::frames(StackId id, std::vector<uint64_t>* innermost_first) const {
  innermost_first->clear();
  for (StackNode at = node(id); at != StackNode::kRoot; at = outer(at))
    innermost_first->push_back(address(at));
}

}  // namespace malloscope::trace
