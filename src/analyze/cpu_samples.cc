// SPDX-License-Identifier: Apache-2.0
#include "analyze/cpu_samples.h"

#include <algorithm>
#include <unordered_map>

namespace malloscope::analyze {

bool has_cpu(const trace::Tables& tables) {
  return tables.header.has_cpu() ||
         std::ranges::any_of(tables.images, [](const trace::Image& i) { return !i.cpu.empty(); });
}

// As it is among the events.
static wire::Event event_of(ImageId image, const trace::Mark& mark) {
  wire::Event event;
  event.kind = wire::Kind::kMark;
  event.image = image;
  event.thread = mark.thread;
  event.tick = mark.tick;
  event.flags = static_cast<uint8_t>(mark.kind);
  event.size = mark.name;
  return event;
}

CpuSamples::CpuSamples(const trace::Tables& tables) {
  Phases phases;
  for (const trace::Image& image : tables.images) {
    if (image.cpu.empty()) continue;
    std::vector<trace::Mark> marks = image.marks;
    std::ranges::stable_sort(marks, {}, &trace::Mark::tick);
    auto mark = marks.begin();
    for (const trace::CpuSample& sample : image.cpu) {
      for (; mark != marks.end() && mark->tick <= sample.tick; ++mark)
        phases.take(event_of(image.id, *mark));
      samples_.push_back({sample.tick, sample.nanoseconds, image.id, sample.stack,
                          phases.strand(image.id, sample.thread)});
    }
  }
  phases_ = phases.paths();
}

std::vector<Row> cpu_rows(const CpuSamples& samples, const trace::Tables& tables,
                          const Selection& selection, const Window& window,
                          const TallyOptions& options) {
  std::vector<Row> rows;
  // Of one image: by stack and strand.
  std::unordered_map<uint64_t, size_t> places;
  ImageId image = ImageId::kNone;
  bool selected = false;
  for (const CpuSamples::Sample& sample : samples.all()) {
    if (sample.image != image) {
      image = sample.image;
      selected = selection.contains(tables.image(image));
      places.clear();
    }
    if (!selected || !CpuSamples::is_in(window, sample.tick)) continue;
    StrandId strand = options.told_apart(sample.strand);
    uint64_t key = uint64_t{raw(sample.stack)} << 32 | raw(strand);
    auto [place, fresh] = places.try_emplace(key, rows.size());
    if (fresh) {
      Row& row = rows.emplace_back();
      row.image = image;
      row.stack = sample.stack;
      row.strand = strand;
    }
    Amounts& amounts = rows[place->second].amounts;
    amounts.cpu_ns += sample.nanoseconds;
    ++amounts.cpu_samples;
  }
  return rows;
}

std::unique_ptr<Accounts> cpu_accounts(const CpuSamples& samples, const trace::Tables& tables,
                                       const Selection& selection, const Window& window,
                                       const TallyOptions& options) {
  auto accounts = std::make_unique<Accounts>(selection, window, options);
  accounts->restore(samples.phases());
  accounts->tally_to_restore()->add_cpu(cpu_rows(samples, tables, selection, window, options));
  return accounts;
}

}  // namespace malloscope::analyze
