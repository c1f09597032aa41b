// SPDX-License-Identifier: Apache-2.0
// A view answers a question that a profile cannot: it looks at every block while the
// trace is read, and makes an Answer of what it saw. One view is one file,
// view_<name>.cc; the list of them all is in views.cc.

#pragma once

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyze/answer.h"
#include "analyze/index.h"
#include "analyze/index_sums.h"
#include "analyze/query.h"
#include "analyze/reading.h"
#include "analyze/row_selector.h"
#include "base/attributes.h"
#include "trace/event_stream.h"

namespace malloscope::analyze {

// The sites of the stacks that a query lets through, numbered as they are met.
class SiteIndex {
 public:
  SiteIndex(Reading* reading, const Query& query)
      : reading_(*reading), query_(query), selector_(reading, query) {}

  // Nothing if the filters leave the stack out.
  std::optional<size_t> site_of(ImageId image, StackId stack, StrandId strand);
  size_t size() const { return frames_.size(); }
  const NamedFrame& frame(size_t site) const { return frames_[site]; }
  // The frames that are shown, innermost first.
  std::vector<NamedFrame> stack(ImageId image, StackId stack, StrandId strand);

 private:
  NamedFrame named(FrameId frame);

  std::optional<size_t> find_site(ImageId image, StackId stack, StrandId strand);

  Reading& reading_;
  const Query& query_;
  RowSelector selector_;
  // By image and stack, unless strands matter.
  enum : uint32_t { kNotAsked, kLeftOut, kFirstSite };
  std::vector<std::vector<uint32_t>> sites_;
  std::vector<NamedFrame> frames_;
  std::unordered_map<uint64_t, size_t> places_;
  std::vector<FrameId> shown_;  // Scratch.
};

// The sites of an index's cells, which are the same in every range and whatever is asked about.
class CellSites {
 public:
  static constexpr uint32_t kNobody = UINT32_MAX;
  // Of all cells, by what the query says of frames.
  CellSites(const Index& index, Reading* reading, Query query);
  // The same, of some cells.
  CellSites(std::shared_ptr<const CellSites> all, const std::vector<bool>& asked);
  CellSites(const CellSites&) = delete;

  const SiteIndex& sites() const { return all_ ? all_->sites() : sites_.value(); }
  // kNobody: the query leaves the cell out.
  uint32_t of(size_t cell) const { return site_of_cell_[cell]; }

 private:
  Query query_;
  std::optional<SiteIndex> sites_;  // Or those of ...
  std::shared_ptr<const CellSites> all_;
  std::vector<uint32_t> site_of_cell_;
};

// A window of an index.
struct IndexedWindow {
  Index& index;
  IndexSums& sums;  // Of it.
  Window window;
  Index::Steps steps;        // See Index::parting_steps_of.
  Reading& reading;          // With the window's totals.
  const Query& query;        // As View::prepare has it.
  std::vector<bool> images;  // Those that are selected, by id - 1.
  // By cell, whether the query is about it, as far as its size class tells; and the sites of these.
  std::vector<bool> asked_cells;
  std::function<std::shared_ptr<const CellSites>()> cell_sites;

  // Sizes that are asked for, of lives: where they cut size classes, each life's own size tells.
  class Sizes {
   public:
    explicit Sizes(const IndexedWindow& window);
    // Whether it has one of them.
    MSCOPE_FAST bool has(const IndexLife& life) {
      if (!cuts_) [[likely]]
        return true;
      knows_ &= !life.is_varied || !is_cut_[life.cell];
      return !is_cut_[life.cell] || (life.size() >= least_ && life.size() <= most_);
    }
    // False: blocks of different sizes were put together that it would have to tell apart.
    bool knows() const { return knows_; }

