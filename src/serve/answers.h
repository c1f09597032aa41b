// SPDX-License-Identifier: Apache-2.0
// What the page can ask, one function and one file for each kind of answer; docs/viewer_api.md is
// their contract. An answer is JSON or columns; an error is a sentence for the user.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "analyze/comparison.h"
#include "analyze/explorer.h"
#include "analyze/site_blocks.h"
#include "base/error.h"
#include "output/json_writer.h"
#include "serve/jobs.h"
#include "serve/question.h"

namespace malloscope::serve {

struct Context {
  analyze::Explorer& explorer;
  std::string path;                         // Of the trace.
  analyze::QueryWords names;                // How names are looked up and shown.
  std::vector<std::string> source_folders;  // Where the program's sources may be.
  Jobs& jobs;
  analyze::Comparison* comparison =
      nullptr;  // With the recording that was before, if there is one.
  std::string base_path = {};
  std::string asked = {};  // The question's name, by which it can be taken back (Jobs::leave).
  std::unique_lock<std::mutex>* turn = nullptr;  // With the explorer, if others wait for theirs.

  // Before what takes long and needs the explorer no more, but what it has given and never changes.
  void let_others() const {
    if (turn && turn->owns_lock()) turn->unlock();
  }

  // The same, about the recording that was before.
  Context base() const {
    return {comparison->before(), base_path, names, source_folders, jobs, nullptr, {}, asked, turn};
  }
};

// Of what is found when it is read, and only from an index can be had.
inline constexpr char kDamagedIndex[] =
    "the index of this trace is damaged; run malloscope view again, which makes a new one";

// Whether the question is about what changed since the other recording. An error if there is none.
Result<bool> is_since_base(const Context& context, const Parameters& parameters);

// The members of api/trace once it is loaded, without the braces around them.
void write_trace_members(const Context& context, output::JsonWriter* json);
// Of these: the phases and marks to be drawn on a timeline.
void write_phase_members(const analyze::Reading& reading, output::JsonWriter* json);

Result<std::string> timeline_answer(const Context& context, const Parameters& parameters);
Result<std::string> flame_answer(const Context& context, const Parameters& parameters);
Result<std::string> sites_answer(const Context& context, const Parameters& parameters);
Result<std::string> sparks_answer(const Context& context, const Parameters& parameters);
Result<std::string> stacks_answer(const Context& context, const Parameters& parameters);
Result<std::string> source_answer(const Context& context, const Parameters& parameters);
bool has_replay(const std::string& trace);
Result<std::string> replay_answer(const std::string& trace);

// Which blocks are meant takes the explorer to know; to see them, a look at all events.
struct BlockFilter {
  std::vector<std::vector<bool>> stacks;   // By image and stack; empty: all.
  std::vector<std::vector<bool>> threads;  // By image and thread; empty: all.
  std::vector<bool> phases;                // By PhasesId; empty: all.
  uint64_t min_size = 0, max_size = UINT64_MAX;

  bool is_of_all() const {
    return stacks.empty() && threads.empty() && phases.empty() && min_size == 0 &&
           max_size == UINT64_MAX;
  }
  bool lets_through(ImageId image, const analyze::Block& block) const;
  // The same, whatever the size.
  bool lets_through(ImageId image, StackId stack, analyze::StrandId strand) const;
};
// Those of these rows, with the question's threads, phases and sizes.
BlockFilter block_filter(const Context& context, const analyze::Explorer::Question& question,
                         const std::vector<bool>& rows);

struct BlocksQuestion {
  analyze::NamedFrame site;
  analyze::Explorer::Question question;
  std::vector<bool> rows;       // Those of the site.
  std::optional<size_t> image;  // Its place in the tables, if they are of one.
  BlockFilter filter;           // Once events are to be read: see filter_events().
  // Whether each block is to be told apart, however long that takes. Nothing: if it does not.
  std::optional<bool> each;
};
Result<BlocksQuestion> blocks_question(const Context& context, const Parameters& parameters);
// From the index, with the explorer; nothing: it does not know, or all events are read soon.
std::optional<std::string> indexed_blocks_answer(const Context& context,
                                                 const BlocksQuestion& asked);
// From all events, for which the filter must have been made, with the explorer.
void filter_events(const Context& context, BlocksQuestion* asked);
Result<std::string> blocks_answer(const Context& context, const BlocksQuestion& asked);
// The same from an observer of events that somebody else reads.
std::unique_ptr<analyze::SiteBlocks> blocks_observer(const BlocksQuestion& asked, size_t most_bars);
inline constexpr size_t kMostBars = 20'000;
std::string blocks_columns(const Context& context, const BlocksQuestion& asked,
                           analyze::SiteBlocks* blocks);

// A part of the timeline, or all of it, in finer slices; or where the index knows no curve.
struct DetailQuestion {
  analyze::Query query;
  BlockFilter filter;
  analyze::Window window;
};
Result<DetailQuestion> detail_question(const Context& context, const Parameters& parameters);
Result<std::string> detail_answer(const Context& context, const DetailQuestion& asked);
// Whether api/timeline can be had from the index.
bool has_timeline(const Context& context, const Parameters& parameters);

// An answer of the command line, by the name of its view, if it can be had from the index.
Result<std::optional<std::string>> indexed_report_answer(const Context& context,
                                                         const std::string& view,
                                                         const Parameters& parameters);
// The same from all events; does not take the explorer.
Result<std::string> report_answer(const Context& context, const std::string& view,
                                  const Parameters& parameters);
// All of them about the whole recording, by name, in few passes. `attach` adds observers to one.
Result<std::map<std::string, std::string>> all_reports(
    const Context& context, const std::function<void(analyze::Heap*)>& attach);

}  // namespace malloscope::serve
