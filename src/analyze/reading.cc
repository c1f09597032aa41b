// SPDX-License-Identifier: Apache-2.0
#include "analyze/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analyze/symbol_naming.h"
#include "trace/event_stream.h"

namespace malloscope::analyze {

// From names to ticks. "peak" costs a pass of its own, since nothing but the events tells it.
static Result<Window> window_of(const std::string& path, const Query& query) {
  if (!query.from && !query.to) return Window{};
  Result<trace::Overview> overview = trace::overview(path);
  if (!overview) return std::unexpected(overview.error());
  uint64_t peak_tick = 0;
  if ((query.from && query.from->needs_peak()) || (query.to && query.to->needs_peak())) {
    Heap heap(query.selection);
    Result<trace::Tables> tables = trace::stream(path, &heap);
    if (!tables) return std::unexpected(tables.error());
    peak_tick = heap.peak().tick;
  }
  auto tick = [&](const TimePoint& point) {
    return tick_of(point, overview->header, overview->end_tick, peak_tick);
  };
  Window window;
  if (query.from) window.from_tick = tick(*query.from);
  if (query.to) window.to_tick = tick(*query.to);
  // Up to a moment is with it, so from there on is without: each event is in one of the two.
  auto behind = [&](uint64_t moment) {
    return moment > overview->header.start_tick ? moment + 1 : moment;
  };
  auto seconds = [&](uint64_t ticks) {
    return static_cast<double>(ticks - overview->header.start_tick) * overview->header.ns_per_tick /
           1e9;
  };
  if (window.from_tick > window.to_tick)
    return fail_usage(fmt::format("--from ({:.3f} s) is after --to ({:.3f} s)",
                                  seconds(window.from_tick), seconds(window.to_tick)));
  if (window.from_tick > overview->end_tick)
    return fail_usage(fmt::format("--from ({:.3f} s) is after the end of the recording ({:.3f} s)",
                                  seconds(window.from_tick), seconds(overview->end_tick)));
  if (query.from) window.from_tick = behind(window.from_tick);
  return window;
}

Result<std::unique_ptr<Reading>> Reading::open(const std::string& path, const Query& query,
                                               Hooks hooks) {
  Result<Window> window = window_of(path, query);
  if (!window) return std::unexpected(window.error());
  TallyOptions tally = query.tally;
  if (!query.threads.empty()) tally.by_thread = true;
  auto accounts = std::make_unique<Accounts>(query.selection, *window, tally);
  if (hooks.attach) hooks.attach(accounts.get());
  Result<trace::Tables> tables = trace::stream(path, accounts.get(), {std::move(hooks.progress)});
  if (!tables) return std::unexpected(tables.error());
  accounts->finish();
  auto naming = std::make_unique<SymbolNaming>(query, tables->names, std::move(hooks.naming));
  tables->names = {};
  return std::make_unique<Reading>(path, std::move(*tables), std::move(accounts),
                                   std::move(naming));
}

Reading::Reading(std::string path, trace::Tables tables, std::unique_ptr<Accounts> accounts,
                 std::unique_ptr<Naming> naming)
    : path_(std::move(path)),
      tables_(std::move(tables)),
      accounts_(std::move(accounts)),
      naming_(std::move(naming)),
      frames_(tables_, *naming_) {}

Row Reading::with_details(Row row) const {
  if (!accounts_->tally().options().details) return row;
  row.amounts.lifetime_ns = static_cast<uint64_t>(static_cast<double>(row.details.lifetime_ticks) *
                                                  tables_.header.ns_per_tick);
  row.amounts.allocator_ns = tables_.header.cycles_ns(row.details.call_cycles);
  Allocator allocator = allocator_of(tables_.image(row.image));
  row.amounts.overhead_bytes = row.details.overhead_bytes[static_cast<size_t>(allocator)];
  return row;
}

FrameTable& Reading::frames() {
  if (!std::exchange(prepared_, true)) naming_->prepare(places_of(selected()));
  return frames_;
}

const std::vector<Site>& Reading::sites() {
  if (!sites_) sites_ = analyze::sites(*accounts_, &frames());
  return *sites_;
}

std::string Reading::remark(const std::string& module_path) {
  for (const trace::Image& image : tables_.images)
    for (const trace::Module& module : image.modules)
      if (module.path == module_path) return naming_->remark({module.path, module.build_id});
  return "";
}

std::vector<const trace::Image*> Reading::selected() const {
  std::vector<const trace::Image*> images;
  for (const trace::Image& image : tables_.images)
    if (accounts_->selection().contains(image)) images.push_back(&image);
  return images;
}

uint64_t Reading::end_tick() const {
  if (tables_.end_tick) return *tables_.end_tick;
  uint64_t tick = accounts_->last_tick();
  for (const trace::Image& image : tables_.images) {
    tick = std::max(tick, image.end_tick.value_or(0));
    if (!image.rss.empty()) tick = std::max(tick, image.rss.back().tick);
  }
  return tick;
}

}  // namespace malloscope::analyze
