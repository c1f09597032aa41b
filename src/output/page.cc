// SPDX-License-Identifier: Apache-2.0
// What a reader who has never seen it must find, in this order: how much, when,
// which code; then whether to believe it; then what to type next. So figures
// come before tables, each figure with a word on what it means, and a table that
// would be empty is a sentence.

#include "output/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analyze/cpu_samples.h"
#include "analyze/cpu_summary.h"
#include "output/fitted_names.h"
#include "output/losses.h"
#include "output/module_names.h"
#include "output/style.h"
#include "output/words.h"
#include "symbols/readable_name.h"

namespace malloscope::output {
namespace {

using analyze::Metric;
using analyze::Site;

// Text padded on the right to `width` columns.
std::string padded(std::string text, size_t width) {
  size_t used = columns(text);
  if (used < width) text.append(width - used, ' ');
  return text;
}

std::string right(const std::string& text, size_t width) {
  size_t used = columns(text);
  return used < width ? std::string(width - used, ' ') + text : text;
}

class Page {
 public:
  Page(analyze::Reading* reading, const PageOptions& options, Sink* sink)
      : reading_(*reading),
        tables_(reading->tables()),
        totals_(reading->accounts().totals()),
        peak_(reading->accounts().peak()),
        images_(reading->selected()),
        range_(reading->range()),
        is_part_(reading->accounts().window().from_tick > 0 ||
                 reading->accounts().window().to_tick != analyze::Window::kNever),
        width_(std::clamp<size_t>(options.width, 50, 200)),
        rows_(options.rows),
        tool_(options.tool),
        style_{options.color},
        sink_(*sink) {}

  void write() {
    title();
    figures();
    if (totals_.allocations > 0) {
      std::set<std::string> modules;
      for (const Site& site : reading_.sites())
        modules.insert(reading_.frames().frame(site.frame).module);
      modules_ = ModuleNames(modules);
      std::vector<List> lists = {
          make_list("Heaviest at the peak", Metric::kPeak, peak_.bytes),
          make_list(is_part_ ? "Live at the end of that time" : "Still live at the end",
                    Metric::kLive, totals_.live_bytes),
          make_list("Most calls", Metric::kCalls, totals_.allocations + totals_.reallocations),
      };
      // Where a program allocates much more than it ever holds, who does is a question of its own.
      if (totals_.allocated_bytes / 4 > peak_.bytes)
        lists.push_back(
            make_list("Most bytes allocated", Metric::kAllocated, totals_.allocated_bytes));
      for (const List& list : lists) write_list(list);
    }
    processes();
    recording();
    next();
  }

 private:
  void line(std::string_view text = "") {
    sink_.write(text);
    sink_.write("\n");
  }

  // "! what is wrong", what does not fit under its first word.
  void remark(std::string_view mark, std::string_view text, bool warn = false) {
    std::string indent = "  " + std::string(mark) + " ";
    for (const std::string& piece : wrapped_lines(printable(text), width_ - indent.size())) {
      line(indent + (warn ? style_.warning(piece) : piece));
      indent.assign(indent.size(), ' ');
    }
  }

  // The image the user thinks of as "the program" is the first one of all; of one process the
  // last, since what it was between fork and exec is its parent's name.
  void title() {
    line();
    if (images_.empty()) {
      line(style_.bold("No process was recorded."));
      for (const std::string& setting : tables_.header.settings)
        if (setting.starts_with("only="))
          line("  No program's name matches --only " + shell_quoted(setting.substr(5)) + ".");
      return;
    }
    const trace::Image& first = *images_.front();
    uint64_t begin = first.start_tick, end = begin;
    for (const trace::Image* image : images_) {
      begin = std::min(begin, image->start_tick);
      end = std::max(end, image->end_tick.value_or(reading_.end_tick()));
    }
    std::string lasted = duration_text(tables_.time_ns(end) - tables_.time_ns(begin));
    // An exec goes on under the same pid; its last image has the exit code.
    const trace::Image* last = &first;
    for (const trace::Image* image : images_)
      if (image->pid == first.pid && image->start_tick >= last->start_tick) last = image;
    std::string facts = fmt::format("   ran {}, {}", lasted, exit_text(*last));
    bool all = reading_.accounts().selection().is_all();
    const trace::Image& named = all ? first : *last;
    std::string command =
        named.command.empty() ? printable(named.executable) : command_text(named.command);
    if (tables_.runs.size() > 1 && all) {
      command = fmt::format("{} recordings, the first: {}", grouped(tables_.runs.size()), command);
      facts = fmt::format("   {} in all", lasted);
    }
    line(style_.bold(cut_end(command, width_ > columns(facts) ? width_ - columns(facts) : 0)) +
         facts);
    if (is_part_)
      for (const std::string& piece : wrapped_lines(
               fmt::format("Only from {} to {} of the recording; what is of the whole run says so",
                           duration_text(range_.from_ns), duration_text(range_.to_ns)),
               width_))
        line(piece);
    line();
  }

