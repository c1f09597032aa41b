// SPDX-License-Identifier: Apache-2.0
// CPU time, which is told by the samples alone: no index is needed for it.

#include <algorithm>

#include "analyze/explorer.h"
#include "analyze/question_parts.h"
#include "analyze/strand_selector.h"

namespace malloscope::analyze {

template <typename Visit>
void Explorer::for_each_selected(const Query& query, Visit&& visit) const {
  const trace::Tables& tables = reading_->tables();
  StrandSelector strands(tables, cpu_->phases(), query);
  std::vector<bool> images;
  for (const trace::Image& image : tables.images) images.push_back(query.selection.contains(image));
  for (size_t i = 0; i < row_of_sample_.size(); ++i) {
    const CpuSamples::Sample& sample = cpu_->all()[i];
    if (images[raw(sample.image) - 1] && strands.selects(sample.image, sample.strand))
      visit(row_of_sample_[i], sample);
  }
}

std::optional<Window> Explorer::window_of_cpu(const Query& query) const {
  if ((query.from && query.from->needs_peak()) || (query.to && query.to->needs_peak()))
    return std::nullopt;
  Result<Window> window = window_of(query, overview_, {});
  return window ? std::optional(*window) : std::nullopt;
}

bool Explorer::from_samples(const Question& question, Amounted* found) const {
  std::optional<Window> window = window_of_cpu(question.query);
  if (!window) return false;
  found->timed.resize(rows_.size());
  found->samples.resize(rows_.size());
  for_each_selected(question.query, [&](uint32_t row, const CpuSamples::Sample& sample) {
    if (!CpuSamples::is_in(*window, sample.tick)) return;
    found->timed[row] += sample.nanoseconds;
    ++found->samples[row];
  });
  return true;
}

std::vector<double> Explorer::cpu_course(const Question& question, size_t groups,
                                         const std::function<uint32_t(size_t row)>& group_of_row) {
  if (!index_ || row_of_sample_.empty()) return {};
  const std::vector<bool> meant = asked_rows(question);
  std::vector<uint32_t> group_of(rows_.size(), kNobody);
  for (size_t row = 0; row < rows_.size(); ++row)
    if (meant[row]) group_of[row] = group_of_row(row);
  std::vector<double> course(groups * kSlices);
  const double ns_per_tick = reading_->tables().header.ns_per_tick;
  for_each_selected(question.query, [&](uint32_t row, const CpuSamples::Sample& sample) {
    if (group_of[row] == kNobody) return;
    CpuSamples::spread(sample, index_->facts().times.cuts, ns_per_tick,
                       [&, at = size_t{group_of[row]} * kSlices](size_t slice, double ns) {
                         course[at + slice] += ns;
                       });
  });
  return course;
}

}  // namespace malloscope::analyze
