// SPDX-License-Identifier: Apache-2.0
// One run of the player on one allocator, watched from outside.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "replay/allocators.h"
#include "replay/board.h"
#include "replay/reader.h"

namespace malloscope::replay {

struct TrialOptions {
  std::string player;  // The path of malloscope-player.
  Touch touch = Touch::kFirst;
  bool verify = false;
  double speed = 0;  // 0: as fast as it goes; 1: as recorded.
  uint64_t trim_every_ns = 0;
  uint64_t interval_ns = 5'000'000;       // Between two looks at its memory.
  uint64_t patience_ns = 60'000'000'000;  // Without any progress.
};

// What was seen at one moment.
struct Sample {
  uint64_t time_ns = 0;    // Since the player was let go: with `setup_ns`.
  uint64_t rss_bytes = 0;  // Of the heap: without the player's own.
  uint64_t vm_bytes = 0;
  uint64_t ideal_bytes = 0;
};

struct CallFigures {
  uint64_t calls = 0;
  bool timed = false;  // At least one was.
  double mean_cycles = 0;
  uint64_t p50_cycles = 0, p99_cycles = 0;
};

struct Trial {
  std::string error;  // Empty if there is none; a sentence.
  std::string library;
  uint64_t setup_ns = 0;  // In which the heap was built up.
  uint64_t wall_ns = 0;   // Without that.
  uint64_t cpu_ns = 0;
  uint64_t allocator_ns = 0;
  uint64_t touch_ns = 0;
  uint64_t wait_ns = 0;  // Of the CPU's.
  double player_ns_per_call = 0;
  double ns_per_cycle = 0;
  CallFigures groups[kCallGroups];
  struct SizeFigures {
    uint64_t calls = 0;  // Estimated from those timed.
    double mean_cycles = 0;
  };
  SizeFigures sizes[kCallGroups][kSizeClasses];  // As board.h has them.
  uint64_t calls = 0;
  uint64_t failed = 0;
  uint64_t slow_waits = 0;
  uint64_t interrupted = 0;
  uint64_t trims = 0;
  bool can_trim = true;
  bool knows_memory = true;         // The kernel told it.
  uint64_t player_bytes = 0;        // The player's own memory, before it began.
  uint64_t max_rss_bytes = 0;       // With the player's own.
  uint64_t heap_max_rss_bytes = 0;  // Without.
  uint64_t heap_end_rss_bytes = 0;
  uint64_t max_vm_bytes = 0;
  uint64_t max_ideal_bytes = 0;
  uint64_t end_ideal_bytes = 0;
  std::vector<Sample> samples;  // Thinned out, highest moments kept.
};

Trial run_trial(const WorkloadReader& workload, const Setup& setup, const TrialOptions& options);

// At most so many, each of them the highest of those it stands for.
std::vector<Sample> thin_out(const std::vector<Sample>& samples, size_t most);

}  // namespace malloscope::replay