  void figure(std::string_view name, const std::string& amount, const std::string& meaning) {
    std::string front =
        "  " + padded(std::string(name), 12) + style_.bold(right(amount, 12)) + "  ";
    for (const std::string& piece : wrapped_lines(meaning, width_ - 28)) {
      line(front + piece);
      front.assign(28, ' ');
    }
  }

  // By its resident size, or nobody.
  const trace::Image* largest_image() const {
    auto largest = std::ranges::max_element(images_, {}, &trace::Image::peak_rss_bytes);
    return largest == images_.end() ? nullptr : *largest;
  }

  void figures() {
    if (totals_.allocations == 0) {
      line("  No allocation was recorded.");
    } else {
      figure("Peak heap", bytes_text(peak_.bytes),
             fmt::format("reached at {} of the recording's {}{}",
                         duration_text(tables_.time_ns(peak_.tick)),
                         duration_text(tables_.time_ns(reading_.end_tick())),
                         range_.from_ns > 0 ? ", with what was there before" : ""));
      std::string calls = "in " + count_text(totals_.allocations, "allocation", "allocations");
      if (totals_.reallocations > 0)
        calls += " and " + count_text(totals_.reallocations, "reallocation", "reallocations");
      if (totals_.failed > 0) calls += fmt::format("; {} failed", grouped(totals_.failed));
      figure("Allocated", bytes_text(totals_.allocated_bytes), calls);
      std::string live = count_text(totals_.live_blocks, "block", "blocks");
      // Only of several processes: the peak is of those that run at the same time.
      if (totals_.live_bytes > peak_.bytes)
        live += "; more than the peak, with what processes had not freed when they ended";
      if (is_part_)
        figure("Live", bytes_text(totals_.live_bytes),
               fmt::format("at {}, in {}{}", duration_text(range_.to_ns), live,
                           range_.from_ns > 0 ? ", whenever they were allocated" : ""));
      else
        figure("Still live", bytes_text(totals_.live_bytes),
               totals_.live_blocks > 0       ? "at the end, in " + live
               : tables_.header.is_sampled() ? "at the end: every recorded block was freed"
                                             : "every block was freed");
      figure("Temporary", percent_text(totals_.temporary, totals_.allocations),
             fmt::format("{}, freed before the thread's next one",
                         count_text(totals_.temporary, "allocation", "allocations")));
    }
    if (analyze::has_cpu(tables_)) cpu();
    const trace::Image* largest = largest_image();
    if (largest && largest->peak_rss_bytes > 0)
      figure("Peak RSS", bytes_text(largest->peak_rss_bytes),
             fmt::format("resident{}{}{}{}", images_.size() > 1 ? " in the largest process" : "",
                         is_part_ ? ", of the whole run" : "",
                         largest->recorder_rss_bytes > 0  // Not known of a trace that was cut.
                             ? fmt::format("; up to {} of it the recorder's own",
                                           bytes_text(std::min(largest->recorder_rss_bytes,
                                                               largest->peak_rss_bytes)))
                             : "",
                         reading_.accounts().peak(largest->id).bytes > largest->peak_rss_bytes
                             ? ". Less than the heap: not all of that was ever touched"
                             : ""));
    if (totals_.mappings.mapped_bytes > 0)
      figure("Mapped", bytes_text(totals_.mappings.mapped_bytes),
             fmt::format(
                 "by all of the program's own mmap calls together, {} unmapped again; not part "
                 "of the heap figures",
                 bytes_text(totals_.mappings.unmapped_bytes)));
  }

  void cpu() {
    analyze::CpuSum sum = analyze::cpu_sum(reading_);
    analyze::CpuFunction most = analyze::heaviest_function(&reading_);
    std::string meaning = "in " + count_text(sum.samples, "sample", "samples");
    if (!most.name.empty())
      meaning += fmt::format("; most in {} ({})",
                             cut_end(printable(symbols::short_name(most.name)), width_ / 2),
                             percent_text(most.nanoseconds, sum.nanoseconds));
    if (std::string share = analyze::recorders_share(sum); !share.empty()) meaning += "; " + share;
    figure("CPU time", duration_text(sum.nanoseconds), meaning);
  }

