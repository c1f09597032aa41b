// SPDX-License-Identifier: Apache-2.0
// A trace kept in memory for whoever asks one question after the other: its names, its tree of
// functions and its index. A question about another range, metric or part of the stacks takes a
// fraction of a second; what the index does not know is found as every report finds it, by reading
// the events. The answers are those of the reports, number by number.

#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/cell_rows.h"
#include "analyze/cpu_samples.h"
#include "analyze/flame.h"
#include "analyze/index_curves.h"
#include "analyze/index_life_sums.h"
#include "analyze/index_sums.h"
#include "analyze/indexed_trace.h"
#include "analyze/profile_views.h"
#include "analyze/query_words.h"
#include "analyze/reading.h"
#include "analyze/site_blocks.h"
#include "analyze/view.h"

namespace malloscope::analyze {

class Explorer {
 public:
  // Told what is being done, and how far that is.
  using Progress = std::function<void(std::string_view what, double share)>;

  struct Question {
    QueryWords words;
    Query query;  // Made of the words, and of what the metric asks for.
    Metric metric = Metric::kPeak;

    // An error is a sentence about the words.
    static Result<Question> make(const QueryWords& words, Metric metric);
  };

  // The names are looked up as `query` says.
  static Result<std::unique_ptr<Explorer>> open(const std::string& path, const Query& query,
                                                const Progress& progress);

  Reading& reading() { return *reading_; }
  const Index* index() const { return index_.get(); }
  const trace::Overview& overview() const { return overview_; }

  // The amounts of each row that the question is about; of others nothing.
  struct Amounted {
    IndexSums::Amounts counted;     // Those that were asked for.
    std::vector<uint64_t> timed;    // Of another metric: lifetime, CPU and the like.
    std::vector<uint64_t> samples;  // Of CPU time.
    Amounts total;                  // Of those rows.
    Amounts unfiltered;             // And with those whose stacks the filters leave out.
    Peak peak;                      // Of all that is selected.

    // What was not asked for is 0.
    Amounts at(size_t row, Metric metric) const;
    // Calls visit(row, value) for all rows.
    template <typename Visit>
    void for_each_value(Metric metric, Visit&& visit) const {
      std::vector<const std::vector<uint64_t>*> parts = parts_of(metric);
      for (size_t row = 0; row < parts[0]->size(); ++row) {
        uint64_t sum = 0;
        for (const std::vector<uint64_t>* part : parts) sum += (*part)[row];
        visit(row, sum);
      }
    }
    // Calls visit(group, const Amounts&) for the sums of groups; group_of(row) may be kNobody.
    template <typename GroupOf, typename Visit>
    void add_up(Metric metric, size_t groups, GroupOf&& group_of, Visit&& visit) const {
      std::vector<Amounts> sums(groups);
      for_each_part(metric, [&](const std::vector<uint64_t>& part, uint64_t Amounts::* amount) {
        for (size_t row = 0; row < part.size(); ++row)
          if (uint32_t group = group_of(row); group != kNobody) sums[group].*amount += part[row];
      });
      for (size_t i = 0; i < groups; ++i) visit(i, sums[i]);
    }

   private:
    // Which a value is made of; at least one.
    std::vector<const std::vector<uint64_t>*> parts_of(Metric metric) const;
    // Calls visit(amounts, which) for all that are there.
    void for_each_part(
        Metric metric,
        const std::function<void(const std::vector<uint64_t>&, uint64_t Amounts::*)>& visit) const;
  };
  using Amounting = std::shared_ptr<const Amounted>;
  // Whether all that is counted is wanted, or what the metric is about: that is faster.
  enum class Wanted { kAll, kMetric };
  Result<Amounting> amounts(const Question& question, Wanted wanted, const Progress& progress);

  // The tree of functions with the question's rules for frames.
  struct Tree {
    std::shared_ptr<const FunctionTree> tree;
    std::unique_ptr<NodeChildren> children;
    std::vector<uint32_t> node_of_row;  // kNobody: it is not in the tree.
  };
  using Treeing = std::shared_ptr<const Tree>;
  Treeing tree(const Question& question);
  NodeValues values(const Tree& tree, const Amounted& amounts, Metric metric) const {
    return NodeValues(*tree.tree, self_by_node(tree, amounts, metric));
  }
  std::vector<uint64_t> self_by_node(const Tree& tree, const Amounted& amounts,
                                     Metric metric) const;

  // Calls visit(const Row&) for rows that are kept apart by more than stacks, as a reading with
  // `query.tally` has them; of those whose stacks the question means. False: the index does not
  // know.
  bool for_each_row(const Question& question, const std::function<void(const Row&)>& visit);

  // Rows that belong together; not by thread or size, which rows do not tell.
  struct Groups {
    std::vector<uint32_t> group_of_row;  // kNobody: left out.
    std::vector<RowGroups::Group> groups;
  };
  using Grouping = std::shared_ptr<const Groups>;
  Grouping groups(const Question& question, By by);

