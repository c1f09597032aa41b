// SPDX-License-Identifier: Apache-2.0
#include "analyze/leaks.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "analyze/numbers.h"
#include "analyze/row_selector.h"
#include "symbols/name_rules.h"
#include "symbols/returned_string.h"

namespace malloscope::analyze {
namespace {

using Kind = Column::Kind;

// Leaks by what their stacks look like.
class Gathering {
 public:
  explicit Gathering(StackPool* pool) : pool_(*pool) {}

  void add(const std::vector<FrameId>& stack, const Row& row, size_t suppression) {
    size_t place = place_of(stack, suppression);
    Leak& leak = leaks_[place];
    leak.blocks += row.amounts.live_blocks;
    leak.bytes += row.amounts.live_bytes;
    leak.first_tick = std::min(leak.first_tick, row.details.live_first_tick);
    leak.last_tick = std::max(leak.last_tick, row.details.live_last_tick);
    // Each process has its own periods: what a hundred short ones make once does not grow.
    Latest& latest = latest_[place];
    latest.periods = (latest.image == row.image ? latest.periods : 0) | row.details.live_periods;
    latest.image = row.image;
    auto order = [](uint32_t periods) {
      return std::pair(recurrence(periods), -std::popcount(periods));
    };
    if (order(latest.periods) < order(leak.periods)) leak.periods = latest.periods;
  }

  // In an order that does not depend on addresses or on the order of events.
  std::vector<Leak> take(const FrameTable& frames, LeakSums* sums) {
    for (const Leak& leak : leaks_) sums->add(leak);
    auto heavier = [&](const Leak& a, const Leak& b) {
      if (a.bytes != b.bytes) return a.bytes > b.bytes;
      if (a.blocks != b.blocks) return a.blocks > b.blocks;
      return std::lexicographical_compare(a.stack.begin(), a.stack.end(), b.stack.begin(),
                                          b.stack.end(), [&](FrameId x, FrameId y) {
                                            if (x == y) return false;  // Most are.
                                            const Frame &f = frames.frame(x), &g = frames.frame(y);
                                            return std::tie(f.function, f.file, f.line, f.module) <
                                                   std::tie(g.function, g.file, g.line, g.module);
                                          });
    };
    std::sort(leaks_.begin(), leaks_.end(), heavier);
    return std::move(leaks_);
  }

 private:
  size_t place_of(const std::vector<FrameId>& stack, size_t suppression) {
    uint64_t hash = suppression;
    for (FrameId frame : stack) {
      hash = (hash ^ static_cast<uint64_t>(frame)) * 0x9e3779b97f4a7c15;
      hash ^= hash >> 29;
    }
    if (leaks_.size() * 2 >= places_.size()) grow();
    size_t mask = places_.size() - 1, at = hash & mask;
    for (; places_[at] != 0; at = (at + 1) & mask) {
      size_t place = places_[at] - 1;
      if (hashes_[place] == hash && leaks_[place].suppression == suppression &&
          std::ranges::equal(leaks_[place].stack, stack))
        return place;
    }
    leaks_.emplace_back().stack = pool_.keep(stack);
    leaks_.back().suppression = suppression;
    latest_.emplace_back();
    hashes_.push_back(hash);
    places_[at] = leaks_.size();
    return leaks_.size() - 1;
  }

  void grow() {
    places_.assign(std::max<size_t>(1024, places_.size() * 2), 0);
    size_t mask = places_.size() - 1;
    for (size_t i = 0; i < hashes_.size(); ++i) {
      size_t at = hashes_[i] & mask;
      while (places_[at] != 0) at = (at + 1) & mask;
      places_[at] = i + 1;
    }
  }

  struct Latest {
    ImageId image = ImageId::kNone;
    uint32_t periods = 0;
  };