  // The file and the folder it is in: a full path would push the function off the page. If that is
  // not known, the library, unless there is a column for it.
  std::string location(const analyze::Frame& frame, size_t width) const {
    if (frame.file.empty()) return is_narrow() ? cut_middle(library(frame), width) : "-";
    std::string_view path = frame.file;
    size_t slash = path.find_last_of('/');
    if (slash != std::string_view::npos && slash > 0) slash = path.find_last_of('/', slash - 1);
    if (slash != std::string_view::npos) path.remove_prefix(slash + 1);
    std::string number = frame.line > 0 ? fmt::format(":{}", frame.line) : "";
    std::string whole = printable(path) + number;
    if (columns(whole) > width) whole = printable(base_name(path)) + number;
    return cut_beginning(whole, width);
  }

  bool is_narrow() const { return width_ < 80; }  // No room for libraries.

  std::string library(const analyze::Frame& frame) const {
    return frame.module.empty() ? "-" : printable(modules_.of(frame.module));
  }

  struct List {
    std::string_view title;
    Metric metric;
    uint64_t whole;
    std::vector<const Site*> sites;
  };

  // Columns are as wide as the widest of all lists; what is left over is the function's.
  List make_list(std::string_view title_text, Metric metric, uint64_t whole) {
    List list = {title_text, metric, whole,
                 analyze::heaviest(reading_.sites(), reading_.frames(), metric, rows_)};
    for (const Site* site : list.sites) {
      const analyze::Frame& frame = reading_.frames().frame(site->frame);
      place_width_ = std::max(place_width_, columns(location(frame, width_ / 4)));
      library_width_ = std::max(library_width_, std::min(columns(library(frame)), width_ / 6));
    }
    return list;
  }

  void write_list(const List& list) {
    if (list.sites.empty()) return;
    line();
    line(style_.bold(list.title));
    const size_t function_width = width_ - (is_narrow() ? 26 : 28 + library_width_) - place_width_;
    std::vector<std::string_view> functions;
    for (const Site* site : list.sites)
      functions.push_back(reading_.frames().frame(site->frame).function);
    std::vector<std::string> shown = symbols::short_names(functions, function_width);
    FittedNames names;
    for (std::string& name : shown) names.add(name = printable(name), "", function_width);
    for (size_t i = 0; i < list.sites.size(); ++i) {
      const Site* site = list.sites[i];
      const analyze::Frame& frame = reading_.frames().frame(site->frame);
      uint64_t amount = analyze::value(site->amounts, list.metric);
      std::string note;
      if (list.metric == Metric::kCalls && site->amounts.temporary > site->amounts.allocations / 2)
        note = fmt::format(" ({} temporary)",
                           percent_text(site->amounts.temporary, site->amounts.allocations));
      constexpr size_t kLeastName = 12;
      if (function_width < kLeastName + note.size()) note.clear();
      size_t room = function_width - note.size();
      std::string function = names.of(shown[i], "", room);
      size_t used = columns(function) + note.size();
      line("  " + right(list.metric == Metric::kCalls ? grouped(amount) : bytes_text(amount), 12) +
           right(percent_text(amount, list.whole), 8) + "  " + style_.name(function) + note +
           std::string(function_width - used + 2, ' ') +
           (is_narrow() ? location(frame, place_width_)
                        : padded(location(frame, place_width_), place_width_) + "  " +
                              style_.dim(cut_middle(library(frame), library_width_))));
    }
  }

  void processes() {
    if (images_.size() < 2) return;
    std::vector<const trace::Image*> order = images_;
    std::stable_sort(order.begin(), order.end(), [&](const auto* a, const auto* b) {
      return reading_.accounts().peak(a->id).bytes > reading_.accounts().peak(b->id).bytes;
    });
    std::string text;
    size_t listed = 0;
    for (const trace::Image* image : order) {
      std::string one =
          fmt::format("{}{} (pid {}) {}", text.empty() ? "" : ", ", image->program(), image->pid,
                      bytes_text(reading_.accounts().peak(image->id).bytes));
      if (listed > 0 && columns(printable(text)) + columns(printable(one)) > width_) break;
      text += one;
      ++listed;
    }
    if (listed < order.size()) text += fmt::format(", and {} more", grouped(order.size() - listed));
    line();
    line(style_.bold(fmt::format("{} process images together", grouped(images_.size()))) +
         "; by their own peak:");
    for (const std::string& piece : wrapped_lines(printable(text), width_ - 2)) line("  " + piece);
    const trace::Image& largest = *order.front();
    bool alone = std::ranges::count(order, largest.pid, &trace::Image::pid) == 1;
    line(fmt::format(
        "  one of them: malloscope report {} --process {}", shell_quoted(reading_.path()),
        alone ? std::to_string(largest.pid) : fmt::format("image:{}", raw(largest.id))));
  }

