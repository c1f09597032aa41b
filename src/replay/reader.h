// SPDX-License-Identifier: Apache-2.0
// Opens a workload and reads it for the tools (the player has its own way: its memory must not
// come from the heap it measures).

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "replay/codec.h"

namespace malloscope::replay {

class WorkloadReader {
 public:
  // What the tail says is checked, not yet the chunks.
  static Result<WorkloadReader> open(const std::string& path);
  WorkloadReader(WorkloadReader&& other) noexcept;
  WorkloadReader& operator=(WorkloadReader&& other) noexcept;
  ~WorkloadReader();

  const FileTail& tail() const { return tail_; }
  const std::vector<TrackPlace>& tracks() const { return tracks_; }
  int fd() const { return fd_; }
  uint64_t bytes() const { return bytes_; }

  // Shows every operation, track by track, and so checks all there is. The file must not be
  // trusted before that.
  Result<void> read(const std::function<void(uint32_t track, const Op& op)>& visit) const;

 private:
  WorkloadReader() = default;

  int fd_ = -1;
  std::string path_;
  uint64_t bytes_ = 0;
  FileTail tail_;
  std::vector<ChunkPlace> places_;
  std::vector<TrackPlace> tracks_;
};

// Whether a file begins as a workload does.
bool is_workload(const std::string& path);

}  // namespace malloscope::replay
