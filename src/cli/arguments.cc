// SPDX-License-Identifier: Apache-2.0
#include "cli/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "analyze/leaks.h"
#include "analyze/profile_views.h"
#include "cli/man_page.h"

namespace malloscope::cli {

std::optional<int> parse(CLI::App& app, Words words, std::string_view example) {
  app.footer(fmt::format("Example:\n  {}", example));
  if (words == Words{std::string(kManPage)}) {
    fmt::print("{}", man_page(app, example));
    return finish_stdout();
  }
  std::reverse(words.begin(), words.end());
  try {
    app.parse(words);
    // An unset variable of a script must not switch off what was asked for.
    for (const CLI::Option* option : app.get_options())
      for (const std::string& value : option->results())
        if (value.empty())
          return complain(
              kUsage, fmt::format("{} needs a value; it was empty", option->get_name(false, true)));
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return finish_stdout();
  } catch (const CLI::ParseError& error) {
    return complain(kUsage, fmt::format("{} (see {} --help)", error.what(), app.get_name()));
  }
}

CLI::Validator one_of(Words words) { return CLI::IsMember(std::move(words)).description(""); }

CLI::Validator list_of_words() {
  auto check = [](const std::string& text) -> std::string {
    bool empty = text.empty() || text.starts_with(',') || text.ends_with(',') ||
                 text.find(",,") != std::string::npos;
    return empty ? fmt::format("'{}' has an empty word in it; try a,b,c", text) : "";
  };
  return CLI::Validator(check, "");
}

std::string listed(const Words& words) { return fmt::format("{}", fmt::join(words, ", ")); }

std::string metrics_help(const std::map<std::string, analyze::Metric>& metrics,
                         std::string_view by_default) {
  std::string text = fmt::format("What is counted [{}]:", by_default);
  for (const auto& [name, metric] : metrics)
    text += fmt::format("\n{:<15} {}", name, metric_help(metric));
  return text;
}

CLI::Option* add_color(CLI::App& app, Color* color) {
  static const std::map<std::string, Color> kColors = {
      {"auto", Color::kAuto}, {"always", Color::kAlways}, {"never", Color::kNever}};
  return app
      .add_option_function<std::string>(
          "--color", [color](const std::string& word) { *color = kColors.at(word); },
          "auto (on a terminal, unless NO_COLOR is set), always or never")
      ->check(one_of({"auto", "always", "never"}))
      ->type_name("WHEN");
}

CLI::Option* add_trace(CLI::App& app, std::string* trace) {
  return app.add_option("trace", *trace, "The recording")->required()->type_name("TRACE");
}

CLI::Option* add_json(CLI::App& app, bool* json, std::string_view what) {
  return app.add_flag("--json", *json, std::string(what));
}

CLI::Option* add_process(CLI::App& app, analyze::Selection* selection) {
  auto take = [selection](std::string_view text) {
    Result<analyze::Selection> parsed = analyze::selection_of(text, "--process");
    if (!parsed) throw CLI::ValidationError(parsed.error().sentence);
    *selection = *parsed;
  };
  return app
      .add_option_function<std::string>("--process", take,
                                        "Only this process; or image:N, one image of it as info\n"
                                        "numbers them [all]")
      ->type_name("PID");
}

std::string selection_text(const analyze::Selection& selection) {
  if (selection.image) return fmt::format("image {}", raw(*selection.image));
  return selection.pid ? fmt::format("process {}", *selection.pid) : "all";
}

static constexpr const char* kNames = "Names";

void add_symbols(CLI::App& app, symbols::SymbolOptions* options, bool* no_cache) {
  app.add_option("--debug-dir", options->debug_dirs,
                 "Folder with debug files (.build-id/ab/cdef.debug, NAME.debug), or with\nprograms "
                 "and libraries as they were when recorded")
      ->type_name("DIR")
      ->allow_extra_args(false)
      ->check(CLI::ExistingDirectory.description(""))
      ->group(kNames);
  app.add_option("--sysroot", options->sysroot, "Folder that holds the files of another machine")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory.description(""))
      ->group(kNames);
  app.add_flag("--debuginfod", options->debuginfod,
               "Fetch debug files from the servers of DEBUGINFOD_URLS")
      ->group(kNames);
  app.add_flag("--no-cache", *no_cache, "Neither use nor keep names in ~/.cache/malloscope")
      ->group(kNames);
}

