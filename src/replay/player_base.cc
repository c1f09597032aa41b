// SPDX-License-Identifier: Apache-2.0
#include "replay/player_base.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace malloscope::replay {

Board* board;
FileTail tail;
int workload;

void futex_wait(std::atomic<uint32_t>* word, uint32_t seen, uint64_t timeout_ns) {
  timespec timeout = {static_cast<time_t>(timeout_ns / 1'000'000'000),
                      static_cast<long>(timeout_ns % 1'000'000'000)};
  syscall(SYS_futex, word, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

void give_up(Fault fault, uint64_t a, uint64_t b, uint32_t track, uint64_t op) {
  if (board->fault_taken.exchange(1) == 0) {
    board->fault_a = a;
    board->fault_b = b;
    board->fault_track = track;
    board->fault_op = op;
    board->fault.store(fault, std::memory_order_release);
    _exit(1);
  }
  for (;;) pause();  // Whoever was first ends us.
}

void* own_memory(size_t bytes) {
  if (bytes == 0) bytes = 1;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) give_up(Fault::kNoMemory);
  board->own_bytes += bytes;
  return memory;
}

void read_workload(uint64_t offset, void* bytes, size_t size) {
  auto* at = static_cast<uint8_t*>(bytes);
  while (size > 0) {
    ssize_t done = pread(workload, at, size, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) give_up(Fault::kCannotRead, done < 0 ? static_cast<uint64_t>(errno) : 0);
    at += done;
    offset += static_cast<uint64_t>(done);
    size -= static_cast<size_t>(done);
  }
}

}  // namespace malloscope::replay
