// SPDX-License-Identifier: Apache-2.0
// From the first word to a verb. Each verb has its own parser, so that
// `malloscope ./app -o x` never takes the program's options for ours: what follows
// the program's name is not parsed at all.

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include "cli/commands.h"
#include "cli/man_page.h"

namespace malloscope::cli {
namespace {

struct Verb {
  std::string_view name;
  int (*main)(const Words&);
  std::string_view summary;
};
constexpr Verb kVerbs[] = {
    {"run", main_run, "record a program and its children (the default)"},
    {"report", main_report,
     "the one-page answer; profiles by function, site, thread, ... of any part"},
    {"view", main_view, "the same and more in a browser: timeline, flame graph, sites, leaks, ..."},
    {"html", main_html, "the page of view as one file, to be opened without it, or mailed"},
    {"info", main_info, "what is in a trace, whether it is complete, what it lost"},
    {"leaks", main_leaks, "what was allocated and never freed, by the code that asked for it"},
    {"diff", main_diff, "what changed between two recordings, or two moments of one"},
    {"check", main_check,
     "limits for peak, live, allocations, ...; exit code 1 if one is exceeded"},
    {"history", main_history, "the same figures of many recordings, one row each"},
    {"export", main_export,
     "for flame graphs, pprof, speedscope, KCachegrind, heaptrack, SQLite, ..."},
    {"replay", main_replay, "the same calls on other allocators: what they would cost or save"},
    {"workload", main_workload,
     "the calls alone, to give to others: no stacks, no addresses; what they ask for"},
    {"merge", main_merge, "several recordings as one, whose figures are their sums"},
    {"symbolize", main_symbolize, "put the names of functions into a trace, to read it anywhere"},
};

std::string help() {
  std::string text =
      R"(Malloscope records every allocation of a program and says where its memory goes.

  malloscope ./app args...      record a program; one page at its end says what it found
  malloscope report TRACE       the same page again, for any process of the recording

Verbs:
)";
  for (const Verb& verb : kVerbs) text += fmt::format("  {:<9} {}\n", verb.name, verb.summary);
  return text + R"(
`malloscope VERB --help` tells the options of each. `malloscope --version` the version.
)";
}

std::string verb_names() {
  std::string names;
  for (const Verb& verb : kVerbs) names += (names.empty() ? "" : ", ") + std::string(verb.name);
  return names;
}

// A page for malloscope and each verb, in that folder.
int write_man_pages(const std::string& folder) {
  auto open = [&](const std::string& name) {
    return std::freopen((folder + "/" + name + ".1").c_str(), "w", stdout) != nullptr;
  };
  bool good = open("malloscope") && std::fputs(man_page().c_str(), stdout) >= 0;
  for (const Verb& verb : kVerbs)
    good = good && open("malloscope-" + std::string(verb.name)) &&
           verb.main({std::string(kManPage)}) == kOk;
  return good ? kOk : complain(kUnreadable, "the manual pages cannot be written to " + folder);
}

bool is_executable(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

bool in_path(const std::string& name) {
  const char* variable = std::getenv("PATH");
  std::string_view path = variable ? variable : "/usr/local/bin:/bin:/usr/bin";
  for (;;) {
    size_t colon = path.find(':');
    std::string folder(path.substr(0, colon));
    if (is_executable((folder.empty() ? "." : folder) + "/" + name)) return true;
    if (colon == std::string_view::npos) return false;
    path.remove_prefix(colon + 1);
  }
}

int dispatch(const Words& words) {
  if (words.empty()) {
    std::fputs(help().c_str(), stderr);
    return kUsage;
  }
  const std::string& first = words[0];
  Words rest(words.begin() + 1, words.end());
  if (first == "--help" || first == "-h" || first == "help") {
    fmt::print("{}", help());
    return finish_stdout();
  }
  if (first == "--version") {
    fmt::print("malloscope {}\n", kVersion);
    return finish_stdout();
  }
  if (first == "collect" && rest.size() == 1 && is_started_by_recorder())
    return collect_command(rest[0]);
  if (first == "man-pages" && rest.size() == 1) return write_man_pages(rest[0]);
  for (const Verb& verb : kVerbs) {
    if (first != verb.name) continue;
    // A file that may not grow is told by write(). Not for programs that these start.
    if (verb.main != main_run && verb.main != main_replay) std::signal(SIGXFSZ, SIG_IGN);
    return verb.main(rest);
  }

  // A name with a slash can only be meant as a program; if it is not there, `run` says so.
  bool program = first.starts_with('-') || first.find('/') != std::string::npos || in_path(first);
  if (program &&
      !(first.ends_with(".mscope") && access(first.c_str(), R_OK) == 0 && !is_executable(first)))
    return main_run(words);
  if (first.ends_with(".mscope"))
    return complain(kUsage, fmt::format("to look at a trace, type: malloscope report {}", first));
  return complain(kUsage, fmt::format("'{}' is neither a verb ({}) nor a program in PATH; "
                                      "see malloscope --help",
                                      first, verb_names()));
}

}  // namespace

std::vector<VerbSummary> verb_summaries() {
  std::vector<VerbSummary> summaries;
  for (const Verb& verb : kVerbs) summaries.push_back({verb.name, verb.summary});
  return summaries;
}

}  // namespace malloscope::cli

int main(int argc, char** argv) {
  try {
    return malloscope::cli::dispatch({argv + 1, argv + argc});
  } catch (const std::bad_alloc&) {
    return malloscope::cli::complain(malloscope::cli::kUnreadable, "out of memory");
  } catch (const std::system_error& error) {  // Of a thread that could not be had.
    return malloscope::cli::complain(
        malloscope::cli::kUnreadable,
        fmt::format("there is not enough memory, or there are too many threads: {}", error.what()));
  } catch (const std::exception& error) {
    return malloscope::cli::complain(malloscope::cli::kUnreadable, error.what());
  }
}
