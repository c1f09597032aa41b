// SPDX-License-Identifier: Apache-2.0
// The list of the views, and what several of them need.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analyze/cell_rows.h"
#include "analyze/numbers.h"
#include "analyze/view.h"
#include "symbols/name_rules.h"

namespace malloscope::analyze {
namespace {

constexpr ViewKind kViews[] = {
    {"peak", "what the heap held at its highest moment, or --at any", peak_view, true},
    {"lifetimes", "how long blocks live, by site", lifetimes_view},
    {"sizes", "which sizes are asked for, and when", sizes_view},
    {"threads", "who allocates and who frees", threads_view},
    {"phases", "what each phase of the program allocates and leaves", phases_view},
    {"growth", "blocks that grow step by step, and the reserve() to say instead", growth_view},
    {"churn", "blocks thrown away at once, and how many a second", churn_view},
    {"rss", "why more is resident than the heap holds", rss_view, false, false, false},
    {"mappings", "what is still mapped by mmap, by site", mappings_view, true, true, false},
    {"pages", "pages that live blocks are spread over, by site", pages_view, true},
};

}  // namespace

std::span<const ViewKind> views() { return kViews; }

const ViewKind* find_view(std::string_view name) {
  auto found = std::ranges::find(kViews, name, &ViewKind::name);
  return found == std::end(kViews) ? nullptr : found;
}

static std::string names_with_instant() {
  std::string text;
  for (const ViewKind& view : kViews)
    if (view.has_instant) text += fmt::format("{}{}", text.empty() ? "" : ", ", view.name);
  return text;
}

Result<void> suits(const ViewKind& view, const Query& query, bool at) {
  if (at && !view.has_instant)
    return fail(fmt::format(
        "--at is one instant, and --view {} is about a range: use --from and --to (--at works "
        "with {})",
        view.name, names_with_instant()));
  if (!view.has_stacks && (!query.frames.empty() || query.tells_strands()))
    return fail(fmt::format(
        "--view {} is about whole processes; --focus, --ignore, --only-under, --hide, --where, "
        "--type, --module, --thread and --phase have no meaning there",
        view.name));
  if (!view.has_sizes && (query.tally.min_size > 0 || query.tally.max_size < UINT64_MAX))
    return fail(fmt::format(
        "--view {} is not about single blocks; --min-size and --max-size have no meaning there",
        view.name));
  return {};
}

NamedFrame SiteIndex::named(FrameId id) {
  const Frame& frame = reading_.frames().frame(id);
  return {query_.full_names ? frame.function : symbols::short_name(frame.function),
          frame.file,
          frame.line,
          frame.module,
          frame.function,
          frame.column};
}

std::optional<size_t> SiteIndex::site_of(ImageId image, StackId stack, StrandId strand) {
  if (query_.tells_strands()) return find_site(image, stack, strand);
  if (raw(image) >= sites_.size()) sites_.resize(raw(image) + size_t{1});
  std::vector<uint32_t>& sites = sites_[raw(image)];
  if (raw(stack) >= sites.size())
    sites.resize(std::max(raw(stack) + size_t{1}, sites.size() * 2), kNotAsked);
  uint32_t& known = sites[raw(stack)];
  if (known == kNotAsked) {
    std::optional<size_t> site = find_site(image, stack, strand);
    known = site ? static_cast<uint32_t>(*site) + kFirstSite : uint32_t{kLeftOut};
  }
  return known == kLeftOut ? std::nullopt : std::optional<size_t>(known - kFirstSite);
}

std::optional<size_t> SiteIndex::find_site(ImageId image, StackId stack, StrandId strand) {
  Row row;
  row.image = image;
  row.stack = stack;
  row.strand = strand;
  std::optional<FrameId> frame;
  if (!selector_.select(row, &frame)) return std::nullopt;
  uint64_t key = frame ? static_cast<uint64_t>(*frame) : UINT64_MAX;
  auto [place, fresh] = places_.try_emplace(key, frames_.size());
  if (fresh) frames_.push_back(frame ? named(*frame) : NamedFrame{"[hidden]", "", 0, ""});
  return place->second;
}

std::vector<NamedFrame> SiteIndex::stack(ImageId image, StackId stack, StrandId strand) {
  Row row;
  row.image = image;
  row.stack = stack;
  row.strand = strand;
  std::vector<NamedFrame> frames;
  if (selector_.select(row, &shown_))
    for (FrameId frame : shown_) frames.push_back(named(frame));
  return frames;
}

CellSites::CellSites(const Index& index, Reading* reading, Query query) : query_(std::move(query)) {
  sites_.emplace(reading, query_);
  site_of_cell_.reserve(index.cells().size());
  for (const IndexCell& cell : index.cells()) {
    std::optional<size_t> site = sites_->site_of(cell.image, cell.stack, cell.strand);
    site_of_cell_.push_back(site ? static_cast<uint32_t>(*site) : kNobody);
  }
}

CellSites::CellSites(std::shared_ptr<const CellSites> all, const std::vector<bool>& asked)
    : all_(std::move(all)), site_of_cell_(all_->site_of_cell_) {
  for (size_t i = 0; i < site_of_cell_.size(); ++i)
    if (!asked[i]) site_of_cell_[i] = kNobody;
}

IndexedWindow::Sizes::Sizes(const IndexedWindow& window)
    : least_(window.query.tally.min_size), most_(window.query.tally.max_size) {
  std::vector<uint32_t> cells(window.index.cells().size(), 0);
  std::optional<IndexSums::CutSizes> cut = cut_classes(window.index, least_, most_, &cells);
  cuts_ = cut.has_value();
  if (!cut) return;
  for (uint32_t row : cut->row_of_cell) is_cut_.push_back(row != IndexSums::kNobody);
}

TimeSlices::TimeSlices(const Window& window, const trace::Overview& overview, size_t count)
    : from_(std::max(window.from_tick, overview.header.start_tick)),
      to_(std::min(window.to_tick, overview.end_tick)),
      count_(count) {
  to_ = std::max(to_, from_ + 1);
  width_ = (to_ - from_ + count - 1) / count;
}

size_t TimeSlices::of(uint64_t tick) const {
  return tick <= from_ ? 0 : std::min<size_t>((tick - from_) / width_, count_ - 1);
}

uint64_t TimeSlices::begin(size_t slice) const { return std::min(from_ + slice * width_, to_); }

std::string thread_name(const trace::Image& image, ThreadId thread) {
  if (raw(thread) == 0 || raw(thread) > image.threads.size()) return "(unknown thread)";
  const trace::Thread& found = image.threads[raw(thread) - 1];
  if (found.tid == 0) return "(threads after their end)";
  return found.name.empty() ? fmt::format("thread {}", found.tid)
                            : fmt::format("{} ({})", found.name, found.tid);
}

std::string size_range(unsigned size_class) {
  if (size_class == 0) return "0 B";
  uint64_t low = uint64_t{1} << (size_class - 1);
  if (low == 1) return "1 B";
  if (low < 1024) return fmt::format("{} - {} B", low, low * 2 - 1);
  // Rounded, the last size of a class would look like the first of the next, so that is named.
  static constexpr std::array kUnits = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = (size_class - 1) / 10 - 1;
  uint64_t number = low >> 10 * (unit + 1);
  if (size_class == 64) return fmt::format("{} {} and more", number, kUnits[unit]);
  return number == 512 ? fmt::format("512 {} - 1 {}", kUnits[unit], kUnits[unit + 1])
                       : fmt::format("{} - {} {}", number, number * 2, kUnits[unit]);
}

void add_totals(const Reading& reading, Answer* answer, const std::string& within, double units) {
  const Totals totals = reading.accounts().totals();
  Peak peak = reading.accounts().peak();
  auto add = [&](const char* key, uint64_t value) {
    answer->facts.emplace_back(within + "." + key,
                               units == 1 ? Cell(value) : Rate{static_cast<double>(value) / units});
  };
  if (reading.accounts().tally().options().cpu) {
    Amounts sum;
    reading.for_each_row([&](const Row& row) { sum += row.amounts; });
    add("cpu_ns", sum.cpu_ns);
    add("cpu_samples", sum.cpu_samples);
    return;
  }
  add("allocations", totals.allocations);
  add("reallocations", totals.reallocations);
  add("frees", totals.frees);
  add("inherited_frees", totals.inherited_frees);
  add("allocated_bytes", totals.allocated_bytes);
  add("freed_bytes", totals.freed_bytes);
  add("live_bytes", totals.live_bytes);
  add("live_blocks", totals.live_blocks);
  add("peak_bytes", peak.bytes);
  add("temporary", totals.temporary);
  add("failed", totals.failed);
  add("unmatched_frees", totals.unmatched_frees);
  add("order_violations", totals.order_violations);
  answer->facts.emplace_back(within + ".peak_time_ns", reading.tables().time_ns(peak.tick));
}

void add_clock_note(const Reading& reading, Answer* answer) {
  if (reading.tables().header.has_call_times()) return;
  for (const trace::Image* image : reading.selected())
    if (image->threads.size() <= 1) {
      answer->notes.push_back(
          "While a program has one thread, the clock is read for every eighth call, or once a "
          "millisecond: a shorter life may be told as none, or as up to that. Record with "
          "malloscope run --time-calls to have it read for each.");
      return;
    }
}

void add_filter_note(uint64_t shown, uint64_t whole, Answer* answer) {
  if (shown == whole) return;
  answer->notes.push_back(
      shown == 0 ? "Nothing matches the filters."
                 : fmt::format("The filters let {} through.", percent_text(shown, whole)));
}

}  // namespace malloscope::analyze