  StackPool& pool_;
  std::vector<Leak> leaks_;
  std::vector<Latest> latest_;    // Beside `leaks_`: of the image whose rows are being added.
  std::vector<uint64_t> hashes_;  // Likewise: of their stacks, which are long.
  std::vector<size_t> places_;    // Open addressing: in `leaks_`, + 1.
};

const char* recurrence_name(Recurrence recurrence) {
  switch (recurrence) {
    case Recurrence::kGrowing:
      return "growing";
    case Recurrence::kRepeated:
      return "repeated";
    case Recurrence::kOnce:
      break;
  }
  return "once";
}

std::string recurrence_text(uint32_t periods) {
  switch (recurrence(periods)) {
    case Recurrence::kGrowing:
      return fmt::format("growing {}/{}", std::popcount(periods), kPeriods);
    case Recurrence::kRepeated:
      return fmt::format("again {}/{}", std::popcount(periods), kPeriods);
    case Recurrence::kOnce:
      break;
  }
  return "once";
}

std::string within_text(const std::vector<Pattern>& within) {
  std::string text;
  for (const Pattern& pattern : within)
    text += fmt::format("{}`{}`", text.empty() ? "" : " or ", pattern.text());
  return text;
}

// In the words of Hephaestus, and then what it did not tell.
std::string headline(const Leaks& leaks, const std::vector<Pattern>& within) {
  std::string text = fmt::format(
      "{}, {} unique{}; ignored {} unique by {}.", count_text(leaks.total.blocks, "leak", "leaks"),
      grouped(leaks.total.unique), within.empty() ? "" : ", in " + within_text(within),
      grouped(leaks.ignored.unique), count_text(leaks.filters, "filter", "filters"));
  if (leaks.total.blocks == 0) return text;
  text += " " + bytes_text(leaks.total.bytes);
  if (leaks.growing.unique > 0)
    text += fmt::format(", of which {} in {} {} growing", bytes_text(leaks.growing.bytes),
                        grouped(leaks.growing.unique),
                        leaks.growing.unique == 1 ? "stack that is" : "stacks that are");
  return text + ".";
}

class View {
 public:
  View(Reading* reading, const Query& query, const Leaks& leaks, const Suppressions& suppressions,
       const LeakView& view)
      : reading_(*reading),
        leaks_(leaks),
        suppressions_(suppressions),
        view_(view),
        full_names_(query.full_names || view.for_programs),
        names_(std::make_shared<Names>(reading->frames(), full_names_)) {}

  Answer answer() {
    Answer answer;
    answer.headline = headline(leaks_, view_.within);
    if (has_bad_frees())
      answer.headline += fmt::format(
          " {}.",
          count_text(view_.bad_frees->count(), "double or bad free", "double or bad frees"));
    add_facts(&answer);
    if (has_bad_frees() || (view_.for_programs && view_.bad_frees && view_.bad_frees->has_stacks()))
      answer.tables.push_back(view_.bad_frees->table(&reading_, full_names_));
    answer.tables.push_back(leak_table());
    if (answer.tables.back().left_out > 0 && view_.top > 0) answer.tables.push_back(rest_table());
    if (view_.for_programs || view_.show_suppressed) answer.tables.push_back(line_table());
    if (view_.show_suppressed) answer.tables.push_back(suppressed_table());
    add_notes(&answer);
    return answer;
  }

 private:
  bool has_bad_frees() const {
    return view_.bad_frees && view_.bad_frees->has_stacks() && view_.bad_frees->count() > 0;
  }

  void add_facts(Answer* answer) const {
    auto add = [&](const char* key, uint64_t number) {
      answer->facts.emplace_back(fmt::format("totals.{}", key), number);
    };
    add("blocks", leaks_.total.blocks);
    add("bytes", leaks_.total.bytes);
    add("unique", leaks_.total.unique);
    add("growing_unique", leaks_.growing.unique);
    add("growing_blocks", leaks_.growing.blocks);
    add("growing_bytes", leaks_.growing.bytes);
    add("ignored_unique", leaks_.ignored.unique);
    add("ignored_blocks", leaks_.ignored.blocks);
    add("ignored_bytes", leaks_.ignored.bytes);
    add("ignored_by", leaks_.filters);
    add("undecided_unique", leaks_.undecided.unique);
    add("undecided_blocks", leaks_.undecided.blocks);
    add("undecided_bytes", leaks_.undecided.bytes);
    if (!view_.known) return;
    LeakSums fresh = new_leaks(leaks_, reading_.frames(), *view_.known);
    add("new_unique", fresh.unique);
    add("new_blocks", fresh.blocks);
    add("new_bytes", fresh.bytes);
  }

