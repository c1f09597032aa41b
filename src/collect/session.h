// SPDX-License-Identifier: Apache-2.0
// What a recording consists of besides its file: a private folder with a link to
// the recorder and the collector's socket, and the shared memory.

#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "wire/lane.h"

namespace malloscope::collect {

struct SessionOptions {
  bool follow = true;
  bool drop_when_full = false;
  bool free_stacks = false;  // These need the detailed recorder.
  bool time_calls = false;
  unsigned sample_log2 = 0;  // wire/sampling.h
  bool cpu = false;
};

class Session {
 public:
  // `recorder` is the path of libmalloscope.so.
  static Result<Session> create(const std::string& recorder, const SessionOptions& options);

  Session(Session&& other) noexcept;
  ~Session();

  // What LD_PRELOAD must name.
  std::string preload_path() const;
  // Deletes the folder: the recording is over, nobody can join any more.
  void remove_folder();
  // Leaves it to another process to remove the folder.
  void disown() { owner_ = false; }

  wire::SharedMemory shared() const { return shared_; }
  uint32_t segment_count() const { return segment_count_; }
  uint64_t memory_inode() const;
  // How much of the shared memory has been touched.
  uint64_t memory_bytes() const;
  // A descriptor of the shared memory to give away, or -1; the caller closes it.
  int open_memory_for_target() const;
  // Whether a process that was given one still maps it, or has a child that does.
  bool memory_is_in_use() const;
  int listen_fd() const { return listen_fd_; }
  uint64_t cycles_per_second() const { return cycles_per_second_; }
  uint32_t tick_shift() const { return tick_shift_; }
  uint64_t tick_now() const { return cycles_before_loads() >> tick_shift_; }

 private:
  Session() = default;

  std::string folder_;
  wire::SharedMemory shared_;
  uint32_t segment_count_ = 0;
  int memory_fd_ = -1;
  int listen_fd_ = -1;
  uint64_t cycles_per_second_ = 0;
  uint32_t tick_shift_ = 0;
  bool owner_ = false;
};

}  // namespace malloscope::collect
