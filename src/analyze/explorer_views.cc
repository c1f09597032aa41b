// SPDX-License-Identifier: Apache-2.0
// Views of reports that are answered as reports do, but by accounts that come from the index.

#include <utility>

#include "analyze/explorer.h"
#include "analyze/question_parts.h"

namespace malloscope::analyze {
namespace {

// A reading's accounts are others as long as this lives, whatever is thrown.
class OtherAccounts {
 public:
  OtherAccounts(Reading* reading, std::unique_ptr<Accounts> others)
      : reading_(*reading), own_(reading->exchange(std::move(others))) {}
  ~OtherAccounts() { reading_.exchange(std::move(own_)); }
  OtherAccounts(const OtherAccounts&) = delete;

 private:
  Reading& reading_;
  std::unique_ptr<Accounts> own_;
};

}  // namespace

bool Explorer::with_leaks(const Query& query, const std::function<void(Reading*)>& ask) {
  std::optional<Window> window = window_in_index(query);
  if (!window) return false;
  TallyOptions tally = query.tally_of_strands();
  auto accounts = index_->leaks(reading_->tables(), query.selection, *window, tally);
  if (!accounts) return false;
  OtherAccounts others(reading_.get(), std::move(accounts));
  ask(reading_.get());
  return true;
}

bool Explorer::with_view(View* view, const QueryWords& words, const Query& query,
                         const std::function<void(Reading*)>& ask) {
  std::optional<Window> window = window_in_index(query);
  if (!window) return false;
  std::optional<Index::Steps> steps = index_->parting_steps_of(*window);
  if (!steps) return false;
  const trace::Tables& tables = reading_->tables();
  TallyOptions tally = query.tally_of_strands();
  std::unique_ptr<Accounts> accounts = index_->totals(tables, query.selection, *window, tally);
  if (!accounts) return false;
  IndexedWindow from = {
      *index_, *sums_, *window, *steps, *reading_, query, index_->selected(tables, query.selection),
      {},      {}};
  AskedCells asked = asked_cells({words, query, Metric::kPeak});
  for (size_t i = 0; i < asked.rows.size(); ++i)
    from.asked_cells.push_back(asked.rows[i] != kNobody ||
                               (asked.cut && asked.cut->row_of_cell[i] != kNobody));
  from.cell_sites = [&] {
    std::string key = frames_key(words);
    const auto* kept = cell_sites_.find(key);
    auto all = kept ? *kept
                    : cell_sites_.keep(key, std::make_shared<CellSites>(*index_, reading_.get(),
                                                                        about_frames(query)));
    return std::make_shared<const CellSites>(std::move(all), from.asked_cells);
  };
  OtherAccounts others(reading_.get(), std::move(accounts));
  if (!view->restore(from)) return false;
  ask(reading_.get());
  return true;
}

bool Explorer::with_cpu(const Query& query, const std::function<void(Reading*)>& ask) {
  std::optional<Window> window = window_of_cpu(query);
  if (!window) return false;
  OtherAccounts others(reading_.get(), cpu_accounts(*cpu_, reading_->tables(), query.selection,
                                                    *window, query.tally_of_strands()));
  ask(reading_.get());
  return true;
}

}  // namespace malloscope::analyze
