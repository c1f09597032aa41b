// SPDX-License-Identifier: Apache-2.0
#include "replay/survey.h"

#include <algorithm>
#include <utility>

namespace malloscope::replay {

using wire::Event;
using wire::Kind;

ImageId Survey::busiest(const std::function<bool(const trace::Image&)>& wanted) const {
  ImageId best = ImageId::kNone;
  for (uint32_t i = 1; i < images.size(); ++i)
    if (images[i].calls > 0 && wanted(tables.image(ImageId{i})) &&
        (best == ImageId::kNone || images[i].calls > images[raw(best)].calls))
      best = ImageId{i};
  return best;
}

void Survey::add(std::span<const Event> events) {
  for (const Event& event : events) {
    if (event.kind > Kind::kReallocEnd) continue;  // Neither makes a block nor ends one.
    if (raw(event.image) >= images.size()) images.resize(raw(event.image) + size_t{1});
    ImageSpan& image = images[raw(event.image)];
    image.calls += event.kind != Kind::kReallocBegin;
    if (raw(event.thread) >= image.threads.size())
      image.threads.resize(raw(event.thread) + size_t{1});
    ThreadSpan& thread = image.threads[raw(event.thread)];
    thread.first_tick = std::min(thread.first_tick, event.tick);
    thread.last_tick = std::max(thread.last_tick, event.tick);
  }
}

Result<Survey> survey(const std::string& trace, Progress progress) {
  struct Surveyor : trace::Listener {
    Survey survey;
    void events(std::span<const Event> events) override { survey.add(events); }
  } surveyor;
  Result<trace::Tables> tables =
      trace::stream(trace, &surveyor, {.progress = std::move(progress), .stacks = false});
  if (!tables) return std::unexpected(tables.error());
  surveyor.survey.tables = std::move(*tables);
  return std::move(surveyor.survey);
}

}  // namespace malloscope::replay
