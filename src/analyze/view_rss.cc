// SPDX-License-Identifier: Apache-2.0
// Why more is resident than the heap holds. For one process (sizes of processes that share
// pages cannot be added): what was asked for, what the allocator sets aside for
// it, what is mapped and what is resident, over time; and what the highest resident
// size was made of. Heap figures are of every event, so no peak is lost; the resident size
// is a sample every 10 ms, and the kernel's own maximum.

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "analyze/mapped_ranges.h"
#include "analyze/numbers.h"
#include "analyze/usable_size.h"
#include "analyze/view.h"

namespace malloscope::analyze {
namespace {

using Kind = Column::Kind;
constexpr size_t kRows = 20;
constexpr size_t kSlots = 20 * kRows;  // Finer than what is shown, to say what was at one moment.

// The highest of each in a slot of time.
struct Moment {
  uint64_t live = 0;
  UsableBytes usable = {};
  uint64_t mapped = 0;  // By the program and its libraries, not by the allocator.

  void raise_to(const Moment& other) {
    live = std::max(live, other.live);
    for (size_t i = 0; i < kAllocators; ++i) usable[i] = std::max(usable[i], other.usable[i]);
    mapped = std::max(mapped, other.mapped);
  }
};

class RssView : public View, public HeapObserver {
 public:
  void attach(Heap* heap, const trace::Overview& overview) override {
    slices_ = TimeSlices(heap->window(), overview, kSlots);
    heap->add_observer(this);
  }

  void made(ImageId image, const Block& block, const wire::Event& event, bool counts) override {
    Course& course = at(image, event.tick);
    add(&course.now, block);
    course.note(counts);
  }
  void changed(ImageId image, const Block& before, const Block& now, const wire::Event& event,
               bool counts) override {
    Course& course = at(image, event.tick);
    take(&course.now, before);
    add(&course.now, now);
    course.note(counts);
  }
  void gone(ImageId image, const Block& block, End, const wire::Event& event,
            bool counts) override {
    Course& course = at(image, event.tick);
    take(&course.now, block);
    course.note(counts);
  }
  void mapped(const wire::Event& event, StrandId, bool counts) override {
    Course& course = at(event.image, event.tick);
    course.ranges.apply(event);
    course.now.mapped = course.ranges.bytes() - course.ranges.allocator_bytes();
    course.note(counts);
  }

  Answer answer(Reading* reading, const Query& query) override {
    (void)query;
    Answer answer;
    const trace::Image* image = largest(*reading);
    if (!image) {
      answer.headline = "No process was recorded";
      add_totals(*reading, &answer);
      return answer;
    }
    Course& course = course_of(image->id);
    uint64_t end = image->end_tick.value_or(reading->end_tick());
    if (end < reading->accounts().window().from_tick) course.slots.assign(kSlots, {});
    course.advance_to(slices_.of(std::min(end, reading->accounts().window().to_tick)));
    Allocator allocator = allocator_of(*image);
    auto usable = [&](const Moment& m) { return m.usable[static_cast<size_t>(allocator)]; };

    // What was resident in each slot, as far as there are samples of it.
    const Window& window = reading->accounts().window();
    std::vector<uint64_t> resident(kSlots, 0);
    uint64_t before = 0;  // The last sample that is too early.
    trace::MemorySample highest;
    for (const trace::MemorySample& sample : image->rss) {
      if (sample.tick < window.from_tick) before = sample.bytes;
      if (sample.tick < window.from_tick || sample.tick > window.to_tick) continue;
      uint64_t& slot = resident[slices_.of(sample.tick)];
      slot = std::max(slot, sample.bytes);
      if (sample.bytes > highest.bytes) highest = sample;
    }
    // The kernel's maximum is of the whole life of the process, and its moment is not known.
    bool whole_life = window.from_tick == 0 && window.to_tick == UINT64_MAX;
    uint64_t peak_rss = whole_life ? std::max(image->peak_rss_bytes, highest.bytes) : highest.bytes;

    Moment then;                               // At the highest sample.
    uint64_t earlier = usable(course.before);  // The most that the allocator had to set aside.
    size_t slot = highest.bytes > 0 ? slices_.of(highest.tick) : kSlots - 1;
    for (size_t i = 0; i <= slot; ++i) earlier = std::max(earlier, usable(course.slots[i]));
    if (highest.bytes > 0) {
      then = course.slots[slot];
    } else {
      for (const Moment& moment : course.slots) then.raise_to(moment);
    }
    explain(*image, then, usable(then), earlier, peak_rss, allocator, &answer);
    add_totals(*reading, &answer);
    notes(*reading, *image, highest, peak_rss, allocator, &answer);
    over_time(course, slices_.of(image->start_tick), resident, before, reading->tables(), usable,
              &answer);
    return answer;
  }