  Table leak_table() {
    Table table;
    table.key = "leaks";
    table.columns = {{"bytes", "bytes", Kind::kBytes},     {"share", "", Kind::kShare, false},
                     {"blocks", "blocks", Kind::kCount},   {"recurrence", "", Kind::kText, false},
                     {"periods", "", Kind::kCount, false}, {"when", "when", Kind::kText},
                     {"first_ns", "first", Kind::kTime},   {"last_ns", "last", Kind::kTime}};
    if (view_.known) table.columns.push_back({"new", "new", Kind::kText});
    table.columns.push_back({"frame", "leaked by", Kind::kFrame});
    table.columns.push_back({"stack", "", Kind::kStack, view_.stacks});
    for (const Leak& leak : leaks_.found) {
      if (view_.top > 0 && table.rows.size() == view_.top) break;
      TableRow row;
      row.cells = {leak.bytes,
                   Share{leak.bytes, leaks_.total.bytes},
                   leak.blocks,
                   std::string(recurrence_name(recurrence(leak.periods))),
                   static_cast<uint64_t>(std::popcount(leak.periods)),
                   recurrence_text(leak.periods),
                   reading_.tables().time_ns(leak.first_tick),
                   reading_.tables().time_ns(leak.last_tick)};
      if (view_.known)
        row.cells.emplace_back(
            std::string(view_.known->contains(functions_of(leak, reading_.frames())) ? "" : "new"));
      add_stack(leak, &row);
      table.rows.push_back(std::move(row));
    }
    table.left_out = leaks_.found.size() - table.rows.size();
    return table;
  }

  // What the table of leaks leaves out, by the site that leaked, the heaviest first: whoever puts
  // the leaks together by site needs all of them.
  Table rest_table() {
    struct Site {
      std::optional<FrameId> frame;  // None: hidden.
      LeakSums sums;
      uint64_t first_tick = UINT64_MAX, last_tick = 0;
      uint32_t periods = 0;
    };
    std::unordered_map<uint64_t, size_t> places;
    std::vector<Site> sites;
    for (size_t i = view_.top; i < leaks_.found.size(); ++i) {
      const Leak& leak = leaks_.found[i];
      bool hidden = leak.stack.empty();
      uint64_t key = hidden ? UINT64_MAX : static_cast<uint64_t>(leak.stack[0]);
      auto [place, fresh] = places.try_emplace(key, sites.size());
      if (fresh) sites.emplace_back();
      if (fresh && !hidden) sites.back().frame = leak.stack[0];
      Site& site = sites[place->second];
      site.sums.add(leak);
      site.first_tick = std::min(site.first_tick, leak.first_tick);
      site.last_tick = std::max(site.last_tick, leak.last_tick);
      if (std::popcount(leak.periods) > std::popcount(site.periods)) site.periods = leak.periods;
    }
    std::ranges::stable_sort(sites, std::ranges::greater(),
                             [](const Site& site) { return site.sums.bytes; });
    Table table;
    table.key = "rest";
    table.title = "Lighter stacks, by site";
    table.columns = {{"bytes", "bytes", Kind::kBytes},   {"share", "", Kind::kShare, false},
                     {"blocks", "blocks", Kind::kCount}, {"when", "when", Kind::kText},
                     {"first_ns", "first", Kind::kTime}, {"last_ns", "last", Kind::kTime},
                     {"stacks", "stacks", Kind::kCount}, {"frame", "leaked by", Kind::kFrame}};
    for (const Site& site : sites) {
      if (table.rows.size() == view_.top) break;
      TableRow row;
      row.cells = {site.sums.bytes,
                   Share{site.sums.bytes, leaks_.total.bytes},
                   site.sums.blocks,
                   recurrence_text(site.periods),
                   reading_.tables().time_ns(site.first_tick),
                   reading_.tables().time_ns(site.last_tick),
                   site.sums.unique,
                   site.frame ? names_->of(*site.frame) : NamedFrame{"[hidden]", "", 0, ""}};
      table.rows.push_back(std::move(row));
    }
    table.left_out = sites.size() - table.rows.size();
    return table;
  }

