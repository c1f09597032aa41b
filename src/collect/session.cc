// SPDX-License-Identifier: Apache-2.0
// The shared memory is a memfd: no file system can be full, nothing is left
// behind when the processes are gone, and it costs memory only where it has been
// touched. It is sealed, so that nobody can shrink it under another's feet.

#include "collect/session.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <new>

#include "base/clock.h"
#include "collect/limits.h"
#include "collect/process_info.h"
#include "wire/handshake.h"

namespace malloscope::collect {

// 40 MiB in all: some three million events, or five thousand idle threads.
static constexpr uint32_t kSegments = 5120;
static constexpr uint32_t kFewestSegments = 16;

// Of CPU time. Kernels look at such timers at their own ticks, mostly every 4 ms.
static constexpr uint32_t kCpuPeriodMicroseconds = 1000;

// A first idea of the clock's speed, in 2 ms; at the end of the recording it is
// measured again over all of it.
static uint64_t measure_clock() {
  uint64_t start_ns = clock_ns(), start = cycles_ordered();
  while (clock_ns() - start_ns < 2'000'000) pause();
  uint64_t passed_ns = clock_ns() - start_ns, passed = cycles_ordered() - start;
  return static_cast<uint64_t>(static_cast<double>(passed) * 1e9 / static_cast<double>(passed_ns));
}

// A private folder in the first place that takes one. The first is in memory and the user's own;
// a socket's path must be short.
static std::string make_folder() {
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  for (const char* place : {runtime, "/tmp", "/dev/shm", "/run", "/var/tmp"}) {
    // What LD_PRELOAD cannot carry would split the path or be replaced in it.
    if (!place || place[0] != '/' || strlen(place) > 60 || strpbrk(place, " :;$\n\t")) continue;
    std::string folder = std::string(place) + "/malloscope-XXXXXX";
    if (mkdtemp(folder.data())) return folder;
  }
  return {};
}

Result<Session> Session::create(const std::string& recorder, const SessionOptions& options) {
  Session session;
  std::string folder = make_folder();
  if (folder.empty())
    return fail(
        "there is no place for the recording's socket: /tmp and its like cannot be written");
  session.folder_ = folder;
  session.owner_ = true;
  if (symlink(recorder.c_str(), session.preload_path().c_str()) != 0)
    return fail(with_reason("cannot link to the recorder"));

  session.listen_fd_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::string path = folder + "/" + wire::kSocketName;
  memcpy(address.sun_path, path.c_str(), path.size() + 1);
  if (session.listen_fd_ < 0 ||
      bind(session.listen_fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(session.listen_fd_, 256) != 0)
    return fail(with_reason("cannot listen for the recorded processes"));

  session.memory_fd_ = memfd_create("malloscope", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (session.memory_fd_ < 0) return fail(with_reason("cannot make shared memory"));
  // A limit on file sizes counts here too: then less will have to do.
  auto before = signal(SIGXFSZ, SIG_IGN);
  uint32_t segments = kSegments;
  while (segments >= kFewestSegments &&
         ftruncate(session.memory_fd_,
                   static_cast<off_t>(wire::SharedMemory::bytes_for(segments))) != 0)
    segments /= 2;
  int error = errno;
  signal(SIGXFSZ, before);
  errno = error;
  if (segments < kFewestSegments) return fail(with_reason("cannot make shared memory"));
  size_t bytes = wire::SharedMemory::bytes_for(segments);
  session.segment_count_ = segments;
  fcntl(session.memory_fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, session.memory_fd_, 0);
  if (memory == MAP_FAILED) return fail(with_reason("cannot map shared memory"));
  session.shared_ = wire::SharedMemory(memory);

  session.cycles_per_second_ = measure_clock();
  // A tick of about 100 ns.
  while ((session.cycles_per_second_ >> session.tick_shift_) > 15'000'000) ++session.tick_shift_;
  wire::Control& control = *new (memory) wire::Control();
  control.segment_count = segments;
  control.settings = {.tick_shift = session.tick_shift_,
                      .follow = options.follow,
                      .drop_when_full = options.drop_when_full,
                      .free_stacks = options.free_stacks,
                      .time_calls = options.time_calls,
                      .sample_log2 = options.sample_log2,
                      .cpu_period_us = options.cpu ? kCpuPeriodMicroseconds : 0,
                      .cycles_per_ms = session.cycles_per_second_ / 1000,
                      .pid_namespace = own_pid_namespace()};
  control.magic = wire::kLaneMagic;
  return session;
}

Session::Session(Session&& other) noexcept
    : folder_(std::move(other.folder_)),
      shared_(other.shared_),
      segment_count_(other.segment_count_),
      memory_fd_(other.memory_fd_),
      listen_fd_(other.listen_fd_),
      cycles_per_second_(other.cycles_per_second_),
      tick_shift_(other.tick_shift_),
      owner_(other.owner_) {
  other.owner_ = false;
  other.folder_.clear();
}

Session::~Session() {
  if (owner_) remove_folder();
}

uint64_t Session::memory_inode() const {
  struct stat info = {};
  fstat(memory_fd_, &info);
  return info.st_ino;
}

uint64_t Session::memory_bytes() const {
  struct stat info = {};
  fstat(memory_fd_, &info);
  return static_cast<uint64_t>(info.st_blocks) * 512;
}

// A lock belongs to the open file and a mapping keeps the file open, so one that is taken before
// the descriptor is given away is held until the last process that maps the memory has ended,
// whoever forked it. Without /proc there is no second open file, and nobody seems to use it.
int Session::open_memory_for_target() const {
  std::string self = fmt::format("/proc/self/fd/{}", memory_fd_);
  int fd = open(self.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return fcntl(memory_fd_, F_DUPFD_CLOEXEC, 0);
  flock(fd, LOCK_SH | LOCK_NB);
  return fd;
}

bool Session::memory_is_in_use() const {
  if (flock(memory_fd_, LOCK_EX | LOCK_NB) != 0) return errno == EWOULDBLOCK;
  flock(memory_fd_, LOCK_UN);
  return false;
}

std::string Session::preload_path() const { return folder_ + "/" + wire::kRecorderName; }

void Session::remove_folder() {
  if (folder_.empty()) return;
  unlink(preload_path().c_str());
  unlink((folder_ + "/" + wire::kSocketName).c_str());
  rmdir(folder_.c_str());
  folder_.clear();
}

}  // namespace malloscope::collect