 private:
  // Of one image.
  struct Course {
    Moment now, before;  // Before the window, the highest of each.
    MappedRanges ranges;
    size_t slot = 0;
    std::vector<Moment> slots = std::vector<Moment>(kSlots);

    // What was there at the end of a slot is there at the beginning of the next.
    void advance_to(size_t to) {
      while (slot < to) slots[++slot] = now;
    }
    // What was before the window is nothing of it, but what is there when it begins.
    void note(bool counts) {
      if (counts) return slots[slot].raise_to(now);
      before.raise_to(now);
      slots[0] = now;
    }
  };

  Course& course_of(ImageId image) {
    if (raw(image) >= courses_.size()) courses_.resize(raw(image) + size_t{1});
    return courses_[raw(image)];
  }
  Course& at(ImageId image, uint64_t tick) {
    Course& course = course_of(image);
    course.advance_to(slices_.of(tick));
    return course;
  }
  static void add(Moment* moment, const Block& block) {
    moment->live += block.bytes();
    UsableBytes bytes = usable_sizes(block.address, block.size);
    for (size_t i = 0; i < kAllocators; ++i) moment->usable[i] += bytes[i] << block.weight_log2;
  }
  static void take(Moment* moment, const Block& block) {
    moment->live -= block.bytes();
    UsableBytes bytes = usable_sizes(block.address, block.size);
    for (size_t i = 0; i < kAllocators; ++i) moment->usable[i] -= bytes[i] << block.weight_log2;
  }

  static const trace::Image* largest(const Reading& reading) {
    const trace::Image* found = nullptr;
    for (const trace::Image* image : reading.selected())
      if (!found || image->peak_rss_bytes > found->peak_rss_bytes) found = image;
    return found;
  }

  static void explain(const trace::Image& image, const Moment& then, uint64_t usable,
                      uint64_t earlier, uint64_t peak_rss, Allocator allocator, Answer* answer) {
    Table table;
    table.key = "parts";
    table.list = false;
    table.columns = {{"bytes", "bytes", Kind::kBytes},
                     {"share", "of RSS", Kind::kShare},
                     {"part", "", Kind::kText, false},
                     {"meaning", "what", Kind::kText}};
    // Each gets what is there of it, but not more than is left to be explained.
    uint64_t left = peak_rss;
    auto part = [&](const char* key, uint64_t bytes, std::string meaning) {
      bytes = std::min(bytes, left);
      left -= bytes;
      table.rows.push_back({{bytes, Share{bytes, peak_rss}, std::string(key), std::move(meaning)}});
      answer->facts.emplace_back(std::string("peak_rss.") + key + "_bytes", bytes);
      return bytes;
    };
    answer->facts = {{"pid", static_cast<uint64_t>(image.pid)},
                     {"allocator", std::string(allocator_name(allocator))},
                     {"peak_rss.bytes", peak_rss}};
    uint64_t recorder = part("recorder", image.recorder_rss_bytes, "the recorder's own");
    uint64_t live = part("live", then.live, "live heap, as it was asked for");
    uint64_t rounding = part("rounding", usable - then.live,
                             fmt::format("rounding to the sizes of {}", allocator_name(allocator)));
    uint64_t mapped = part("mapped", then.mapped, "mapped by the program itself, at most");
    uint64_t kept = part("kept", earlier > usable ? earlier - usable : 0,
                         "freed, and perhaps kept by the allocator, at most");
    uint64_t rest = left;
    table.rows.push_back({{rest, Share{rest, peak_rss}, std::string("unexplained"),
                           std::string("code, libraries, stacks, fragments between blocks")}});
    answer->facts.emplace_back("peak_rss.unexplained_bytes", rest);
    if (peak_rss == 0)
      answer->headline = "The resident size was not recorded";
    else if (then.live > live)
      answer->headline = fmt::format(
          "{} resident at the peak of RSS, less than the {} that were live then: not all of the "
          "heap was "
          "ever touched",
          bytes_text(peak_rss), bytes_text(then.live));
    else
      answer->headline = fmt::format(
          "Of {} resident at the peak of RSS, {} is live heap ({}), {} its rounding, {} mapped, {} "
          "freed "
          "and perhaps kept, {} the recorder's own, {} unexplained",
          bytes_text(peak_rss), percent_text(live, peak_rss), bytes_text(live),
          percent_text(rounding, peak_rss), percent_text(mapped, peak_rss),
          percent_text(kept, peak_rss), percent_text(recorder, peak_rss),
          percent_text(rest, peak_rss));
    std::ranges::stable_sort(table.rows, [](const TableRow& a, const TableRow& b) {
      return std::get<uint64_t>(a.cells[0]) > std::get<uint64_t>(b.cells[0]);
    });
    answer->tables.push_back(std::move(table));
  }

