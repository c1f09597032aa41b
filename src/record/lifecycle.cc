// SPDX-License-Identifier: Apache-2.0
// How a process begins to record.
//
// An exec'd image finds its collector by its own path: LD_PRELOAD names a link in
// the recording's folder, and the collector's socket lies beside it. It connects,
// receives the shared memory, and closes everything again, all before its first
// hook returns. Nothing of it is found in the environment but LD_PRELOAD itself.
//
// A forked child needs no meeting: it has inherited the shared memory, and takes an
// image slot there by itself. It notices that it is one by its wiped memory, so
// fork, a raw clone and a seccomp sandbox are all the same to it.
//
// Preloaded without a recording, it starts a collector of its own. If it cannot, it is
// inert, and so are its children: every hook forwards and that is all.

#include <errno.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "base/clock.h"
#include "base/syscall.h"
#include "record/cpu_timer.h"
#include "record/detailed.h"
#include "record/exec_environment.h"
#include "record/own_collector.h"
#include "record/process.h"
#include "record/real.h"
#include "record/thread_state.h"
#include "unwind/modules.h"
#include "wire/handshake.h"

namespace malloscope::record {

constinit Inherited inherited = {};

namespace {

// The folder of `path` with `name` appended, if it fits.
bool sibling(const char* path, const char* name, char* out, size_t room) {
  size_t folder = 0, length = strlen(path), name_length = strlen(name);
  for (size_t i = 0; i < length; ++i)
    if (path[i] == '/') folder = i + 1;
  if (path[0] != '/' || folder + name_length + 1 > room) return false;
  memcpy(out, path, folder);
  memcpy(out + folder, name, name_length + 1);
  return true;
}

// Whether the process at the other end has been stopped. It would not answer until it is continued.
bool peer_is_stopped(int fd) {
  ucred peer = {};
  socklen_t length = sizeof peer;
  if (sys::failed(sys::call(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, sys::arg(&peer),
                            sys::arg(&length))))
    return false;
  char path[32] = "/proc/", digits[16];
  size_t at = strlen(path), count = 0;
  for (unsigned pid = static_cast<unsigned>(peer.pid); pid != 0; pid /= 10)
    digits[count++] = static_cast<char>('0' + pid % 10);
  while (count > 0) path[at++] = digits[--count];
  memcpy(path + at, "/stat", 6);
  int file =
      static_cast<int>(sys::call(SYS_openat, AT_FDCWD, sys::arg(path), O_RDONLY | O_CLOEXEC, 0));
  if (file < 0) return false;
  char text[128];
  long n = sys::call(SYS_read, file, sys::arg(text), sizeof text);
  sys::close(file);
  // "pid (name) S": the name may hold anything but is short.
  for (long i = n - 3; i > 0; --i)
    if (text[i] == ')') return text[i + 2] == 'T' || text[i + 2] == 't';
  return false;
}

// A collector that is slow or gone must not keep the program from starting.
void be_impatient(int fd) {
  timeval patience = {2, 0};
  for (int option : {SO_RCVTIMEO, SO_SNDTIMEO})
    sys::call(SYS_setsockopt, fd, SOL_SOCKET, option, sys::arg(&patience), sizeof patience);
}

// Sends Hello, and waits for Welcome and the descriptor that comes with it, or -1.
int exchange(int fd, wire::Welcome* welcome) {
  wire::Hello hello;
  hello.pid = sys::pid();
  hello.cycles = cycles();
  if (const char* path = reinterpret_cast<const char*>(getauxval(AT_EXECFN)))
    memcpy(hello.executable, path, strnlen(path, sizeof hello.executable - 1));
  if (sys::call(SYS_sendto, fd, sys::arg(&hello), sizeof hello, MSG_NOSIGNAL) !=
      static_cast<long>(sizeof hello))
    return -1;
  iovec data = {welcome, sizeof *welcome};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  long received = sys::call(SYS_recvmsg, fd, sys::arg(&message), MSG_CMSG_CLOEXEC);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (received < 0 || !header || header->cmsg_type != SCM_RIGHTS) return -1;
  int memory;
  memcpy(&memory, CMSG_DATA(header), sizeof memory);
  bool sane = received == static_cast<long>(sizeof *welcome) &&
              welcome->magic == wire::kHandshakeMagic &&
              welcome->version == wire::kHandshakeVersion &&
              welcome->bytes == wire::SharedMemory::bytes_for(welcome->segment_count);
  if (!sane) {
    sys::close(memory);
    return -1;
  }
  return memory;
}

// A socket to the collector of the recording we were started in; one of our own if we
// were preloaded without any. -1: neither.
int reach_collector() {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (!sibling(own_path(), wire::kSocketName, address.sun_path, sizeof address.sun_path)) return -1;
  if (sys::failed(sys::call(SYS_faccessat, AT_FDCWD, sys::arg(address.sun_path), F_OK)))
    return start_own_collector();
  int fd = static_cast<int>(sys::call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (fd < 0) return -1;
  if (sys::failed(sys::call(SYS_connect, fd, sys::arg(&address), sizeof address))) {
    sys::close(fd);
    return -1;
  }
  return fd;
}

// To meet the collector takes two descriptors for a moment. Under a limit that has no room for them
// (ulimit -n) it is raised for that moment, as far as it may be.
class RoomForDescriptors {
 public:
  RoomForDescriptors() {
    int pair[2];
    long made = sys::call(SYS_pipe2, sys::arg(pair), O_CLOEXEC);
    if (!sys::failed(made)) {
      sys::close(pair[0]);
      sys::close(pair[1]);
    } else if (made == -EMFILE && limit(nullptr, &before_) && before_.rlim_cur < before_.rlim_max) {
      rlimit64 most = {before_.rlim_max, before_.rlim_max};
      raised_ = limit(&most, nullptr);
    }
  }
  ~RoomForDescriptors() {
    if (raised_) limit(&before_, nullptr);
  }
  RoomForDescriptors(const RoomForDescriptors&) = delete;

 private:
  static bool limit(const rlimit64* set, rlimit64* was) {
    return sys::call(SYS_prlimit64, 0, RLIMIT_NOFILE, sys::arg(set), sys::arg(was)) == 0;
  }
  rlimit64 before_ = {};
  bool raised_ = false;
};

bool meet_collector() {
  RoomForDescriptors room;
  int fd = reach_collector();
  if (fd < 0) return false;
  if (peer_is_stopped(fd)) {
    sys::call(SYS_sendto, fd, sys::arg(&wire::kFarewell), sizeof wire::kFarewell,
              MSG_NOSIGNAL | MSG_DONTWAIT);
    sys::close(fd);
    return false;
  }
  be_impatient(fd);
  wire::Welcome welcome = {};
  int memory = exchange(fd, &welcome);
  sys::close(fd);
  if (memory < 0) return false;
  void* base = sys::map(welcome.bytes, MAP_SHARED, memory);
  sys::close(memory);
  if (!base) return false;

  wire::SharedMemory shared(base);
  const wire::Settings& settings = shared.control().settings;
  inherited.shared = shared;
  inherited.segment_count = welcome.segment_count;
  inherited.image_slot = welcome.image_slot;
  inherited.tick_shift = settings.tick_shift;
  inherited.cycles_per_ms = settings.cycles_per_ms;
  inherited.follow = settings.follow != 0;
  inherited.drop_when_full = settings.drop_when_full != 0;
  inherited.free_stacks = settings.free_stacks != 0;
  inherited.time_calls = settings.time_calls != 0;
  inherited.sample_log2 = settings.sample_log2;
  inherited.cpu_period_us = settings.cpu_period_us;
  if (times_calls()) inherited.timing_cost = cost_of_timing();
  inherited.image_stamp = image().stamp.load(std::memory_order_relaxed);
  image().joined.store(1, std::memory_order_release);
  welcome.preload_path[sizeof welcome.preload_path - 1] = 0;
  memcpy(inherited.preload_path, welcome.preload_path, sizeof welcome.preload_path);
  return true;
}

// A forked child takes a slot of its own. `inherited` still holds the parent's.
bool enter_as_child() {
  // Nobody could tell the collector which process it is.
  if (sys::is_sandboxed()) {
    image().sandboxed_children.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  uint64_t now = inherited.clock_forbidden.load() ? 0 : cycles() >> inherited.tick_shift;
  for (uint32_t slot = 0; slot < wire::kImages; ++slot) {
    wire::ImageSlot& child = inherited.shared.image(slot);
    uint32_t free = static_cast<uint32_t>(wire::ImageState::kFree);
    if (child.state.load(std::memory_order_relaxed) != free ||
        !child.state.compare_exchange_strong(free,
                                             static_cast<uint32_t>(wire::ImageState::kClaimed)))
      continue;
    child.pid = sys::pid();
    child.parent_slot = inherited.image_slot;
    child.parent_stamp = inherited.image_stamp;
    // What the parent had at some moment between the two is the child's too. A fork that did not
    // come by our hook may have been a while ago.
    uint64_t second = inherited.cycles_per_ms * 1000 >> inherited.tick_shift;
    child.forked_tick = inherited.fork_tick ? inherited.fork_tick
                        : now > second      ? now - second
                                            : now;
    child.start_tick = now;
    inherited.fork_tick = 0;
    inherited.image_slot = slot;
    inherited.image_stamp = child.stamp.load(std::memory_order_relaxed);
    child.state.store(static_cast<uint32_t>(wire::ImageState::kLive), std::memory_order_release);
    return true;
  }
  image().unclaimed_children.fetch_add(1, std::memory_order_relaxed);
  return false;
}

}  // namespace

bool wake_process() {
  if (!inherited.process) [[unlikely]] {
    // Only the first hook of the program comes here, before there is a second thread.
    resolve();
    void* memory = map_wiped_on_fork((sizeof(Process) + kPageBytes - 1) & ~(kPageBytes - 1));
    if (!memory) return false;
    inherited.process = static_cast<Process*>(memory);
  }
  Process& p = process();
  Phase phase = p.phase.load(std::memory_order_acquire);
  if (phase == Phase::kRecording) return true;
  if (phase != Phase::kAsleep) return false;
  if (!p.phase.compare_exchange_strong(phase, Phase::kWaking)) return false;

  p.pid = sys::pid();
  bool recording = false;
  if (inherited.shared)
    recording = inherited.follow && enter_as_child();
  else if (!inherited.inert)
    recording = !getauxval(AT_SECURE) && meet_collector();
  inherited.inert = !recording;
  if (recording) {
    unwind::start(p.arena);
    arm_thread_exit();
    if (samples_cpu()) catch_cpu_signal();
  }
  p.phase.store(recording ? Phase::kRecording : Phase::kInert, std::memory_order_release);
  return recording;
}

bool recorder_is_reachable() {
  return !sys::failed(sys::call(SYS_faccessat, AT_FDCWD, sys::arg(preload_path()), R_OK));
}

void lead_children(bool to_collector) {
  ExecEnvironment led(environ, to_collector);
  if (!environ || led.bytes() == 0 || (to_collector && !inherited.follow)) return;
  void* memory = sys::map(led.bytes());
  if (!memory) return;
  char* const* copy = led.copy_to(memory);
  for (size_t i = 0; environ[i]; ++i) environ[i] = copy[i];
}

// Runs when the library is loaded, so that a program that never allocates is in the trace too.
[[gnu::constructor]] static void loaded() {
  if (thread->outer == 0) wake_thread();
  // One that was preloaded by its own path leads them to the collector it has started.
  if (inherited.shared) lead_children(true);
}

}  // namespace malloscope::record
