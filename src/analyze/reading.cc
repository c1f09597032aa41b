// SPDX-License-Identifier: Apache-2.0
#include "analyze/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "analyze/cpu_samples.h"
#include "analyze/indexed_trace.h"
#include "analyze/numbers.h"
#include "analyze/symbol_naming.h"
#include "trace/event_stream.h"

namespace malloscope::analyze {

Result<Window> window_of(const Query& query, const trace::Overview& overview, Peak peak,
                         std::string* past_end) {
  if (peak.bytes == 0) peak.tick = overview.header.start_tick;
  auto tick = [&](const TimePoint& point) {
    return tick_of(point, overview.header, overview.end_tick, peak.tick);
  };
  Window window;
  if (query.from) window.from_tick = tick(*query.from);
  if (query.to) window.to_tick = tick(*query.to);
  // Up to a moment is with it, so from there on is without: each event is in one of the two.
  auto behind = [&](uint64_t moment) {
    return moment > overview.header.start_tick ? moment + 1 : moment;
  };
  auto seconds = [&](uint64_t ticks) {
    return static_cast<double>(ticks - overview.header.start_tick) * overview.header.ns_per_tick /
           1e9;
  };
  if (window.from_tick > window.to_tick)
    return fail_usage(fmt::format("--from ({:.3f} s) is after --to ({:.3f} s)",
                                  seconds(window.from_tick), seconds(window.to_tick)));
  if (window.from_tick > overview.end_tick)
    return fail_usage(fmt::format("--from ({:.3f} s) is after the end of the recording ({:.3f} s)",
                                  seconds(window.from_tick), seconds(overview.end_tick)));
  if (query.from && query.from->needs_peak() && peak.bytes > 0)
    window.from_bytes = peak.bytes;
  else if (query.from)
    window.from_tick = behind(window.from_tick);
  if (query.to && query.to->needs_peak() && peak.bytes > 0) window.to_bytes = peak.bytes;
  if (past_end && query.to && window.to_tick > overview.end_tick)
    *past_end = fmt::format(
        "The recording ended at {:.3f} s, before the {:.3f} s that were asked for: its end is "
        "shown.",
        seconds(overview.end_tick), seconds(window.to_tick));
  return window;
}

// "peak" costs a pass of its own, since nothing but the events tells it.
static Result<Window> window_of(const std::string& path, const Query& query,
                                std::string* past_end) {
  if (!query.from && !query.to) return Window{};
  Result<trace::Overview> overview = trace::overview(path);
  if (!overview) return std::unexpected(overview.error());
  Peak peak;
  if ((query.from && query.from->needs_peak()) || (query.to && query.to->needs_peak())) {
    Heap heap(query.selection);
    Result<trace::Tables> tables = trace::stream(path, &heap);
    if (!tables) return std::unexpected(tables.error());
    peak = heap.peak();
  }
  return window_of(query, *overview, peak, past_end);
}

namespace {
struct Indexed {
  trace::Tables tables;
  std::unique_ptr<Accounts> accounts;
};
}  // namespace

// What a pass over all events would give, without one, or with one that leaves an index for the
// next time. Nothing, if that cannot be had or is not worth it; then nothing is wrong.
static std::optional<Indexed> from_index(const std::string& path, const Query& query, Window window,
                                         const TallyOptions& tally,
                                         const std::function<void(double)>& progress) {
  if (!Index::suits(tally) || !may_be_indexed(path)) return std::nullopt;
  Result<trace::Overview> overview = trace::overview(path);
  if (!overview) return std::nullopt;
  IndexTimes times(overview->header, overview->end_tick);
  if (window.from_bytes != Window::kNever || window.to_bytes != Window::kNever) return std::nullopt;
  if ((window.from_tick != 0 && !times.begins_step(window.from_tick)) ||
      (window.to_tick != UINT64_MAX && !times.is_cut(window.to_tick)))
    return std::nullopt;
  std::optional<IndexedTrace> opened = open_indexed(path, *overview, IndexAs::kFile, progress);
  if (!opened) return std::nullopt;
  std::unique_ptr<Accounts> accounts =
      opened->index->answer(opened->tables, query.selection, window, tally);
  if (!accounts) return std::nullopt;
  return Indexed{std::move(opened->tables), std::move(accounts)};
}

// CPU time is among the tables: no event has to be read.
static Result<std::unique_ptr<Reading>> open_cpu(const std::string& path, const Query& query,
                                                 Window window, Reading::Hooks hooks,
                                                 std::string past_end) {
  trace::Listener nobody;
  Result<trace::Tables> tables = trace::stream(path, &nobody, {std::move(hooks.progress), false});
  if (!tables) return std::unexpected(tables.error());
  auto accounts =
      cpu_accounts(CpuSamples(*tables), *tables, query.selection, window, query.tally_of_strands());
  auto naming = std::make_unique<SymbolNaming>(query, tables->names, std::move(hooks.naming));
  tables->names = decltype(tables->names)();
  return std::make_unique<Reading>(path, std::move(*tables), std::move(accounts), std::move(naming),
                                   std::move(past_end));
}

Result<std::unique_ptr<Reading>> Reading::open(const std::string& path, const Query& query,
                                               Hooks hooks) {
  std::string past_end;
  Result<Window> window = window_of(path, query, &past_end);
  if (!window) return std::unexpected(window.error());
  TallyOptions tally = query.tally_of_strands();
  if (tally.cpu) return open_cpu(path, query, *window, std::move(hooks), std::move(past_end));
  if (!hooks.attach) {
    if (auto indexed = from_index(path, query, *window, tally, hooks.progress)) {
      auto naming =
          std::make_unique<SymbolNaming>(query, indexed->tables.names, std::move(hooks.naming));
      indexed->tables.names = decltype(indexed->tables.names)();
      return std::make_unique<Reading>(path, std::move(indexed->tables),
                                       std::move(indexed->accounts), std::move(naming), past_end);
    }
  }
  auto accounts = std::make_unique<Accounts>(query.selection, *window, tally);
  if (hooks.attach) hooks.attach(accounts.get());
  Result<trace::Tables> tables = trace::stream(path, accounts.get(), {std::move(hooks.progress)});
  if (!tables) return std::unexpected(tables.error());
  accounts->finish();
  auto naming = std::make_unique<SymbolNaming>(query, tables->names, std::move(hooks.naming));
  tables->names = decltype(tables->names)();
  return std::make_unique<Reading>(path, std::move(*tables), std::move(accounts), std::move(naming),
                                   past_end);
}

Reading::Reading(std::string path, trace::Tables tables, std::unique_ptr<Accounts> accounts,
                 std::unique_ptr<Naming> naming, std::string past_end)
    : path_(std::move(path)),
      past_end_(std::move(past_end)),
      tables_(std::move(tables)),
      accounts_(std::move(accounts)),
      naming_(std::move(naming)),
      frames_(tables_, *naming_) {}

// What `more` adds to a sum, where `ns` tells either in nanoseconds.
template <typename Ns>
static uint64_t added_ns(uint64_t* sum, uint64_t more, Ns&& ns) {
  uint64_t before = ns(*sum);
  if (__builtin_add_overflow(*sum, more, sum)) *sum = UINT64_MAX;
  return ns(*sum) - before;
}

uint64_t Reading::TimeSoFar::add_lifetime(uint64_t ticks, const trace::Header& header) {
  return added_ns(&lifetime_ticks_, ticks, [&](uint64_t t) {
    double ns = static_cast<double>(t) * header.ns_per_tick;
    return ns < 1.8e19 ? static_cast<uint64_t>(ns) : UINT64_MAX;
  });
}

uint64_t Reading::TimeSoFar::add_calls(uint64_t cycles, const trace::Header& header) {
  return added_ns(&call_cycles_, cycles, [&](uint64_t c) { return header.cycles_ns(c); });
}

Row Reading::with_details(Row row, TimeSoFar* sums) const {
  if (!accounts_->tally().options().details) return row;
  row.amounts.lifetime_ns = sums->add_lifetime(row.details.lifetime_ticks, tables_.header);
  row.amounts.allocator_ns = sums->add_calls(row.details.call_cycles, tables_.header);
  Allocator allocator = allocator_of(tables_.image(row.image));
  row.amounts.overhead_bytes = row.details.overhead_bytes[static_cast<size_t>(allocator)];
  return row;
}

FrameTable& Reading::frames() {
  if (!std::exchange(prepared_, true)) {
    std::vector<symbols::Symbolizer::Request> places = places_of(selected());
    for (const symbols::Symbolizer::Request& place : places) modules_.push_back(place.file);
    naming_->prepare(std::move(places));
  }
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

std::set<std::string> Reading::lost_modules() const {
  std::set<std::string> paths;
  for (const symbols::ModuleFile& module : modules_)
    if (naming_->lost(module)) paths.insert(module.path);
  return paths;
}

std::string Reading::sample_sentence() const {
  unsigned log2 = tables_.header.sample_log2();
  // The CPU time is measured, whichever blocks are in the sample.
  if (log2 == 0 || accounts_->tally().options().cpu) return {};
  return fmt::format(
      "Only a sample was recorded, about one block for each {} allocated: all figures are "
      "estimates. {} in small blocks are right to about 10 %, {} to about 1 %; a realloc counts as "
      "a "
      "free and an allocation",
      bytes_text(uint64_t{1} << log2), bytes_text(uint64_t{128} << log2),
      bytes_text(uint64_t{16384} << log2));
}

std::vector<std::string> Reading::missing_names() const {
  std::vector<std::string> sentences;
  for (const symbols::ModuleFile& module : modules_) {
    if (!naming_->nameless(module)) continue;
    if (std::string why = naming_->remark(module); !why.empty())
      sentences.push_back(std::move(why));
  }
  constexpr size_t kMost = 3;
  if (sentences.size() > kMost + 1) {
    std::string rest =
        fmt::format("Of {} more modules no names are known.", sentences.size() - kMost);
    sentences.resize(kMost);
    sentences.push_back(std::move(rest));
  }
  return sentences;
}

std::vector<const trace::Image*> Reading::selected() const {
  std::vector<const trace::Image*> images;
  for (const trace::Image& image : tables_.images)
    if (accounts_->selection().contains(image)) images.push_back(&image);
  return images;
}

Reading::Range Reading::range() const {
  const Window& window = accounts_->window();
  return {tables_.time_ns(window.begin_tick()),
          tables_.time_ns(std::min(window.to_tick, end_tick()))};
}

uint64_t Reading::end_tick() const {
  if (tables_.end_tick) return *tables_.end_tick;
  uint64_t tick = std::max(accounts_->last_tick(), tables_.epoch_tick);
  for (const trace::Image& image : tables_.images) {
    tick = std::max(tick, image.end_tick.value_or(0));
    if (!image.rss.empty()) tick = std::max(tick, image.rss.back().tick);
    if (!image.cpu.empty()) tick = std::max(tick, image.cpu.back().tick);
  }
  return tick;
}

}  // namespace malloscope::analyze