   private:
    uint64_t least_, most_;
    bool cuts_, knows_ = true;
    std::vector<bool> is_cut_;  // By cell.
  };
};

class View {
 public:
  virtual ~View() = default;
  // Before the trace is read: adds to the query what the view needs of the tally.
  virtual void prepare(Query* query) { (void)query; }
  // Before the first event: adds its observers. The view must outlive the heap.
  virtual void attach(Heap* heap, const trace::Overview& overview) { (void)heap, (void)overview; }
  virtual Answer answer(Reading* reading, const Query& query) = 0;
  // Instead of attach() and a look at all events, before answer(): what it would have seen. False:
  // an index does not tell it. Of the reading it has totals then, but no rows.
  virtual bool restore(const IndexedWindow& from) {
    (void)from;
    return false;
  }
};

struct ViewOptions {
  bool at = false;  // Asked about one instant, which is the query's `to`.
  size_t top = 0;   // Rows of each list that the reader will see; 0: all.
};

struct ViewKind {
  std::string_view name;
  std::string_view help;  // The question it answers.
  std::unique_ptr<View> (*make)(const Query& query, const ViewOptions& options);
  bool has_instant = false;  // Whether it can be asked --at.
  bool has_stacks = true;    // Whether --focus, --thread and the like have a meaning.
  bool has_sizes = true;     // Whether --min-size and --max-size have.
};

std::span<const ViewKind> views();
const ViewKind* find_view(std::string_view name);
// An error if the query asks for something that has no meaning in this view.
Result<void> suits(const ViewKind& view, const Query& query, bool at);

// One for each file view_<name>.cc.
std::unique_ptr<View> peak_view(const Query& query, const ViewOptions& options);
std::unique_ptr<View> lifetimes_view(const Query& query, const ViewOptions& options);
std::unique_ptr<View> sizes_view(const Query& query, const ViewOptions& options);
std::unique_ptr<View> threads_view(const Query& query, const ViewOptions& options);
std::unique_ptr<View> phases_view(const Query& query, const ViewOptions& options);
std::unique_ptr<View> growth_view(const Query& query, const ViewOptions& options);
std::unique_ptr<View> churn_view(const Query& query, const ViewOptions& options);
std::unique_ptr<View> rss_view(const Query& query, const ViewOptions& options);
std::unique_ptr<View> mappings_view(const Query& query, const ViewOptions& options);
std::unique_ptr<View> pages_view(const Query& query, const ViewOptions& options);

// A T for each stack of each image; if asked, for each strand that allocated by it.
template <typename T>
class StackRows {
 public:
  struct Entry {
    ImageId image;
    StackId stack;
    StrandId strand;  // kNone unless by_strand.
    T value;
  };
  explicit StackRows(bool by_strand) : by_strand_(by_strand) {}

  T& at(ImageId image, StackId stack, StrandId strand) {
    if (raw(image) >= images_.size()) images_.resize(raw(image) + size_t{1});
    Places& places = images_[raw(image)];
    if (by_strand_) {
      uint64_t key = uint64_t{raw(stack)} << 32 | raw(strand);
      auto [place, fresh] = places.by_strand.try_emplace(key, entries_.size());
      if (fresh) entries_.push_back({image, stack, strand, T{}});
      return entries_[place->second].value;
    }
    if (raw(stack) >= places.by_stack.size())
      places.by_stack.resize(std::max(raw(stack) + size_t{1}, places.by_stack.size() * 2), 0);
    size_t& place = places.by_stack[raw(stack)];  // 0: none yet.
    if (place == 0) {
      entries_.push_back({image, stack, StrandId::kNone, T{}});
      place = entries_.size();
    }
    return entries_[place - 1].value;
  }
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  struct Places {
    std::vector<size_t> by_stack;
    std::unordered_map<uint64_t, size_t> by_strand;
  };
  bool by_strand_;
  std::vector<Places> images_;  // By id.
  std::vector<Entry> entries_;
};

// The Ts of a query's sites, by their numbers in the index, and the sum of all.
template <typename T>
struct SiteSums {
  std::vector<T> sites;
  T all = {};

  explicit SiteSums(size_t count) : sites(count) {}
  SiteSums(const StackRows<T>& rows, SiteIndex* index) {
    for (const auto& entry : rows.entries()) {
      std::optional<size_t> site = index->site_of(entry.image, entry.stack, entry.strand);
      if (!site) continue;
      if (*site >= sites.size()) sites.resize(*site + 1);
      sites[*site] += entry.value;
      all += entry.value;
    }
  }

  // The numbers of the sites, the heaviest first; `before(a, b)`: T a is heavier than b. Those that
  // weigh the same by name.
  template <typename Before>
  std::vector<size_t> order(const SiteIndex& index, Before&& before) const {
    std::vector<size_t> numbers(sites.size());
    std::iota(numbers.begin(), numbers.end(), size_t{0});
    std::sort(numbers.begin(), numbers.end(), [&](size_t a, size_t b) {
      if (before(sites[a], sites[b])) return true;
      if (before(sites[b], sites[a])) return false;
      return index.frame(a).function < index.frame(b).function;
    });
    return numbers;
  }
};

// Equal parts of the time that a window covers.
class TimeSlices {
 public:
  TimeSlices() = default;
  TimeSlices(const Window& window, const trace::Overview& overview, size_t count);
  size_t count() const { return count_; }
  size_t of(uint64_t tick) const;
  uint64_t begin(size_t slice) const;  // begin(count()) is the end of the last.
  uint64_t ticks() const { return to_ - from_; }

 private:
  uint64_t from_ = 0, to_ = 1, width_ = 1;
  size_t count_ = 1;
};

// "worker (1234)".
std::string thread_name(const trace::Image& image, ThreadId thread);
// "64 - 127 B"; "1 - 2 KiB", without its end; see size_class().
std::string size_range(unsigned size_class);

// The totals of `report --json`, as members of "totals"; of a reading of CPU time, the sum of that.
void add_totals(const Reading& reading, Answer* answer, const std::string& within = "totals",
                double units = 1);
// Says so if the times of calls are coarse: see tick_now() in record/recorder.h.
void add_clock_note(const Reading& reading, Answer* answer);
// Says so if what is shown is less than the whole.
void add_filter_note(uint64_t shown, uint64_t whole, Answer* answer);

}  // namespace malloscope::analyze
