// SPDX-License-Identifier: Apache-2.0
#include "analyze/phases.h"

#include <algorithm>

namespace malloscope::analyze {

using wire::MarkKind;

void Phases::begin(Opens* opens, uint32_t name) {
  auto open = std::ranges::find(*opens, name, &Open::name);
  if (open == opens->end())
    opens->push_back({name, 1});
  else
    ++open->times;
}

// An end without a begin ends nothing.
void Phases::end(Opens* opens, uint32_t name) {
  auto open = std::ranges::find(*opens, name, &Open::name);
  if (open != opens->end() && --open->times == 0) opens->erase(open);
}

void Phases::take(const wire::Event& mark) {
  auto kind = static_cast<MarkKind>(mark.flags);
  if (kind == MarkKind::kUnknown || kind == MarkKind::kMark) return;
  ImagePhases& image = images_[raw(mark.image)];
  auto name = static_cast<uint32_t>(mark.size);
  switch (kind) {
    case MarkKind::kPhaseBegin:
      begin(&image.process, name);
      break;
    case MarkKind::kPhaseEnd:
      end(&image.process, name);
      break;
    case MarkKind::kThreadPhaseBegin:
      begin(&image.threads[raw(mark.thread)], name);
      break;
    case MarkKind::kThreadPhaseEnd:
      end(&image.threads[raw(mark.thread)], name);
      break;
    default:
      break;
  }
  image.strands.clear();
  last_ = {};
}

PhasesId Phases::number_of(PhasePath path) {
  for (; !path.empty(); path.pop_back()) {
    auto next = PhasesId{static_cast<uint32_t>(paths_.paths.size())};
    if (auto known = numbers_.find(path); known != numbers_.end()) return known->second;
    if (raw(next) < kMostPhases) {
      paths_.paths.push_back(path);
      numbers_.emplace(std::move(path), next);
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
  auto [known, fresh] = image.strands.try_emplace(raw(thread));
  if (!fresh) return known->second;
  PhasePath path;
  auto add = [&](const Opens& opens) {
    for (const Open& open : opens)
      if (std::ranges::find(path, open.name) == path.end()) path.push_back(open.name);
  };
  add(image.process);
  if (auto own = image.threads.find(raw(thread)); own != image.threads.end()) add(own->second);
  std::optional<StrandId> strand = strand_of(thread, number_of(std::move(path)));
  paths_.complete &= strand.has_value();
  return known->second = strand.value_or(plain_strand(thread));
}

}  // namespace malloscope::analyze