  template <typename Usable>
  void over_time(const Course& course, size_t first, const std::vector<uint64_t>& resident,
                 uint64_t before, const trace::Tables& tables, Usable&& usable,
                 Answer* answer) const {
    Table table;
    table.key = "slots";
    table.title = "Over time, the highest of each in a slot";
    table.list = false;
    table.columns = {{"from_ns", "from", Kind::kTime},
                     {"requested_bytes", "requested", Kind::kBytes},
                     {"usable_bytes", "usable", Kind::kBytes},
                     {"mapped_bytes", "mapped", Kind::kBytes},
                     {"resident_bytes", "resident", Kind::kBytes}};
    // As long as the process was there.
    size_t slots = course.slot + 1 - std::min(first, course.slot), rows = std::min(kRows, slots);
    uint64_t last = before;  // What was resident when it was last looked at.
    bool any = std::ranges::any_of(resident, [](uint64_t bytes) { return bytes > 0; });
    bool unknown = false, kept = false;
    for (size_t r = 0; r < rows; ++r) {
      size_t begin = first + r * slots / rows;
      Moment highest;
      uint64_t rss = 0, latest = 0;
      for (size_t i = begin; i < first + (r + 1) * slots / rows && i < kSlots; ++i) {
        highest.raise_to(course.slots[i]);
        rss = std::max(rss, resident[i]);
        if (resident[i] > 0) latest = resident[i];
      }
      kept |= rss == 0 && last > 0;
      unknown |= rss == 0 && last == 0;
      if (rss == 0) rss = last;
      if (latest > 0) last = latest;
      table.rows.push_back({{tables.time_ns(slices_.begin(begin)), highest.live, usable(highest),
                             highest.mapped, rss == 0 ? Cell{} : Cell{rss}}});
    }
    answer->tables.push_back(std::move(table));
    if (unknown && (any || before > 0))
      answer->notes.push_back("Resident is empty before the first sample of it.");
    if (kept)
      answer->notes.push_back(
          "Where no sample of the resident size falls into a slot, it is that of the one before.");
  }

  static void notes(const Reading& reading, const trace::Image& image,
                    const trace::MemorySample& highest, uint64_t peak_rss, Allocator allocator,
                    Answer* answer) {
    if (highest.bytes > 0)
      answer->notes.push_back(fmt::format(
          "The heap is compared as it was {} after the recording began, at the highest of {}.",
          duration_text(reading.tables().time_ns(highest.tick)),
          count_text(image.rss.size(), "sample", "samples")));
    else
      answer->notes.push_back(
          "There is no sample of the resident size; the kernel's maximum is compared with the "
          "highest of the heap.");
    if (highest.bytes > 0 && peak_rss > highest.bytes)
      answer->notes.push_back(fmt::format(
          "The kernel saw more between two samples, nobody knows when: {}; the highest sample, and "
          "so the most that is resident over time, is {}.",
          bytes_text(peak_rss), bytes_text(highest.bytes)));
    answer->notes.push_back(
        allocator == Allocator::kGlibc
            ? "Rounding follows glibc's formula; what lies between blocks is not in it."
            : fmt::format("Rounding is an estimate by the spacing of {}'s size classes.",
                          allocator_name(allocator)));
    if (image.origin == trace::Origin::kForked)
      answer->notes.push_back("What it inherited from its parent at the fork is not in its heap.");
    if (reading.selected().size() > 1)
      answer->notes.push_back(
          fmt::format("This is image {} (pid {}), the largest of {}; another: --process PID or "
                      "image:N.",
                      raw(image.id), image.pid,
                      count_text(reading.selected().size(), "process image", "process images")));
  }

  TimeSlices slices_;
  std::deque<Course> courses_;  // By image; stay where they are.
};

}  // namespace

std::unique_ptr<View> rss_view(const Query&, const ViewOptions&) {
  return std::make_unique<RssView>();
}

}  // namespace malloscope::analyze
