// SPDX-License-Identifier: Apache-2.0
// Memory for the recorder: taken from the kernel in large pieces, handed out from
// the front, never given back. Lock-free, so that any hook may take from it,
// a signal handler's too.
//
// Pages are marked MADV_WIPEONFORK: in a forked child everything that came from
// an arena reads as zero. That is how the recorder learns that it is in a child,
// without a hook, and why a child can never continue its parent's state.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/syscall.h"

namespace malloscope {

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

inline constexpr size_t kPageBytes = 4096;

// Zeroed pages that a forked child sees as zero again. nullptr if there are none to be had.
inline void* map_wiped_on_fork(size_t bytes) {
  void* memory = sys::map(bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
  if (memory && sys::advise(memory, bytes, MADV_WIPEONFORK) < 0) {
    sys::unmap(memory, bytes);
    return nullptr;
  }
  return memory;
}

// All zero is a good start, so one that lies in wiped memory itself is empty again in a child.
class Arena {
 public:
  // Zeroed, 64-byte aligned. nullptr if the kernel gives no more.
  void* take(size_t bytes) {
    bytes = (bytes + 63) & ~size_t{63};
    if (bytes > kPieceBytes / 4 && !sys::is_sandboxed()) return map_counted(round_to_page(bytes));
    for (;;) {
      uintptr_t piece = piece_.load(std::memory_order_acquire);
      if (piece) {
        auto* from = reinterpret_cast<Piece*>(piece);
        size_t at = from->used.fetch_add(bytes);
        if (at + bytes <= from->size) return reinterpret_cast<char*>(piece) + at;
        if (sys::is_sandboxed()) {
          from->used.fetch_sub(bytes);  // A smaller one may still fit.
          return nullptr;
        }
      }
      if (!add_piece(kPieceBytes, piece)) return nullptr;
    }
  }

  // Enough for a process that is about to give up system calls; only what is used becomes real.
  void reserve() {
    uintptr_t piece = piece_.load(std::memory_order_acquire);
    auto* from = reinterpret_cast<const Piece*>(piece);
    if (!from || from->used.load() + kReserveBytes / 2 > from->size)
      add_piece(kReserveBytes, piece);
  }

  template <typename T>
  T* take_array(size_t count) {
    return static_cast<T*>(take(count * sizeof(T)));
  }

  // Bytes taken from the kernel so far.
  size_t mapped() const { return mapped_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kPieceBytes = 1 << 20, kReserveBytes = 64 << 20;
  struct Piece {
    std::atomic<size_t> used;
    size_t size;
  };
  // In the place of `old`, unless another thread was first.
  bool add_piece(size_t bytes, uintptr_t old) {
    auto* fresh = static_cast<Piece*>(map_counted(bytes));
    if (!fresh) return false;
    fresh->used.store(64);
    fresh->size = bytes;
    if (!piece_.compare_exchange_strong(old, reinterpret_cast<uintptr_t>(fresh))) {
      sys::unmap(fresh, bytes);
      mapped_.fetch_sub(bytes, std::memory_order_relaxed);
    }
    return true;
  }
  void* map_counted(size_t bytes) {
    void* memory = map_wiped_on_fork(bytes);
    if (memory) mapped_.fetch_add(bytes, std::memory_order_relaxed);
    return memory;
  }
  static size_t round_to_page(size_t bytes) { return (bytes + kPageBytes - 1) & ~(kPageBytes - 1); }

  std::atomic<uintptr_t> piece_ = 0;
  std::atomic<size_t> mapped_ = 0;
};

}  // namespace malloscope
