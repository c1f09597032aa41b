// SPDX-License-Identifier: Apache-2.0
// Identities are distinct types, so that a stack is never taken for a thread.

#pragma once

#include <cstdint>

namespace malloscope {

// A complete call stack of one process image. 0 is "no stack could be had".
enum class StackId : uint32_t { kNone = 0 };

// A process image: what runs in a process between fork or exec and the next
// exec or the end. Numbered from 1 in the order in which they appear.
enum class ImageId : uint32_t { kNone = 0 };

// A thread of an image, numbered from 1 in the order in which they appear.
enum class ThreadId : uint32_t { kNone = 0 };

template <typename Id>
constexpr auto raw(Id id) {
  return static_cast<uint32_t>(id);
}

}  // namespace malloscope
