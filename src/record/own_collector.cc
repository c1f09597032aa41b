// SPDX-License-Identifier: Apache-2.0
// The program must not notice the new process: no child that its wait() could
// return, no SIGCHLD, no descriptor. So it is made by clone without an exit
// signal, twice; the process in the middle ends at once and is reaped here, and
// the collector belongs to init.

#include "record/own_collector.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "base/syscall.h"
#include "record/real.h"

extern "C" [[gnu::weak]] void* __libc_stack_end;

namespace malloscope::record {
namespace {

constexpr size_t kPathRoom = 512;

// From the recorder's folder to the tool: as built, as installed.
constexpr const char* kTools[] = {"/../../bin/malloscope", "/../../../bin/malloscope"};

bool find_tool(char tool[kPathRoom]) {
  const char* path = own_path();
  size_t folder = 0;
  for (size_t i = 0; path[i]; ++i)
    if (path[i] == '/') folder = i;
  if (path[0] != '/') return false;
  for (const char* place : kTools) {
    if (folder + strlen(place) + 1 > kPathRoom) continue;
    memcpy(tool, path, folder);
    memcpy(tool + folder, place, strlen(place) + 1);
    if (!sys::failed(sys::call(SYS_faccessat, AT_FDCWD, sys::arg(tool), X_OK))) return true;
  }
  return false;
}

void write_number(char* text, unsigned value) {
  char digits[12];
  int count = 0;
  do digits[count++] = static_cast<char>('0' + value % 10);
  while (value /= 10);
  while (count > 0) *text++ = digits[--count];
  *text = 0;
}

// The collector has nothing of the program's but its folder and its environment,
// and of that not LD_PRELOAD: it is not to be recorded itself.
[[noreturn]] void become_collector(const char* tool, int socket, unsigned pid) {
  constexpr int kSocket = 3;
  // Out of the way first: with standard descriptors closed it may be one of the first three.
  long high = sys::call(SYS_fcntl, socket, F_DUPFD_CLOEXEC, 10);
  int null = sys::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) sys::call(SYS_dup2, null, fd);
  sys::call(SYS_dup2, high, kSocket);
  sys::call(SYS_close_range, kSocket + 1, ~0U, 0);

  // At the start of the stack the kernel put argc, argv and the environment. libc's own
  // variables may not be set yet.
  auto* argc = static_cast<long*>(__libc_stack_end);
  char** env = reinterpret_cast<char**>(argc + 1) + *argc + 1;
  char** kept = env;
  for (char** variable = env; *variable; ++variable)
    if (strncmp(*variable, "LD_PRELOAD=", 11) != 0) *kept++ = *variable;
  *kept = nullptr;
  char number[12];
  write_number(number, pid);
  const char* argv[] = {tool, "collect", number, nullptr};
  sys::call(SYS_execve, sys::arg(tool), sys::arg(argv), sys::arg(env));
  for (;;) sys::call(SYS_exit_group, 127);
}

}  // namespace

int start_own_collector() {
  char tool[kPathRoom];
  int pair[2];
  if (!&__libc_stack_end || !find_tool(tool)) return -1;
  if (sys::failed(
          sys::call(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sys::arg(pair))))
    return -1;
  unsigned pid = static_cast<unsigned>(sys::pid());
  long middle = sys::call(SYS_clone, 0, 0, 0, 0, 0);
  if (middle == 0) {
    if (sys::call(SYS_clone, 0, 0, 0, 0, 0) == 0) become_collector(tool, pair[1], pid);
    for (;;) sys::call(SYS_exit_group, 0);
  }
  sys::close(pair[1]);
  if (middle < 0) {
    sys::close(pair[0]);
    return -1;
  }
  while (sys::call(SYS_wait4, middle, 0, __WALL, 0) == -EINTR) {
  }
  return pair[0];
}

}  // namespace malloscope::record