void add_query(CLI::App& app, QueryWords* words) {
  add_process(app, &words->selection);
  constexpr const char* kWhich = "Which part";
  auto pattern = [&](const char* name, std::vector<std::string>* list, const char* help) {
    app.add_option(name, *list, help)->type_name("REGEX")->allow_extra_args(false)->group(kWhich);
  };
  app.add_option("--from", words->from,
                 "Only what happened after 2.5s, 300ms, 40% (of the recording), peak, ...")
      ->type_name("TIME")
      ->group(kWhich);
  app.add_option("--to", words->to, "Only what happened before; live is what is live then")
      ->type_name("TIME")
      ->group(kWhich);
  pattern("--thread", &words->threads, "Only threads of this name or number");
  pattern("--phase", &words->phases,
          "Only blocks made in this phase, which the program named by malloscope.h");
  pattern("--module", &words->modules,
          "Only allocations made by code of these libraries or programs");
  pattern("--focus", &words->focus, "Only stacks with such a function");
  pattern("--ignore", &words->ignore, "No stacks with such a function");
  pattern("--only-under", &words->only_under, "As --focus; callers of it are not shown");
  pattern("--hide", &words->hide, "Functions that are not shown; their amounts are their callers'");
  pattern("--type", &words->types, "Only objects of such types, as far as they are known");
  app.add_option("--where", words->where,
                 "Only stacks with these words: 'parse and not (std:: or /^xml.*Node/)'")
      ->type_name("TEXT")
      ->group(kWhich);
  app.add_option("--min-size", words->min_size, "Only blocks of at least this size, such as 4K")
      ->type_name("SIZE")
      ->group(kWhich);
  app.add_option("--max-size", words->max_size, "Only blocks of at most this size")
      ->type_name("SIZE")
      ->group(kWhich);
  add_symbols(app, &words->symbols, &words->no_cache);
  auto named = [&](const char* name, std::vector<std::string>* list, const char* type,
                   const std::string& help) {
    app.add_option(name, *list, help)->type_name(type)->allow_extra_args(false)->group(kNames);
  };
  named("--fold", &words->folds, "REGEX",
        "Frames that count as their caller's; module:REGEX for whole libraries");
  named("--cut-above", &words->cut_above, "REGEX", "Callers of such functions are not shown");
  named("--cut-below", &words->cut_below, "REGEX", "What such functions call is not shown");
  named("--rename", &words->renames, "s/RE/WITH/",
        "Other names for functions; those that become equal are one");
  named("--rules", &words->rules, "LIST",
        fmt::format("Sets of such rules: {}, or files; none: also not the default [allocators]",
                    fmt::join(analyze::shipped_rules(), ", ")));
  app.add_flag("--full-names", words->full_names, "C++ names as they are, however long")
      ->group(kNames);
}

void add_suppressions(CLI::App& app, SuppressionWords* words) {
  app.add_option("--suppressions", words->files,
                 "Leaks that are known: leak:PATTERN as for LeakSanitizer, originator:REGEX, ...")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_flag("--no-default-suppressions", words->no_defaults,
               "Neither those we ship nor those of the program (__lsan_default_suppressions)");
}

Result<analyze::Suppressions> suppressions_of(const SuppressionWords& words) {
  analyze::Suppressions suppressions;
  for (const std::string& path : words.files)
    if (Result<void> added = suppressions.add_file(path); !added)
      return std::unexpected(added.error());
  return suppressions;
}

void add_defaults(const SuppressionWords& words, const analyze::Reading& reading,
                  analyze::Suppressions* suppressions, std::vector<std::string>* notes) {
  if (words.no_defaults) return;
  analyze::add_embedded_suppressions(reading, suppressions, notes);
  suppressions->add_shipped();
}

void add_shape(CLI::App& app, ShapeWords* words, std::string_view top_help) {
  app.add_option("--top", words->top, std::string(top_help))
      ->check(CLI::Range(1, 1'000'000'000).description(""))
      ->type_name("N");
  app.add_option("--columns", words->columns,
                 "Columns to show, by their titles or names in --json: a,b,c")
      ->check(list_of_words())
      ->type_name("LIST");
  app.add_option("--sort", words->sort, "Column to sort by, heaviest first")->type_name("COLUMN");
}

analyze::Shape shape_of(const ShapeWords& words) {
  analyze::Shape shape;
  std::istringstream list(words.columns);
  for (std::string key; std::getline(list, key, ',');)
    if (!key.empty()) shape.columns.push_back(key);
  shape.sort = words.sort;
  shape.top = words.top;
  return shape;
}

}  // namespace malloscope::cli
