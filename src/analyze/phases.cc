// SPDX-License-Identifier: Apache-2.0
#include "analyze/phases.h"

#include <algorithm>
#include <utility>

namespace malloscope::analyze {

using wire::MarkKind;

void Phases::Opens::begin(uint32_t name) {
  Open& open = names_[name];
  if (open.times++ > 0) return;
  open.since = ++begins_;
  order_.emplace(open.since, name);
}

// An end without a begin ends nothing.
void Phases::Opens::end(uint32_t name) {
  auto open = names_.find(name);
  if (open == names_.end() || --open->second.times > 0) return;
  order_.erase(open->second.since);
  names_.erase(open);
}

void Phases::Opens::add_to(PhasePath* path) const {
  for (const auto& [since, name] : order_) {
    if (path->size() >= kMostTogether) return;
    if (std::ranges::find(*path, name) == path->end()) path->push_back(name);
  }
}

void Phases::take(const wire::Event& mark) {
  auto kind = static_cast<MarkKind>(mark.flags);
  if (kind == MarkKind::kUnknown || kind == MarkKind::kMark) return;
  ImagePhases& image = images_[raw(mark.image)];
  auto name = static_cast<uint32_t>(mark.size);
  switch (kind) {
    case MarkKind::kPhaseBegin:
      image.process.begin(name);
      break;
    case MarkKind::kPhaseEnd:
      image.process.end(name);
      break;
    case MarkKind::kThreadPhaseBegin:
      image.threads[raw(mark.thread)].begin(name);
      break;
    case MarkKind::kThreadPhaseEnd:
      image.threads[raw(mark.thread)].end(name);
      break;
    default:
      break;
  }
  ++image.version;
  last_ = {};
}

// In which order the outer ones began matters to nobody, and there are many.
static PhasePath without_order(PhasePath path) {
  std::sort(path.begin(), path.end() - 1);
  return path;
}

PhasesId Phases::number_of(PhasePath path) {
  for (; !path.empty(); path.pop_back()) {
    PhasePath plain = without_order(path);
    auto next = PhasesId{static_cast<uint32_t>(paths_.paths.size())};
    if (auto known = numbers_.find(plain); known != numbers_.end()) return known->second;
    if (raw(next) < kMostPhases) {
      paths_.paths.push_back(plain);
      numbers_.emplace(std::move(plain), next);
      return next;
    }
    paths_.complete = false;
  }
  return PhasesId::kNone;
}

StrandId Phases::strand_in(ImageId id, ThreadId thread) {
  auto found = images_.find(raw(id));
  if (found == images_.end()) return plain_strand(thread);
  ImagePhases& image = found->second;
  Known& known = image.strands[raw(thread)];
  if (std::exchange(known.version, image.version) == image.version) return known.strand;
  PhasePath path;
  image.process.add_to(&path);
  size_t open = image.process.size();
  if (auto own = image.threads.find(raw(thread)); own != image.threads.end()) {
    own->second.add_to(&path);
    open += own->second.size();
  }
  paths_.complete &= open <= kMostTogether;
  std::optional<StrandId> strand = strand_of(thread, number_of(std::move(path)));
  paths_.complete &= strand.has_value();
  return known.strand = strand.value_or(plain_strand(thread));
}

}  // namespace malloscope::analyze