  // How groups of what the question is about went through the time, whatever its range. Which cells
  // belong to which group is found first; the look at all steps, curves(), can be taken by any
  // thread while the explorer answers others.
  struct CurvesQuestion {
    std::string key;
    size_t groups = 0;
    std::vector<uint32_t> group_of_cell;        // kNobody: it does not count.
    std::optional<IndexSums::CutSizes> cut;     // See IndexSums::Rows.
    bool has_all = true;                        // No cell was left out by its group.
    std::shared_ptr<const IndexCurves> answer;  // If it was asked before.
  };
  // `by` stands for the groups. `group_of_row` gives kNobody for rows that do not count.
  CurvesQuestion ask_curves(const Question& question, const std::string& by, size_t groups,
                            const std::function<uint32_t(size_t row)>& group_of_row);
  // The same, of groups of cells.
  CurvesQuestion ask_curves_of_cells(const Question& question, const std::string& by, size_t groups,
                                     const std::function<uint32_t(const IndexCell&)>& group_of);
  // The sum of all groups; of the groups themselves nothing.
  CurvesQuestion ask_curve(const Question& question);
  // Null: a block of the index is damaged.
  std::shared_ptr<const IndexCurves> curves(const CurvesQuestion& question) const;
  // Calls visit(row, const IndexEntry&) for all changes in slices from `first` to before `end`.
  // False: nobody knows.
  template <typename Visit>
  bool for_each_change(uint32_t first, uint32_t end, Visit&& visit) {
    if (!index_) return false;
    auto [from, to] = steps_of_slices(first, end);
    return index_->cover(from, to, [&](const IndexEntry& entry) {
      if (uint32_t row = row_of_cell_[entry.cell]; row != kNobody) visit(row, entry);
    });
  }
  // Calls visit(row, made, freed, blocks) for every temporary block that was freed in a later slice
  // than it was made in: a range that begins in between does not count it.
  template <typename Visit>
  void for_each_straddler(Visit&& visit) const {
    if (!index_) return;
    for (const IndexFacts::Straddler& block : index_->facts().straddlers) {
      uint32_t row = row_of_cell_[block.cell], made = slice_of(block.made);
      if (row != kNobody && made != slice_of(block.freed))
        visit(row, made, slice_of(block.freed), block.blocks);
    }
  }
  // CPU time of groups of what the question is about, in nanoseconds, slice by slice of the whole
  // time, whatever the question's range: those of a group follow each other. Nothing if there is
  // none, or no index, which has the slices.
  std::vector<double> cpu_course(const Question& question, size_t groups,
                                 const std::function<uint32_t(size_t row)>& group_of_row);
  // Calls visit(row, slice, nanoseconds) for every sample, if there are slices.
  template <typename Visit>
  void for_each_sample(Visit&& visit) const {
    if (!index_) return;
    for (size_t i = 0; i < row_of_sample_.size(); ++i) {
      const CpuSamples::Sample& sample = cpu_->all()[i];
      visit(row_of_sample_[i], slice_of(index_->facts().times.step_of(sample.tick)),
            sample.nanoseconds);
    }
  }
  // Whether no block can be of the row: it is of CPU time alone.
  bool is_of_cpu(size_t row) const {
    const RowId& id = rows_[row];
    return reading_->tables().image(id.image).stacks.is_of_cpu(id.stack);
  }

  // Of the query's window, if the index can tell what was made in it from what was made before.
  std::optional<Index::Steps> parting_steps_of(const Query& query) const {
    std::optional<Window> window = window_in_index(query);
    return window ? index_->parting_steps_of(*window) : std::nullopt;
  }

  // Of the cells that the question is about, those of these rows.
  SiteBlocks::Cells cells_of_rows(const Question& question, const std::vector<bool>& rows);
  // How many blocks were made in all in these cells.
  uint64_t blocks_of(const SiteBlocks::Cells& cells);
  // What they come to, for these steps at least. Null: the index does not tell.
  std::shared_ptr<const SiteBlocks::Folded> folded_blocks(const SiteBlocks::Cells& cells,
                                                          Index::Steps steps);

  // Whether it is about blocks that were made in a range and are left at its end: nothing else is
  // known of these, such as how many were made in all.
  static bool is_about_left(const Question& question) {
    return question.query.tally.only_made_in_window && question.query.from;
  }

  // Whether it is about all rows and cells.
  static bool is_about_all(const Question& question);

  // Calls ask(Reading*) with what is left of the blocks that were made in the window, as
  // Index::leaks has it. False: the index does not know.
  bool with_leaks(const Query& query, const std::function<void(Reading*)>& ask);

  // Calls ask(Reading*) with CPU time as its rows (TallyOptions::cpu), without a look at the file.
  // False: only the events tell the window.
  bool with_cpu(const Query& query, const std::function<void(Reading*)>& ask);