  // How much each line suppressed, those that met nothing left out.
  Table line_table() const {
    Table table;
    table.key = "suppressions";
    table.title = "Suppressed, by line";
    table.columns = {{"bytes", "bytes", Kind::kBytes},
                     {"blocks", "blocks", Kind::kCount},
                     {"unique", "unique", Kind::kCount},
                     {"where", "where", Kind::kText},
                     {"line", "line", Kind::kFrame}};
    std::map<size_t, LeakSums> sums;
    for (const Leak& leak : leaks_.suppressed) sums[leak.suppression].add(leak);
    for (const auto& [place, sum] : sums) {
      const Suppression& by = suppressions_.list()[place];
      TableRow row;
      row.cells = {sum.bytes, sum.blocks, sum.unique, by.where, by.line};
      table.rows.push_back(std::move(row));
    }
    return table;
  }

  Table suppressed_table() {
    Table table;
    table.key = "suppressed";
    table.title = "Suppressed leaks";
    table.columns = {
        {"bytes", "bytes", Kind::kBytes},     {"blocks", "blocks", Kind::kCount},
        {"where", "by", Kind::kText},         {"suppression", "", Kind::kText, false},
        {"frame", "leaked by", Kind::kFrame}, {"stack", "", Kind::kStack, view_.stacks}};
    for (const Leak& leak : leaks_.suppressed) {
      const Suppression& by = suppressions_.list()[leak.suppression];
      TableRow row;
      row.cells = {leak.bytes, leak.blocks, by.where, by.line};
      add_stack(leak, &row);
      table.rows.push_back(std::move(row));
    }
    return table;
  }

  // Most stacks have most of their frames in common.
  class Names {
   public:
    Names(const FrameTable& frames, bool full_names) : frames_(frames), full_names_(full_names) {}
    const NamedFrame& of(FrameId id) {
      auto [known, fresh] = known_.try_emplace(id);
      if (!fresh) return known->second;
      const Frame& frame = frames_.frame(id);
      return known->second = {full_names_ ? frame.function : symbols::short_name(frame.function),
                              frame.file,
                              frame.line,
                              frame.module,
                              frame.function,
                              frame.column};
    }

   private:
    const FrameTable& frames_;
    bool full_names_;
    std::unordered_map<FrameId, NamedFrame> known_;
  };

  void add_stack(const Leak& leak, TableRow* row) {
    row->cells.emplace_back(leak.stack.empty() ? NamedFrame{"[hidden]", "", 0, ""}
                                               : names_->of(leak.stack[0]));
    row->cells.emplace_back(Stack([names = names_, &leak] {
      std::vector<NamedFrame> stack;
      for (FrameId id : leak.stack) stack.push_back(names->of(id));
      return stack;
    }));
  }

