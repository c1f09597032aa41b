// SPDX-License-Identifier: Apache-2.0
#include "serve/redirect_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "symbols/name_cache.h"

namespace malloscope::serve {
namespace {

// Where a browser can read that has a /tmp of its own: rather in the user's folders.
std::string make_folder() {
  auto setting = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  std::string cache = symbols::NameCache::default_folder();
  for (const std::string& place :
       {setting("XDG_RUNTIME_DIR"), cache, setting("TMPDIR"), std::string("/tmp")}) {
    if (!place.starts_with('/')) continue;
    std::error_code error;
    if (place == cache) std::filesystem::create_directories(cache, error);
    std::string folder = place + "/malloscope-view-XXXXXX";
    if (mkdtemp(folder.data())) return folder;
  }
  return {};
}

// For the handler of signals, which can take nothing but what lies still.
char file_to_remove[PATH_MAX], folder_to_remove[PATH_MAX];

void remove_both() {
  unlink(file_to_remove);
  rmdir(folder_to_remove);
}

// Once, and then what the signal does by itself: SA_RESETHAND.
void remove_and_end(int signal) {
  remove_both();
  raise(signal);
}

void remove_at_signals() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction action = {};
    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    action.sa_handler = remove_and_end;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(signal, &action, nullptr);
  }
}

std::string escaped(const std::string& address) {
  std::string text;
  for (char c : address) c == '&' ? text += "&amp;" : text += c;
  return text;
}

}  // namespace

std::optional<RedirectFile> RedirectFile::write(const std::string& address) {
  std::string folder = make_folder(), path = folder + "/page.html";
  if (folder.empty() || path.size() >= sizeof file_to_remove) return std::nullopt;
  memcpy(folder_to_remove, folder.c_str(), folder.size() + 1);
  memcpy(file_to_remove, path.c_str(), path.size() + 1);
  remove_at_signals();
  RedirectFile file(path);
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'\">\n"
      "<meta http-equiv=\"refresh\" content=\"0; url={0}\">\n"
      "<title>Malloscope</title>\n<p><a href=\"{0}\">The page of malloscope view</a></p>\n",
      escaped(address));
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return std::nullopt;
  bool whole = ::write(fd, html.data(), html.size()) == static_cast<ssize_t>(html.size());
  whole &= close(fd) == 0;
  if (!whole) return std::nullopt;
  return file;
}

RedirectFile::RedirectFile(std::string path) : path_(std::move(path)) {}

RedirectFile::~RedirectFile() {
  if (!path_.empty()) remove_both();
}

std::string RedirectFile::url() const {
  std::string url = "file://";
  for (unsigned char c : path_)
    if (std::isalnum(c) || strchr("/._~-", c))
      url += static_cast<char>(c);
    else
      url += fmt::format("%{:02X}", c);
  return url;
}

}  // namespace malloscope::serve
