// SPDX-License-Identifier: Apache-2.0
// Amounts of a window are sums over its steps; what is live at its end is the sum over all steps up
// to there. The peak of a window is that of the first of its highest steps, or what was there when
// it began; and a cell's share of it is what the cell had at that step's beginning and the share's
// part in the step. Long runs of steps are taken from the groups.

#include "analyze/index.h"

#include <algorithm>
#include <utility>

namespace malloscope::analyze {

// Sums of what a file says may overflow, but must not surprise.
static void add_to(int64_t* sum, int64_t value) {
  *sum = static_cast<int64_t>(static_cast<uint64_t>(*sum) + static_cast<uint64_t>(value));
}

Index::Index(IndexFacts facts, std::vector<IndexCell> cells, std::unique_ptr<IndexBlocks> blocks)
    : facts_(std::move(facts)), cells_(std::move(cells)), blocks_(std::move(blocks)) {
  for (const IndexCell& cell : cells_) usual_sizes_.push_back(cell.usual_size);
  for (const IndexFacts::Size& size : facts_.sizes)
    sizes_themselves_.push_back(usual_size(size.size));
}

Index::Course Index::course(Selection selection, Window window, Steps steps) const {
  auto [first, last] = steps;
  Course course;
  course.own = selection.pid && facts_.several_processes;
  uint64_t start = 0;
  auto meet = [&](uint32_t step, uint64_t bytes, uint64_t tick) {
    if (bytes <= course.peak.bytes) return;
    course.peak = {bytes, tick};
    course.peak_step = step;
  };
  auto begin = [&] {
    if (window.from_tick != 0) course.peak = {start, window.from_tick};
  };
  if (!course.own) {
    if (first > 0) start = facts_.steps[first - 1].end_bytes;
    begin();
    for (uint32_t step = first; step <= last; ++step)
      meet(step, facts_.steps[step].peak_bytes, facts_.steps[step].peak_tick);
    return course;
  }
  bool begun = false;
  for (const IndexFacts::ProcessStep& here : facts_.process_steps) {
    if (here.pid != *selection.pid) continue;
    if (here.step < first) {
      start = here.end_bytes;
      continue;
    }
    if (!std::exchange(begun, true)) begin();
    if (here.step <= last) meet(here.step, here.peak_bytes, here.peak_tick);
  }
  if (!begun) begin();
  return course;
}

bool Index::is_gone(ImageId id, const Course& course, Steps steps) const {
  const IndexFacts::Image& image = facts_.images[raw(id) - 1];
  if (course.peak_step == IndexFacts::kNever) return image.ended < steps.first;
  if (image.ended == course.peak_step)
    return course.own ? image.before_own_peak : image.before_peak;
  return image.ended < course.peak_step;
}

template <typename Cover, typename ImageOf>
bool Index::sum(const Course& course, Steps steps, Cover&& cover, ImageOf&& image_of,
                std::vector<IndexEntry>* cells) const {
  auto [first, last] = steps;
  std::vector<IndexEntry>& sums = *cells;
  auto add_live = [&](const IndexEntry& entry) {
    add_to(&sums[entry.cell].live_bytes, entry.live_bytes);
    add_to(&sums[entry.cell].live_blocks, entry.live_blocks);
  };
  auto add = [&](const IndexEntry& entry) {
    IndexEntry& sum = sums[entry.cell];
    sum.allocations += entry.allocations;
    sum.reallocations += entry.reallocations;
    sum.temporary += entry.temporary;
    sum.allocated_bytes += entry.allocated_bytes;
    add_live(entry);
  };
  auto add_peak = [&](const IndexEntry& entry) {
    add(entry);
    add_to(&sums[entry.cell].peak_bytes, course.own ? entry.own_peak_bytes : entry.peak_bytes);
  };
  bool begins_with_peak = course.peak_step == IndexFacts::kNever;
  uint32_t peak = begins_with_peak ? first : course.peak_step;
  if (!cover(0, first, add_live) || !cover(first, peak, add)) return false;
  for (size_t i = 0; i < sums.size(); ++i) {
    bool gone = is_gone(image_of(i), course, steps);
    sums[i].peak_bytes = gone ? 0 : sums[i].live_bytes;
    sums[i].own_peak_bytes = gone;  // Here: that nothing is to be added.
  }
  bool all = begins_with_peak ? cover(first, last + 1, add)
                              : cover(peak, peak + 1, add_peak) && cover(peak + 1, last + 1, add);
  for (IndexEntry& sum : sums)
    if (sum.own_peak_bytes) sum.peak_bytes = 0;
  return all;
}

bool Index::sum(const Course& course, Steps steps, std::vector<IndexEntry>* cells) {
  cells->assign(cells_.size(), {});
  auto changes = [&](uint32_t first, uint32_t end, auto&& visit) {
    return cover(first, end, visit);
  };
  auto image_of = [&](size_t cell) { return cells_[cell].image; };
  if (!sum(course, steps, changes, image_of, cells)) return false;
  for_each_straddler(steps,
                     [&](uint32_t cell, uint32_t blocks) { (*cells)[cell].temporary -= blocks; });
  return true;
}

bool Index::sum_sizes(Selection selection, Window window, Steps steps,
                      std::vector<IndexEntry>* sizes) {
  sizes->assign(facts_.sizes.size(), {});
  auto changes = [&](uint32_t first, uint32_t end, auto&& visit) {
    return cover_sizes(first, end, visit);
  };
  auto image_of = [&](size_t size) { return facts_.sizes[size].image; };
  return sum(course(selection, window, steps), steps, changes, image_of, sizes);
}

std::optional<PackedBlock> Index::pack_whole() {
  std::vector<IndexEntry> sums;
  if (!sum(course({}, {}, {}), {}, &sums)) return std::nullopt;
  IndexBlockWriter whole(false, true);
  for (size_t i = 0; i < sums.size(); ++i) {
    sums[i].cell = static_cast<uint32_t>(i);
    whole.add(sums[i], 0);
  }
  return whole.empty() ? PackedBlock{} : whole.finish();
}

void Index::restore_images(const trace::Tables& tables, Window window, Steps steps,
                           Accounts* accounts) const {
  auto [first, last] = steps;
  struct State {
    Totals totals;
    Peak peak;
    bool begun = false;
  };
  std::vector<State> states(facts_.images.size());
  auto begin = [&](size_t image) {
    State& state = states[image];
    if (std::exchange(state.begun, true) || window.from_tick == 0) return;
    if (facts_.images[image].announced < first)
      state.peak = {state.totals.live_bytes, window.from_tick};
  };
  for (const IndexFacts::ImageStep& here : facts_.image_steps) {
    size_t image = raw(here.image) - size_t{1};
    State& state = states[image];
    if (here.step > last) continue;
    if (here.step < first) {
      state.totals.live_bytes += here.change.live_bytes;
      state.totals.live_blocks += here.change.live_blocks;
      continue;
    }
    begin(image);
    state.totals += here.change;
    if (here.peak.bytes > state.peak.bytes) state.peak = here.peak;
  }
  for_each_straddler(steps, [&](uint32_t cell, uint32_t blocks) {
    states[raw(cells_[cell].image) - size_t{1}].totals.temporary -= blocks;
  });
  for (size_t i = 0; i < states.size(); ++i) {
    begin(i);
    if (facts_.images[i].announced != IndexFacts::kNever)
      accounts->restore(tables.images[i], states[i].totals, states[i].peak);
  }
}

bool Index::suits(const TallyOptions& options) {
  auto begins_class = [](uint64_t size) { return (size & (size - 1)) == 0; };
  return !options.details && !options.cpu && !(options.by_size && options.exact_size) &&
         begins_class(options.min_size) && begins_class(options.max_size + 1);
}

std::optional<Index::Steps> Index::steps_of(Window window) const {
  if (window.from_bytes != Window::kNever || window.to_bytes != Window::kNever) return std::nullopt;
  bool from = window.from_tick != 0, to = window.to_tick != UINT64_MAX;
  if (from && !facts_.times.begins_step(window.from_tick)) return std::nullopt;
  if (to && !facts_.times.is_cut(window.to_tick)) return std::nullopt;
  Steps steps;
  if (from) steps.first = facts_.times.step_of(window.from_tick);
  if (to) steps.last = facts_.times.step_of(window.to_tick);
  auto [first, last] = steps;
  if (first > last || (to && facts_.steps[last].mixed)) return std::nullopt;
  // A window is begun by its first event; without one, by the end of all, which may be another.
  bool any = false;
  for (uint32_t step = first; step <= last; ++step) any |= facts_.steps[step].events > 0;
  if (from && !any) return std::nullopt;
  return steps;
}

std::optional<Index::Steps> Index::parting_steps_of(Window window) const {
  std::optional<Steps> steps = steps_of(window);
  if (steps && steps->first > 0 && facts_.steps[steps->first - 1].mixed) return std::nullopt;
  for (const IndexFacts::Image& image : facts_.images)
    if (image.is_odd) return std::nullopt;
  return steps;
}

std::vector<bool> Index::selected(const trace::Tables& tables, Selection selection) const {
  if (tables.images.size() != facts_.images.size()) return {};
  // The highest moment of one image of several is not that of its process.
  if (selection.image && tables.images.size() > 1) return {};
  std::vector<bool> selected(tables.images.size());
  for (size_t i = 0; i < selected.size(); ++i) {
    if (facts_.images[i].pid != tables.images[i].pid) return {};
    selected[i] = selection.contains(tables.images[i]);
  }
  if (std::find(selected.begin(), selected.end(), true) == selected.end()) return {};
  for (const PhasePath& path : facts_.phases.paths)  // A file may say anything.
    for (uint32_t name : path)
      if (name >= tables.mark_names.size()) return {};
  for (const IndexCell& cell : cells_)
    if (cell.stack != StackId::kNone && !tables.image(cell.image).stacks.defined(cell.stack))
      return {};
  return selected;
}

std::unique_ptr<Accounts> Index::totals(const trace::Tables& tables, Selection selection,
                                        Window window, TallyOptions options) const {
  std::optional<Steps> steps = steps_of(window);
  if (!steps || selected(tables, selection).empty()) return nullptr;
  auto accounts = std::make_unique<Accounts>(selection, window, options);
  accounts->restore(facts_.phases);
  restore_images(tables, window, *steps, accounts.get());
  accounts->restore(course(selection, window, *steps).peak, facts_.last_tick);
  return accounts;
}

std::unique_ptr<Accounts> Index::leaks(const trace::Tables& tables, Selection selection,
                                       Window window, TallyOptions options) const {
  TallyOptions kind = options;
  kind.details = false;
  kind.min_size = 0, kind.max_size = UINT64_MAX;
  if (!suits(kind) || !options.details || options.overhead || options.call_times) return nullptr;
  std::optional<Steps> steps = parting_steps_of(window);
  if (!steps) return nullptr;
  std::vector<bool> selected = this->selected(tables, selection);
  if (selected.empty()) return nullptr;

  options.sparse = true;
  std::unique_ptr<Accounts> accounts = totals(tables, selection, window, options);
  // As Tally::left has them.
  struct Time {
    uint64_t begin, end;
  };
  std::vector<Time> times;
  for (size_t i = 0; i < tables.images.size(); ++i) {
    const trace::Image& image = tables.images[i];
    bool ended = facts_.images[i].ended != IndexFacts::kNever &&
                 !(image.end_tick && *image.end_tick > window.to_tick);
    uint64_t last = ended ? facts_.images[i].last_tick : facts_.last_tick;
    times.push_back({std::max(image.start_tick, window.from_tick), std::min(last, window.to_tick)});
  }
  std::array<bool, 65> is_cut;  // By size class.
  for (unsigned i = 0; i < is_cut.size(); ++i)
    is_cut[i] = cuts_class(options.min_size, options.max_size, i);
  bool exact = true;
  std::vector<uint32_t> place_of(cells_.size());  // In what is left, + 1.
  std::vector<std::pair<uint32_t, Tally::Left>> cells;
  bool good = for_each_live(steps->last, [&](const IndexLife& life) {
    size_t image = raw(cells_[life.cell].image) - size_t{1};
    if (!(life.roles & IndexLife::kHeld) || life.began < steps->first || !selected[image]) return;
    if (is_cut[cells_[life.cell].size_class]) {
      exact &= !life.is_varied;  // Else some may be asked for and some not.
      if (life.size() < options.min_size || life.size() > options.max_size) return;
    }
    auto [begin, end] = times[image];
    uint64_t born = facts_.times.begin_of(life.born);
    uint64_t first_tick = born + life.first_birth, last_tick = born + life.last_birth;
    unsigned first = Tally::period(first_tick, begin, end);
    unsigned last = Tally::period(last_tick, begin, end);
    exact &= life.blocks <= 2 || last <= first + 1;  // Else some may be in between.
    uint32_t& place = place_of[life.cell];
    if (place == 0) {
      cells.push_back({life.cell, {}});
      place = static_cast<uint32_t>(cells.size());
    }
    Tally::Left& left = cells[place - 1].second;
    left.blocks += life.blocks;
    left.bytes += life.bytes;
    left.first_tick = std::min(left.first_tick, first_tick);
    left.last_tick = std::max(left.last_tick, last_tick);
    left.periods |= 1U << first | 1U << last;
  });
  if (!good || !exact) return nullptr;
  for (const auto& [cell, left] : cells) {
    const IndexCell& c = cells_[cell];
    accounts->tally_to_restore()->restore(c.image, c.stack, c.strand, c.size_class, left);
  }
  return accounts;
}

std::unique_ptr<Accounts> Index::answer(const trace::Tables& tables, Selection selection,
                                        Window window, TallyOptions options) {
  if (!suits(options) || (window.from_tick != 0 && options.only_made_in_window)) return nullptr;
  std::optional<Steps> steps = steps_of(window);
  if (!steps) return nullptr;
  std::vector<bool> selected = this->selected(tables, selection);
  if (selected.empty()) return nullptr;

  auto accounts = std::make_unique<Accounts>(selection, window, options);
  accounts->restore(facts_.phases);
  restore_images(tables, window, *steps, accounts.get());
  Course course = this->course(selection, window, *steps);
  accounts->restore(course.peak, facts_.last_tick);
  auto restore = [&](const IndexEntry& sum) {
    const IndexCell& cell = cells_[sum.cell];
    if (!selected[raw(cell.image) - 1]) return;
    Counts counts;
    counts.allocations = sum.allocations;
    counts.reallocations = sum.reallocations;
    counts.allocated_bytes = sum.allocated_bytes;
    counts.live_bytes = static_cast<uint64_t>(sum.live_bytes);
    counts.live_blocks = static_cast<uint64_t>(sum.live_blocks);
    counts.temporary = sum.temporary;
    counts.peak_bytes = static_cast<uint64_t>(sum.peak_bytes);
    accounts->tally_to_restore()->restore(cell.image, cell.stack, cell.strand, cell.size_class,
                                          counts);
  };
  if (steps->are_all() && !course.own) {
    IndexBlockReader* whole = blocks_->whole();
    if (whole ? !whole->for_each(usual_sizes_, restore) : blocks_->damaged()) return nullptr;
    return accounts;
  }
  std::vector<IndexEntry> sums;
  if (!sum(course, *steps, &sums)) return nullptr;
  for (size_t i = 0; i < sums.size(); ++i) {
    sums[i].cell = static_cast<uint32_t>(i);
    restore(sums[i]);
  }
  return accounts;
}

}  // namespace malloscope::analyze
