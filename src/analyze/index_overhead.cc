// SPDX-License-Identifier: Apache-2.0
#include "analyze/index_overhead.h"

#include "analyze/usable_size.h"
#include "wire/sampling.h"

namespace malloscope::analyze {
namespace {

// Of calls of one image.
class Overhead {
 public:
  explicit Overhead(const trace::Image& image)
      : allocator_(allocator_of(image)), sample_log2_(image.sample_log2) {}

  uint64_t of(uint64_t allocations, uint64_t reallocations, uint64_t size, bool is_mapped) const {
    uint64_t each = usable_size(allocator_, is_mapped ? kAddressOfMapped : 0, size) - size;
    // An allocation counts as many times as its block does, a reallocation once.
    unsigned weight_log2 = sample_log2_ ? wire::sample_weight_log2(size, sample_log2_) : 0;
    return allocations * each + reallocations * (each << weight_log2);
  }

 private:
  static constexpr uint64_t kAddressOfMapped = 16;  // Its place in the page tells it.
  Allocator allocator_;
  unsigned sample_log2_;
};

}  // namespace

bool sum_overhead(const Index& index, IndexSums* sums, const trace::Tables& tables,
                  Selection selection, Window window, Index::Steps steps,
                  const IndexSums::Rows& rows, std::vector<uint64_t>* bytes) {
  std::vector<Overhead> overheads;
  for (const trace::Image& image : tables.images) overheads.emplace_back(image);
  const std::vector<IndexCell>& cells = index.cells();
  auto usual = [&](uint32_t cell, uint64_t allocations, uint64_t reallocations) {
    return overheads[raw(cells[cell].image) - 1].of(allocations, reallocations,
                                                    cells[cell].usual_size, false);
  };

  // As if all were of the usual sizes.
  std::vector<uint32_t> itself(cells.size());
  for (uint32_t cell = 0; cell < itself.size(); ++cell)
    itself[cell] = rows.of_cell[cell] == IndexSums::kNobody ? IndexSums::kNobody : cell;
  IndexSums::Wanted calls = {};
  calls[IndexSums::kAllocations] = calls[IndexSums::kReallocations] = true;
  IndexSums::Amounts counted;
  if (!sums->sum(selection, window, steps, calls, {itself, itself.size()}, &counted)) return false;
  std::vector<uint64_t> halves[2];
  for (std::vector<uint64_t>& half : halves) half.resize(rows.count);
  for (uint32_t cell = 0; cell < itself.size(); ++cell)
    if (uint32_t row = rows.of_cell[cell]; row != IndexSums::kNobody)
      halves[0][row] += usual(cell, counted[IndexSums::kAllocations][cell],
                              counted[IndexSums::kReallocations][cell]);

  auto correct = [&](const OddEntry& odd, std::vector<uint64_t>* half) {
    if (odd.allocations == 0 && odd.reallocations == 0) return;
    uint32_t in_cell = rows.of_cell[odd.cell], row = rows.row_of(odd.cell, odd.size);
    if (in_cell != IndexSums::kNobody)
      (*half)[in_cell] -= usual(odd.cell, odd.allocations, odd.reallocations);
    if (row != IndexSums::kNobody)
      (*half)[row] += overheads[raw(cells[odd.cell].image) - 1].of(
          odd.allocations, odd.reallocations, odd.size, odd.is_mapped);
  };
  bool good =
      index.in_two(steps, [&](size_t half, IndexBlocks* blocks, uint32_t first, uint32_t end) {
        return index.cover_odd(blocks, first, end,
                               [&](const OddEntry& odd) { correct(odd, &halves[half]); });
      });
  *bytes = std::move(halves[0]);
  for (size_t row = 0; row < rows.count; ++row) (*bytes)[row] += halves[1][row];
  return good;
}

}  // namespace malloscope::analyze