  void add_notes(Answer* answer) const {
    if (leaks_.proves_nothing())
      answer->notes.push_back(
          fmt::format("That proves nothing: {}.", no_proof_text(leaks_, view_.within)));
    if (leaks_.undecided.unique > 0)
      answer->notes.push_back(fmt::format(
          "{} ({}, {}) could not be judged: {} outer end was not recorded, and {} may lie "
          "beyond it.",
          count_text(leaks_.undecided.unique, "more stack", "more stacks"),
          count_text(leaks_.undecided.blocks, "block", "blocks"),
          bytes_text(leaks_.undecided.bytes), leaks_.undecided.unique == 1 ? "its" : "their",
          within_text(view_.within)));
    if (view_.bad_frees && view_.bad_frees->count() > 0 && !view_.bad_frees->has_stacks())
      answer->notes.push_back(
          fmt::format("{} of what was no block; record with malloscope run --free-stacks to see "
                      "where.",
                      count_text(view_.bad_frees->count(), "free", "frees")));
    if (view_.for_programs) return;  // They have all that, or cannot read it.
    if (leaks_.ignored.unique > 0 && !view_.show_suppressed)
      answer->notes.push_back(fmt::format("Ignored: {} in {}; --show-suppressed lists them.",
                                          bytes_text(leaks_.ignored.bytes),
                                          count_text(leaks_.ignored.blocks, "block", "blocks")));
    if (std::ranges::any_of(leaks_.found, [](const Leak& leak) {
          return recurrence(leak.periods) != Recurrence::kOnce;
        }))
      answer->notes.push_back(fmt::format(
          "again 3/{0}: it leaked in 3 of the {0} equal parts of the {1}; growing: in half of them "
          "or more, and towards the end.",
          kPeriods, is_part() ? "range" : "run"));
    if (reading_.accounts().window().to_tick < reading_.end_tick())
      answer->notes.push_back(
          fmt::format("A leak is here what was not freed by {}; it may have been freed later.",
                      duration_text(reading_.range().to_ns)));
    if (!leaks_.found.empty() && !view_.stacks)
      answer->notes.push_back("--stacks shows how the program got there.");
  }

  // Whether it is about a range.
  bool is_part() const {
    const Window& window = reading_.accounts().window();
    return window.from_tick != 0 || window.to_tick < reading_.end_tick();
  }

