// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "serve/api.h"
#include "serve/redirect_file.h"
#include "serve/server.h"

namespace malloscope::cli {
namespace {

// Whether it was started: in a session of its own, so that Ctrl-C here does not end it.
bool start(std::vector<std::string> words) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t ours;
  sigemptyset(&ours);
  for (int ignored : {SIGPIPE, SIGXFSZ}) sigaddset(&ours, ignored);
  posix_spawnattr_setsigdefault(&attributes, &ours);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = 0;
  int error = posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error == 0;
}

// "firefox", "chromium --new-window" or "lynx %s", several with colons between, as $BROWSER has
// them; the address stands where %s is, or comes last.
std::vector<std::vector<std::string>> browsers(const std::string& setting, const std::string& url) {
  std::vector<std::vector<std::string>> all;
  std::istringstream list(setting);
  for (std::string one; std::getline(list, one, ':');) {
    std::vector<std::string> words;
    std::istringstream parts(one);
    bool has_url = false;
    for (std::string word; parts >> word; words.push_back(word))
      if (size_t at = word.find("%s"); at != std::string::npos) {
        word.replace(at, 2, url);
        has_url = true;
      }
    if (words.empty()) continue;
    if (!has_url) words.push_back(url);
    all.push_back(std::move(words));
  }
  return all;
}

// Whether a browser was asked to open it: $BROWSER, or what the desktop opens pages with.
bool open_browser(const std::string& url) {
  const char* setting = std::getenv("BROWSER");
  auto all = browsers(setting ? setting : "", url);
  if (std::getenv("DISPLAY") || std::getenv("WAYLAND_DISPLAY")) all.push_back({"xdg-open", url});
  return std::ranges::any_of(all, start);
}

}  // namespace

int main_view(const Words& words) {
  std::string trace, base;
  bool no_open = false;
  int port = 0;
  uint64_t idle_minutes = 30;
  QueryWords names;
  std::vector<std::string> sources;
  CLI::App app(
      "The recording in a browser: timeline, flame graph, sites, leaks, ..., all driven by one\n"
      "filter. The page is served to this machine alone, until Ctrl-C or until nobody has looked\n"
      "at it for a while.",
      "malloscope view");
  add_trace(app, &trace);
  app.add_option("--base", base,
                 "Another recording: what changed since then, as a table and as a flame graph")
      ->type_name("TRACE")
      ->check(CLI::ExistingFile.description(""));
  app.add_flag("--no-open", no_open, "Only print the page's address");
  app.add_option("--port", port, "Port of 127.0.0.1 to serve it on [any that is free]")
      ->check(CLI::Range(1, 65535).description(""))
      ->type_name("N");
  app.add_option("--idle", idle_minutes, "End after so many minutes without a page open [30]")
      ->check(CLI::Range(1, 1'000'000).description(""))
      ->type_name("MINUTES");
  app.add_option("--source", sources,
                 "Folders of the program's sources, which the page may show [the current one]")
      ->type_name("DIR")
      ->check(CLI::ExistingDirectory.description(""))
      ->allow_extra_args(false);
  add_symbols(app, &names.symbols, &names.no_cache);
  app.add_flag("--full-names", names.full_names, "C++ names as they are, however long")
      ->group("Names");
  if (auto code = parse(
          app, words,
          "malloscope view app.mscope\n"
          "  malloscope view friday.mscope --base monday.mscope\n"
          "  malloscope view app.mscope --no-open --port 8080   # and ssh -L 8080:127.0.0.1:8080"))
    return *code;
  // Before a page is opened that could only say so.
  for (const std::string& path : {trace, base}) {
    if (path.empty()) continue;
    if (Result<trace::Overview> overview = trace::overview(path); !overview)
      return complain(kUnreadable, overview.error().sentence);
  }
  // Questions come to many threads; with a heap for each, the server would take a third more.
  mallopt(M_ARENA_MAX, 2);
  if (sources.empty()) sources.emplace_back(".");
  serve::Api api(trace, base, names, sources);
  auto server = serve::Server::open(&api, port);
  if (!server) return complain(kUnreadable, server.error().sentence);
  std::string url = (*server)->url();
  if (!base.empty()) url += "#view=diff&base=1";
  fmt::print("{}\n", url);
  if (int code = finish_stdout(); code != kOk) return code;
  std::optional<serve::RedirectFile> redirect =
      no_open ? std::nullopt : serve::RedirectFile::write(url);
  bool opened = redirect && open_browser(redirect->url());
  if (isatty(STDERR_FILENO))
    fmt::print(stderr, "{} Ctrl-C ends it.\n",
               opened ? "The page is being opened; if it is not, open that address in a browser."
                      : "Open that address in a browser.");
  (*server)->run(std::chrono::minutes(idle_minutes));
  return kOk;
}

}  // namespace malloscope::cli