  // Has the view restored from the index, and calls ask(Reading*), which can have its answer then.
  // False: the index does not know. `query`: made of the words, and prepared by the view.
  bool with_view(View* view, const QueryWords& words, const Query& query,
                 const std::function<void(Reading*)>& ask);

  struct RowId {
    ImageId image = ImageId::kNone;
    StackId stack = StackId::kNone;
  };
  const std::vector<RowId>& rows() const { return rows_; }
  static constexpr uint32_t kNobody = IndexSums::kNobody;
  uint32_t row_of(ImageId image, StackId stack) const;

  // By row, whether the question is about its stack.
  std::vector<bool> asked_rows(const Question& question);

  // What the next question is answered faster by; false when there is nothing left to do.
  bool prepare();
  // Before somebody else needs much memory: what can be had again soon is forgotten, if it is much.
  void make_room();

 private:
  // The answers to the latest questions.
  template <typename T>
  class Latest {
   public:
    explicit Latest(size_t most) : most_(most) {}
    const T* find(const std::string& key) {
      for (auto it = list_.begin(); it != list_.end(); ++it)
        if (it->first == key) {
          list_.splice(list_.begin(), list_, it);
          return &it->second;
        }
      return nullptr;
    }
    const T& keep(const std::string& key, T value) {
      list_.emplace_front(key, std::move(value));
      if (list_.size() > most_) list_.pop_back();
      return list_.front().second;
    }

    void clear() { list_.clear(); }

   private:
    size_t most_;
    std::list<std::pair<std::string, T>> list_;
  };

  Explorer() = default;
  // All rows' amounts, whatever their stacks.
  Result<Amounting> all_amounts(const Question& question, Wanted wanted, const Progress& progress);
  // Nothing if there is no index, or it cannot know of such a window.
  std::optional<Window> window_in_index(const Query& query) const;
  // From the index; false: it does not know.
  bool from_index(const Question& question, Wanted wanted, Amounted* found);
  // What is left of the blocks that were made in the window.
  bool from_survivors(Window window, const IndexSums::Rows& rows, IndexSums::Amounts* sums) const;
  // How long the blocks of rows lived in the window, in nanoseconds.
  bool lifetimes(Window window, const IndexSums::Rows& rows, std::vector<uint64_t>* ns);
  const CellRows& cell_rows(const Question& question, const TallyOptions& options);
  Result<void> from_events(const Question& question, const Progress& progress, Amounted* found);
  // Nothing: only the events tell it.
  std::optional<Window> window_of_cpu(const Query& query) const;
  // CPU time; false: only the events tell the window.
  bool from_samples(const Question& question, Amounted* found) const;
  // Calls visit(row, sample) for those that the question's words on processes and strands mean.
  template <typename Visit>
  void for_each_selected(const Query& query, Visit&& visit) const;
  // Has a row for each stack that used CPU time.
  void add_cpu();
  // By row, whether the question's words on stacks mean it.
  const std::vector<bool>& asked(const Question& question);
  // Of a question about curves, all but the groups.
  CurvesQuestion begin_curves(const Question& question, const std::string& by, size_t groups);
  // Which row a cell has, if the question is about it.
  struct AskedCells {
    std::vector<uint32_t> rows;
    std::optional<IndexSums::CutSizes> cut;
  };
  // By its words on processes, threads and sizes alone.
  IndexSums::Rows rows_of_cells(const Question& question);
  // And by those on stacks.
  AskedCells asked_cells(const Question& question);

  std::string path_;
  trace::Overview overview_;
  std::unique_ptr<Index> index_;  // May be null.
  std::unique_ptr<Reading> reading_;
  std::vector<RowId> rows_;
  std::unique_ptr<CpuSamples> cpu_;
  std::vector<uint32_t> row_of_sample_;
  std::vector<std::vector<uint32_t>> row_of_;  // By image and stack.
  std::vector<uint32_t> row_of_cell_;
  std::unique_ptr<IndexSums> sums_;
  std::unique_ptr<LifetimeSums> lifetimes_;
  Latest<AskedCells> some_cells_{1};
  Latest<std::unique_ptr<const CellRows>> cell_rows_{1};
  Latest<Amounting> all_amounts_{3}, amounts_{3};
  Latest<std::vector<bool>> asked_{4};
  Latest<Treeing> trees_{2};
  Latest<Grouping> groups_{8};
  Latest<std::shared_ptr<const CellSites>> cell_sites_{1};
  Latest<std::shared_ptr<SiteBlocks::Folded>> folded_blocks_{2};
  std::vector<uint64_t> blocks_of_cell_;  // Once somebody asks.
  mutable std::mutex curves_mutex_;
  mutable Latest<std::shared_ptr<const IndexCurves>> curves_{6};
};

}  // namespace malloscope::analyze
