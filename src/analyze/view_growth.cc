// SPDX-License-Identifier: Apache-2.0
// Blocks that grow step by step, and what it would have taken to say their size at once.

#include <fmt/format.h>

#include <algorithm>

#include "analyze/growth_chains.h"
#include "analyze/numbers.h"
#include "analyze/view.h"

namespace malloscope::analyze {
namespace {

using Kind = Column::Kind;

struct Growth {
  uint64_t chains = 0, realloc_chains = 0;
  uint64_t growths = 0;
  uint64_t copied_bytes = 0;
  uint64_t largest_size = 0;
  uint64_t final_bytes = 0;  // Over all chains.
  double factors = 0;
  // The size of an element if all chains agree on it; 0 if they do not.
  uint64_t element = 0;

  void add(const GrowthChain& chain) {
    bool first = chains == 0;
    ++chains;
    realloc_chains += chain.by_realloc;
    growths += chain.growths;
    copied_bytes += chain.copied_bytes;
    largest_size = std::max(largest_size, chain.largest_size);
    final_bytes += chain.largest_size;
    factors += chain.factors;
    constexpr uint64_t kLargestElement = 4096;
    uint64_t mine =
        chain.of_one_element && chain.first_size <= kLargestElement ? chain.first_size : 0;
    element = first || element == mine ? mine : 0;
  }
  Growth& operator+=(const Growth& other) {
    element = chains == 0 || element == other.element ? other.element : 0;
    chains += other.chains;
    realloc_chains += other.realloc_chains;
    growths += other.growths;
    copied_bytes += other.copied_bytes;
    largest_size = std::max(largest_size, other.largest_size);
    final_bytes += other.final_bytes;
    factors += other.factors;
    return *this;
  }
};

class GrowthView : public View {
 public:
  explicit GrowthView(const Query& query)
      : rows_(query.tells_strands()),
        min_size_(query.tally.min_size),
        max_size_(query.tally.max_size),
        chains_([this](ImageId image, const GrowthChain& chain) {
          if (chain.largest_size >= min_size_ && chain.largest_size <= max_size_)
            rows_.at(image, chain.stack, chain.strand).add(chain);
        }) {}

  void attach(Heap* heap, const trace::Overview&) override { heap->add_observer(&chains_); }

  Answer answer(Reading* reading, const Query& query) override {
    SiteIndex sites(reading, query);
    SiteSums<Growth> found(rows_, &sites);
    const Growth& all = found.all;

    Answer answer;
    answer.headline =
        all.chains == 0
            ? "No block was seen to grow"
            : fmt::format(
                  "{} grew in {}, copying {}; none of it if their size had been told at once",
                  count_text(all.chains, "block", "blocks"),
                  count_text(all.growths, "step", "steps"), bytes_text(all.copied_bytes));
    answer.facts = {
        {"chains", all.chains}, {"growths", all.growths}, {"copied_bytes", all.copied_bytes}};
    add_totals(*reading, &answer);
    Table table;
    table.key = "sites";
    table.columns = {{"copied_bytes", "copied", Kind::kBytes},
                     {"share", "", Kind::kShare, true, true},
                     {"chains", "chains", Kind::kCount, true, true},
                     {"realloc_chains", "", Kind::kCount, false},
                     {"growths", "growths", Kind::kCount},
                     {"average_growths", "a chain", Kind::kRatio, false},
                     {"factor", "factor", Kind::kRatio, true, true},
                     {"average_final_bytes", "final", Kind::kBytes, true, true},
                     {"largest_bytes", "largest", Kind::kBytes, false},
                     {"element_bytes", "", Kind::kBytes, false},
                     {"reserve_elements", "", Kind::kCount, false},
                     {"instead", "instead", Kind::kText},
                     {"frame", "site", Kind::kFrame}};
    auto heavier = [](const Growth& a, const Growth& b) {
      return std::pair(a.copied_bytes, a.growths) > std::pair(b.copied_bytes, b.growths);
    };
    for (size_t i : found.order(sites, heavier)) {
      const Growth& g = found.sites[i];
      TableRow row;
      row.cells = {g.copied_bytes,
                   Share{g.copied_bytes, all.copied_bytes},
                   g.chains,
                   g.realloc_chains,
                   g.growths,
                   static_cast<double>(g.growths) / static_cast<double>(g.chains),
                   g.factors / static_cast<double>(g.growths),
                   g.final_bytes / g.chains,
                   g.largest_size,
                   g.element ? Cell{g.element} : Cell{},
                   g.element ? Cell{g.largest_size / g.element} : Cell{},
                   instead(g),
                   sites.frame(i)};
      table.rows.push_back(std::move(row));
    }
    answer.tables.push_back(std::move(table));
    answer.notes = {
        fmt::format("How it was found: a realloc that enlarges a block (copied only if the block "
                    "moved), or "
                    "a thread that frees a block of which one of its last {} allocations is a "
                    "larger one by "
                    "the very same stack, as vectors and strings do.",
                    GrowthChains::kRecent),
        "reserve(n) is for the largest chain of the site, n at most; in elements where the sizes "
        "tell how large one is."};
    if (reading->tables().header.is_sampled())
      answer.notes.emplace_back(
          "A chain is seen only if all of its blocks are recorded, which in a sample few are.");
    return answer;
  }

 private:
  static std::string instead(const Growth& g) {
    if (g.element) return fmt::format("reserve({})", g.largest_size / g.element);
    return fmt::format("{} {}", g.realloc_chains == g.chains ? "malloc" : "reserve",
                       bytes_text(g.largest_size));
  }

  StackRows<Growth> rows_;
  uint64_t min_size_, max_size_;
  GrowthChains chains_;
};

}  // namespace

std::unique_ptr<View> growth_view(const Query& query, const ViewOptions&) {
  return std::make_unique<GrowthView>(query);
}

}  // namespace malloscope::analyze
