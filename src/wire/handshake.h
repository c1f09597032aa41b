// SPDX-License-Identifier: Apache-2.0
// How an exec'd image and its collector meet: over the socket that lies beside
// the recorder's own file. One message each way; the answer carries the shared
// memory. After it the target has no descriptor left.

#pragma once

#include <cstdint>

namespace malloscope::wire {

inline constexpr uint32_t kHandshakeMagic = 0x6d736870;  // "mshp"
inline constexpr uint32_t kHandshakeVersion = 1;

// Beside the link to the recorder, in the recording's own folder.
inline constexpr const char kSocketName[] = "collector";
inline constexpr const char kRecorderName[] = "libmalloscope.so";

struct Hello {
  uint32_t magic = kHandshakeMagic;
  uint32_t version = kHandshakeVersion;
  int32_t pid = 0;  // As the target sees itself; the socket's credentials are believed instead.
  uint32_t reserved = 0;
  uint64_t cycles = 0;
  char executable[512] = {};  // The path it was exec'd by, for when /proc cannot tell.
};

// Instead of Hello, from one that finds the collector stopped and does not wait for it.
inline constexpr char kFarewell = '-';

struct Welcome {
  uint32_t magic = kHandshakeMagic;
  uint32_t version = kHandshakeVersion;
  uint32_t image_slot = 0;
  uint32_t segment_count = 0;
  uint64_t bytes = 0;           // Of the shared memory, whose descriptor comes with this message.
  char preload_path[128] = {};  // What LD_PRELOAD must name for children to be recorded.
};

}  // namespace malloscope::wire
