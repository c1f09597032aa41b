// SPDX-License-Identifier: Apache-2.0
// IgProf's three figures of locality, of the blocks that are live at the end of the window:
//
//     PAGES   4096-byte pages that at least one byte of a block is in
//     RANGES  runs of such pages without a gap
//     SPREAD  4096 * PAGES / bytes: 1 if blocks fill their pages, large if a few are
//             scattered over many
//
// A page that two sites share counts for both, and once in the total.

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "analyze/numbers.h"
#include "analyze/view.h"

namespace malloscope::analyze {
namespace {

using Kind = Column::Kind;
constexpr uint64_t kPage = 4096;

struct LiveBlock {
  uint64_t address;
  uint64_t size;
  ImageId image;
  StackId stack;
  StrandId strand;
  uint32_t site = 0;
};

struct Locality {
  uint64_t pages = 0;
  uint64_t ranges = 0;
  uint64_t bytes = 0;
  uint64_t blocks = 0;
  // The last page seen; blocks come in the order of their addresses.
  ImageId image = ImageId::kNone;
  uint64_t last = 0;

  void add(const LiveBlock& block) {
    ++blocks;
    bytes += block.size;
    uint64_t first_page = block.address / kPage;
    // A block of no bytes is still at a place.
    uint64_t end = block.address + std::max<uint64_t>(block.size, 1) - 1;
    uint64_t last_page =
        std::max(end < block.address ? UINT64_MAX / kPage : end / kPage, first_page);
    bool same = image == block.image && pages > 0;
    if (!same || first_page > last + 1) ++ranges;
    uint64_t begin = same ? std::max(first_page, last + 1) : first_page;
    if (last_page + 1 > begin) pages += last_page + 1 - begin;
    last = same ? std::max(last, last_page) : last_page;
    image = block.image;
  }
  double spread() const {
    return bytes == 0 ? 0 : static_cast<double>(kPage * pages) / static_cast<double>(bytes);
  }
};

class PagesView : public View, public HeapObserver {
 public:
  explicit PagesView(const Query& query)
      : min_size_(query.tally.min_size), max_size_(query.tally.max_size) {}

  void attach(Heap* heap, const trace::Overview&) override { heap->add_observer(this); }

  void left(ImageId image, const BlockTable& live) override {
    live.for_each([&](const Block& block) {
      if (block.size >= min_size_ && block.size <= max_size_)
        blocks_.push_back({block.address, block.size, image, block.stack, block.strand});
    });
  }

  Answer answer(Reading* reading, const Query& query) override {
    SiteIndex sites(reading, query);
    // Each stack is asked for once.
    StackRows<std::optional<uint32_t>> site_of(query.tells_strands());
    constexpr uint32_t kOut = UINT32_MAX;
    for (LiveBlock& block : blocks_) {
      std::optional<uint32_t>& site = site_of.at(block.image, block.stack, block.strand);
      if (!site) {
        auto found = sites.site_of(block.image, block.stack, block.strand);
        site = found ? static_cast<uint32_t>(*found) : kOut;
      }
      block.site = *site;
    }
    std::erase_if(blocks_, [](const LiveBlock& block) { return block.site == kOut; });
    std::ranges::sort(blocks_, [](const LiveBlock& a, const LiveBlock& b) {
      return std::tie(a.image, a.address) < std::tie(b.image, b.address);
    });
    std::vector<Locality> found(sites.size());
    Locality all;
    for (const LiveBlock& block : blocks_) {
      found[block.site].add(block);
      all.add(block);
    }

    Answer answer;
    answer.headline =
        all.blocks == 0
            ? "No block is live"
            : fmt::format("{} in {} are on {} ({}), {:.2f} times what they would fill; {}",
                          bytes_text(all.bytes), count_text(all.blocks, "block", "blocks"),
                          count_text(all.pages, "page", "pages"), bytes_text(all.pages * kPage),
                          all.spread(), count_text(all.ranges, "range", "ranges"));
    answer.facts = {{"pages", all.pages},
                    {"ranges", all.ranges},
                    {"spread", all.spread()},
                    {"live_bytes", all.bytes},
                    {"live_blocks", all.blocks}};
    add_totals(*reading, &answer);
    Table table;
    table.key = "sites";
    table.columns = {{"pages", "pages", Kind::kCount},        {"ranges", "ranges", Kind::kCount},
                     {"spread", "spread", Kind::kRatio},      {"live_bytes", "live", Kind::kBytes},
                     {"live_blocks", "blocks", Kind::kCount}, {"frame", "site", Kind::kFrame}};
    std::vector<size_t> order(found.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      if (found[a].pages != found[b].pages) return found[a].pages > found[b].pages;
      return sites.frame(a).function < sites.frame(b).function;
    });
    for (size_t i : order) {
      const Locality& l = found[i];
      table.rows.push_back({{l.pages, l.ranges, l.bytes == 0 ? Cell{} : Cell{l.spread()}, l.bytes,
                             l.blocks, sites.frame(i)}});
    }
    answer.tables.push_back(std::move(table));
    answer.notes.push_back(
        "spread = 4096 * pages / live bytes. A page that several sites share counts for each of "
        "them, and once in the total.");
    if (reading->tables().header.is_sampled())
      answer.notes.emplace_back(
          "Of a sample these are the recorded blocks alone: what lies between them is not known.");
    else
      add_filter_note(all.bytes, reading->accounts().totals().live_bytes, &answer);
    return answer;
  }

 private:
  uint64_t min_size_, max_size_;
  std::vector<LiveBlock> blocks_;
};

}  // namespace

std::unique_ptr<View> pages_view(const Query& query, const ViewOptions&) {
  return std::make_unique<PagesView>(query);
}

}  // namespace malloscope::analyze