  Reading& reading_;
  const Leaks& leaks_;
  const Suppressions& suppressions_;
  const LeakView& view_;
  bool full_names_;
  std::shared_ptr<Names> names_;  // Whoever asks for a stack later has it too.
};

}  // namespace

std::span<const FrameId> StackPool::keep(std::span<const FrameId> stack) {
  constexpr size_t kPiece = 1 << 16;
  if (stack.empty()) return {};
  if (pieces_.empty() || pieces_.back().capacity() - pieces_.back().size() < stack.size())
    pieces_.emplace_back().reserve(std::max(kPiece, stack.size()));
  std::vector<FrameId>& piece = pieces_.back();
  piece.insert(piece.end(), stack.begin(), stack.end());
  return std::span(piece).last(stack.size());
}

Recurrence recurrence(uint32_t periods) {
  int count = std::popcount(periods);
  if (count <= 1) return Recurrence::kOnce;
  constexpr uint32_t kLate = 0b11U << (kPeriods - 2);
  return count * 2 >= static_cast<int>(kPeriods) && (periods & kLate) ? Recurrence::kGrowing
                                                                      : Recurrence::kRepeated;
}

std::string no_proof_text(const Leaks& leaks, const std::vector<Pattern>& within) {
  if (!leaks.nothing_within)
    return fmt::format("{} ({}) go through functions without names, which may match {}",
                       count_text(leaks.nameless.unique, "stack", "stacks"),
                       bytes_text(leaks.nameless.bytes), within_text(within));
  return fmt::format(
      "no stack has a function that matches {} (misspelt, of a module without names, or it "
      "allocated nothing)",
      within_text(within));
}

void ask_for_leaks(Query* query) {
  query->tally.only_made_in_window = true;
  query->tally.details = true;
}

Leaks find_leaks(Reading* reading, const Query& query, const std::vector<Pattern>& within,
                 const Suppressions& suppressions) {
  FrameTable& frames = reading->frames();
  RowSelector selector(reading, query);
  SuppressionMatcher matcher(suppressions, frames);
  Leaks leaks;
  Gathering found(&leaks.stacks), suppressed(&leaks.stacks), undecided(&leaks.stacks);
  std::set<size_t> met;
  std::vector<int8_t> is_within;  // By FrameId; -1: not known yet.
  auto matches_within = [&](FrameId id) {
    auto i = static_cast<size_t>(id);
    if (i >= is_within.size()) is_within.resize(std::max(i + 1, is_within.size() * 2), -1);
    if (is_within[i] < 0) is_within[i] = matches_any(within, frames.frame(id).function);
    return is_within[i] != 0;
  };
  std::vector<FrameId> shown;
  reading->accounts().tally().for_each_row([&](const Row& row) {
    if (row.amounts.live_blocks == 0 || !selector.select(row, &shown)) return;
    const std::vector<FrameId>& whole = selector.whole();
    bool outside = !within.empty() && std::none_of(whole.begin(), whole.end(), matches_within);
    if (outside && frames.root(row.image, row.stack) == FrameTable::Root::kReached) return;
    size_t by = matcher.match(whole, frames.site(row.image, row.stack));
    if (outside) {  // Suppressed it would not be told either way.
      if (by == SuppressionMatcher::kNone) undecided.add(shown, row, by);
    } else if (by == SuppressionMatcher::kNone) {
      found.add(shown, row, by);
    } else {
      met.insert(by);
      suppressed.add(shown, row, by);
    }
  });

  leaks.found = found.take(frames, &leaks.total);
  leaks.suppressed = suppressed.take(frames, &leaks.ignored);
  undecided.take(frames, &leaks.undecided);
  leaks.filters = met.size();
  std::stable_sort(leaks.found.begin(), leaks.found.end(), [](const Leak& a, const Leak& b) {
    return recurrence(a.periods) < recurrence(b.periods);
  });
  for (const Leak& leak : leaks.found)
    if (recurrence(leak.periods) == Recurrence::kGrowing) leaks.growing.add(leak);
  if (!within.empty() && leaks.total.unique + leaks.ignored.unique == 0) {
    leaks.nothing_within = true;
    std::vector<FrameId> whole;
    reading->accounts().tally().for_each_row([&](const Row& row) {
      if (!leaks.nothing_within) return;
      frames.stack(row.image, row.stack, &whole);
      leaks.nothing_within = std::none_of(whole.begin(), whole.end(), matches_within);
    });
  }
  if (std::set<std::string> missing = reading->lost_modules();
      !within.empty() && leaks.total.unique == 0 && !missing.empty()) {
    Gathering nameless(&leaks.stacks);
    reading->accounts().tally().for_each_row([&](const Row& row) {
      if (row.amounts.live_blocks == 0 || !selector.select(row, &shown)) return;
      if (std::ranges::any_of(selector.whole(), [&](FrameId id) {
            const Frame& frame = frames.frame(id);
            return frame.function.find("+0x") != std::string::npos &&
                   missing.contains(frame.module);
          }))
        nameless.add(shown, row, SuppressionMatcher::kNone);
    });
    nameless.take(frames, &leaks.nameless);
  }
  return leaks;
}

FunctionsHash functions_of(const Leak& leak, const FrameTable& frames) {
  std::string text;
  for (FrameId id : leak.stack) text += frames.frame(id).function + '\0';
  XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return {hash.low64, hash.high64};
}

LeakSums new_leaks(const Leaks& leaks, const FrameTable& frames,
                   const std::set<FunctionsHash>& known) {
  LeakSums sums;
  for (const Leak& leak : leaks.found)
    if (!known.contains(functions_of(leak, frames))) sums.add(leak);
  return sums;
}

void add_embedded_suppressions(const Reading& reading, Suppressions* suppressions,
                               std::vector<std::string>* notes) {
  static const std::string kFunction = "__lsan_default_suppressions";
  std::set<std::pair<std::string, std::string>> seen;
  for (const trace::Image* image : reading.selected())
    for (const trace::Module& module : image->modules) {
      if (!seen.emplace(module.path, module.build_id).second) continue;
      auto text = symbols::returned_string({module.path, module.build_id}, kFunction);
      if (!text)
        notes->push_back(text.error().sentence + ".");
      else if (*text)
        if (auto added = suppressions->add(
                **text, fmt::format("{}() of {}", kFunction,
                                    module.path.substr(module.path.rfind('/') + 1)));
            !added)
          notes->push_back(added.error().sentence + ".");
    }
}

Answer leaks_answer(Reading* reading, const Query& query, const Leaks& leaks,
                    const Suppressions& suppressions, const LeakView& view) {
  return View(reading, query, leaks, suppressions, view).answer();
}

}  // namespace malloscope::analyze
