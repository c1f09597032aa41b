// SPDX-License-Identifier: Apache-2.0
// libdebuginfod is loaded when it is first needed: few need it, and it brings an HTTP client.
#include "symbols/debuginfod.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace malloscope::symbols {
namespace {

struct Client;  // debuginfod_client
struct Library {
  Client* (*begin)() = nullptr;
  void (*end)(Client*) = nullptr;
  int (*find_debuginfo)(Client*, const unsigned char*, int, char**) = nullptr;

  Library() {
    void* library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    begin = reinterpret_cast<decltype(begin)>(dlsym(library, "debuginfod_begin"));
    end = reinterpret_cast<decltype(end)>(dlsym(library, "debuginfod_end"));
    find_debuginfo =
        reinterpret_cast<decltype(find_debuginfo)>(dlsym(library, "debuginfod_find_debuginfo"));
  }
  bool there() const { return begin && end && find_debuginfo; }
};

}  // namespace

Result<std::string> fetch_debug_file(const std::string& build_id) {
  const char* urls = std::getenv("DEBUGINFOD_URLS");
  if (!urls || !*urls)
    return fail("debuginfod has no server to ask; set DEBUGINFOD_URLS to its address");
  static const Library kLibrary;
  if (!kLibrary.there())
    return fail("libdebuginfod.so.1 is not installed (package libdebuginfod1)");
  Client* client = kLibrary.begin();
  if (!client) return fail("libdebuginfod cannot be used");
  char* path = nullptr;
  // A length of 0: the build-id is given as text.
  int fd = kLibrary.find_debuginfo(client, reinterpret_cast<const unsigned char*>(build_id.c_str()),
                                   0, &path);
  kLibrary.end(client);
  if (fd < 0) return fail(fmt::format("debuginfod does not have it: {}", std::strerror(-fd)));
  close(fd);
  std::string found = path ? path : "";
  std::free(path);
  return found;
}

}  // namespace malloscope::symbols