  void recording() {
    line();
    double per_event = tables_.events ? static_cast<double>(tables_.file_bytes) /
                                            static_cast<double>(tables_.events)
                                      : 0;
    std::vector<Loss> missing = losses(reading_);
    bool whole = std::none_of(missing.begin(), missing.end(), [](auto& l) { return l.figures(); });
    std::string text =
        fmt::format("{}{} in {} ({:.{}f} bytes each){}", is_part_ ? "of the whole run: " : "",
                    count_text(tables_.events, "event", "events"), bytes_text(tables_.file_bytes),
                    per_event, per_event < 10 ? 2 : 0,
                    tables_.images.empty() ? "; no process was recorded"
                    : whole                ? "; nothing was lost"
                                           : "");
    constexpr std::string_view kTitle = "Recording";
    const size_t indent = kTitle.size() + 2;
    std::string front = style_.bold(kTitle) + "  ";
    for (const std::string& piece : wrapped_lines(text, width_ - indent)) {
      line(front + piece);
      front.assign(indent, ' ');
    }
    for (const Loss& loss : missing)
      remark(loss.figures() ? "!" : "-", loss.sentence + ".", loss.figures());
    constexpr size_t kMostNotes = 3;
    for (size_t i = 0; i < std::min(kMostNotes, tables_.notes.size()); ++i)
      remark("-", tables_.notes[i].text);
    if (tables_.notes.size() > kMostNotes)
      remark("-",
             fmt::format("and {} more notes: malloscope info", tables_.notes.size() - kMostNotes));
    if (totals_.allocations > 0)
      for (const std::string& why : remarks_on_names(&reading_)) remark("-", why);
  }

  // The views that answer what the figures above make one ask, the most telling first.
  std::vector<std::string_view> telling_views() const {
    std::vector<std::string_view> views;
    if (!tables_.mark_names.empty()) views.push_back("phases");
    if (totals_.temporary > totals_.allocations / 4) views.push_back("churn");
    // Code, libraries and stacks are some megabytes in every process.
    constexpr uint64_t kAlwaysThere = 8 << 20;
    const trace::Image* largest = largest_image();
    if (largest && largest->peak_rss_bytes > largest->recorder_rss_bytes + kAlwaysThere +
                                                 2 * reading_.accounts().peak(largest->id).bytes)
      views.push_back("rss");
    const analyze::Mappings& mappings = totals_.mappings;
    if (mappings.mapped_bytes > mappings.unmapped_bytes + peak_.bytes / 2)
      views.push_back("mappings");
    if (std::ranges::any_of(images_, [](const trace::Image* image) {
          return std::ranges::count_if(image->threads, &trace::Thread::tid) > 1;
        }))
      views.push_back("threads");
    bool by_realloc = totals_.reallocations > totals_.allocations / 10;
    if (by_realloc || (views.size() < 3 && may_have_grown())) views.push_back("growth");
    return views;
  }

  // Vectors that grow are in no total. But where no stack has made blocks of several sizes, and
  // freed any, none did.
  bool may_have_grown() const {
    bool may = totals_.reallocations > 0;
    reading_.accounts().tally().for_each_row([&](const analyze::Row& row) {
      const analyze::Amounts& a = row.amounts;
      may = may || (a.allocations > 1 && a.allocations > a.live_blocks &&
                    a.allocated_bytes % a.allocations != 0);
    });
    return may;
  }

  void next() {
    std::string trace = shell_quoted(reading_.path());
    line();
    line(style_.bold("Next") + "  trace is " + printable(reading_.path()));
    std::string tool = "  " + shell_quoted(tool_);
    // What has all, what has most to say, then what everybody asks sooner or later.
    if (totals_.allocations > 0) line(tool + " view " + trace);
    if (totals_.live_blocks > 0) line(tool + " leaks " + trace);
    if (totals_.allocations > 0)
      for (std::string_view view : telling_views())
        line(tool + " report " + trace + " --view " + std::string(view));
    line(tool + " report " + trace + " --tree");
    if (analyze::has_cpu(tables_)) line(tool + " report " + trace + " --metric cpu");
    line(tool + " export " + trace + " --format folded --metric peak -o peak.folded");
    line(tool + " info " + trace);
  }

  analyze::Reading& reading_;
  const trace::Tables& tables_;
  const analyze::Totals totals_;
  const analyze::Peak peak_;
  const std::vector<const trace::Image*> images_;
  const analyze::Reading::Range range_;
  const bool is_part_;  // The page is not of the whole recording.
  const size_t width_;
  const size_t rows_;
  const std::string tool_;
  const Style style_;
  Sink& sink_;
  size_t place_width_ = 1;
  size_t library_width_ = 1;
  ModuleNames modules_;
};

}  // namespace

void write_page(analyze::Reading* reading, const PageOptions& options, Sink* sink) {
  Page(reading, options, sink).write();
}

}  // namespace malloscope::output
