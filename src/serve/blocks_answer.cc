// SPDX-License-Identifier: Apache-2.0
// api/blocks: each block of one site from its birth to its death.

#include <algorithm>

#include "analyze/site_blocks.h"
#include "analyze/strand_selector.h"
#include "serve/answers.h"
#include "serve/columns.h"
#include "serve/names.h"

namespace malloscope::serve {

using analyze::BlockBar;
using analyze::Explorer;

bool BlockFilter::lets_through(ImageId image, StackId stack, analyze::StrandId strand) const {
  auto has = [of = raw(image) - size_t{1}](const std::vector<std::vector<bool>>& lists, size_t i) {
    return lists.empty() || (of < lists.size() && i < lists[of].size() && lists[of][i]);
  };
  return has(stacks, raw(stack)) && has(threads, raw(thread_of(strand))) &&
         (phases.empty() ||
          (raw(phases_of(strand)) < phases.size() && phases[raw(phases_of(strand))]));
}

bool BlockFilter::lets_through(ImageId image, const analyze::Block& block) const {
  return block.size >= min_size && block.size <= max_size &&
         lets_through(image, block.stack, block.strand);
}

BlockFilter block_filter(const Context& context, const Explorer::Question& question,
                         const std::vector<bool>& rows) {
  BlockFilter filter;
  Explorer& explorer = context.explorer;
  const std::vector<trace::Image>& images = explorer.reading().tables().images;
  for (const trace::Image& image : images) filter.stacks.emplace_back(image.stacks.bound());
  for (size_t row = 0; row < explorer.rows().size(); ++row) {
    if (!rows[row]) continue;
    const Explorer::RowId& id = explorer.rows()[row];
    std::vector<bool>& stacks = filter.stacks[raw(id.image) - 1];
    stacks.resize(std::max<size_t>(stacks.size(), raw(id.stack) + size_t{1}));
    stacks[raw(id.stack)] = true;
  }
  const analyze::Query& query = question.query;
  filter.min_size = query.tally.min_size;
  filter.max_size = query.tally.max_size;
  if (!query.threads.empty())
    for (const trace::Image& image : images) {
      std::vector<bool>& meant = filter.threads.emplace_back(image.threads.size() + 1);
      for (const trace::Thread& thread : image.threads)
        meant[raw(thread.id)] = analyze::is_meant(thread, query.threads);
    }
  if (!query.phases.empty()) {
    // Whoever reads all events gives them the same numbers.
    const analyze::PhasePaths& phases = explorer.reading().accounts().phases();
    analyze::StrandSelector selector(explorer.reading().tables(), phases, query);
    for (uint32_t i = 0; i < phases.paths.size(); ++i)
      filter.phases.push_back(selector.selects_phases(analyze::PhasesId{i}));
  }
  return filter;
}

Result<BlocksQuestion> blocks_question(const Context& context, const Parameters& parameters) {
  BlocksQuestion asked;
  Result<Explorer::Question> question = question_of(parameters, context.names);
  if (!question) return std::unexpected(question.error());
  Result<uint64_t> site = number(parameters, "site", Explorer::kNobody);
  if (!site) return std::unexpected(site.error());
  Explorer& explorer = context.explorer;
  Explorer::Grouping groups = explorer.groups(*question, analyze::By::kSite);
  if (*site >= groups->groups.size()) return fail_usage("there is no such site");
  asked.site = groups->groups[*site].site;
  asked.rows = explorer.asked_rows(*question);
  std::vector<bool> images(explorer.reading().tables().images.size());
  for (size_t row = 0; row < asked.rows.size(); ++row) {
    if (groups->group_of_row[row] != *site) asked.rows[row] = false;
    if (asked.rows[row]) images[raw(explorer.rows()[row].image) - 1] = true;
  }
  for (size_t i = 0; i < images.size(); ++i)
    if (!question->query.selection.contains(explorer.reading().tables().images[i]))
      images[i] = false;
  // Threads of several processes have the same numbers: whose block it is can be told of one.
  if (std::ranges::count(images, true) == 1)
    asked.image = static_cast<size_t>(std::ranges::find(images, true) - images.begin());
  if (std::string each = word(parameters, "each"); !each.empty()) asked.each = each == "1";
  asked.question = std::move(*question);
  return asked;
}

void filter_events(const Context& context, BlocksQuestion* asked) {
  asked->filter = block_filter(context, asked->question, asked->rows);
}

std::unique_ptr<analyze::SiteBlocks> blocks_observer(const BlocksQuestion& asked,
                                                     size_t most_bars) {
  return std::make_unique<analyze::SiteBlocks>(
      [&asked](ImageId image, const analyze::Block& block) {
        return asked.filter.lets_through(image, block);
      },
      most_bars);
}

std::string blocks_columns(const Context& context, const BlocksQuestion& asked,
                           analyze::SiteBlocks* blocks) {
  uint64_t count = blocks->blocks();
  std::vector<BlockBar> bars = blocks->take();
  bool coarse = blocks->is_coarse() && bars.size() < kMostBars;
  const analyze::Reading& reading = context.explorer.reading();
  const trace::Tables& tables = reading.tables();
  std::vector<double> born, died, bytes, stands_for;
  std::vector<uint32_t> tids;
  const trace::Image* image = asked.image ? &tables.images[*asked.image] : nullptr;
  auto tid_of = [&](ThreadId thread) -> uint32_t {
    bool known = image && thread != ThreadId::kNone && raw(thread) <= image->threads.size();
    return known ? static_cast<uint32_t>(image->threads[raw(thread) - 1].tid) : 0;
  };
  uint64_t least = UINT64_MAX, most = 0;
  for (const BlockBar& bar : bars) {
    uint64_t end = bar.died == BlockBar::kAlive ? reading.end_tick() + 1 : bar.died;
    born.push_back(static_cast<double>(tables.time_ns(bar.born)));
    died.push_back(static_cast<double>(tables.time_ns(end)));
    bytes.push_back(static_cast<double>(bar.bytes) / static_cast<double>(bar.blocks));
    stands_for.push_back(static_cast<double>(bar.blocks));
    tids.push_back(tid_of(bar.thread));
    least = std::min(least, bar.bytes / bar.blocks);
    most = std::max(most, bar.bytes / bar.blocks);
  }
  Columns columns;
  columns.add("born", born);
  columns.add("died", died);
  columns.add("size", bytes);
  columns.add("stands_for", stands_for);
  columns.add("tid", tids);
  return columns.finish([&](output::JsonWriter* json) {
    json->member("blocks", count);
    json->member("bars", bars.size());
    json->member("coarse", coarse);
    json->member("bytes_min", bars.empty() ? 0 : least);
    json->member("bytes_max", most);
    json->member("end_ns", tables.time_ns(reading.end_tick()));
    json->key("site");
    write_frame(asked.site, json);
  });
}

std::optional<std::string> indexed_blocks_answer(const Context& context,
                                                 const BlocksQuestion& asked) {
  constexpr uint64_t kFewEvents = 2'000'000;  // Read in a fraction of a second.
  Explorer& explorer = context.explorer;
  const analyze::Index* index = explorer.index();
  if (!index || asked.each.value_or(index->facts().events <= kFewEvents)) return std::nullopt;
  std::optional<analyze::Index::Steps> steps = explorer.parting_steps_of(asked.question.query);
  if (!steps) return std::nullopt;
  Jobs::Running job(&context.jobs, "looking for the blocks of a site", context.asked);
  const analyze::SiteBlocks::Cells cells = explorer.cells_of_rows(asked.question, asked.rows);
  analyze::SiteBlocks blocks({}, kMostBars);
  // Beyond so many it is worth keeping what they come to in each step, which then are short.
  constexpr uint64_t kManyBlocks = 4'000'000;
  uint64_t share =
      (steps->last - steps->first + 1) * explorer.blocks_of(cells) / analyze::IndexTimes::kSteps;
  if (share > kManyBlocks) {
    auto folded = explorer.folded_blocks(cells, *steps);
    if (!folded) return std::nullopt;
    blocks.restore(*folded, *index, *steps);
  } else if (!blocks.restore(*index, *steps, cells)) {
    return std::nullopt;
  }
  return blocks_columns(context, asked, &blocks);
}

Result<std::string> blocks_answer(const Context& context, const BlocksQuestion& asked) {
  Jobs::Running job(&context.jobs, "reading all events for the blocks of a site", context.asked);
  std::unique_ptr<analyze::SiteBlocks> blocks = blocks_observer(asked, kMostBars);
  auto progress = [&](double share) { job.show(share); };
  auto attach = [&](analyze::Heap* heap) { heap->add_observer(blocks.get()); };
  analyze::Query query = asked.question.query;
  query.frames = {};
  query.tally = {};
  auto reading = analyze::Reading::open(context.path, query, {progress, attach, {}});
  if (!reading) return std::unexpected(reading.error());
  return blocks_columns(context, asked, blocks.get());
}

}  // namespace malloscope::serve
