// SPDX-License-Identifier: Apache-2.0
// Unsigned numbers in as few bytes as they need, seven bits a byte, lowest first
// (LEB128); signed ones folded so that small magnitudes stay small (zigzag).

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/attributes.h"

namespace malloscope {

inline constexpr size_t kMaxVarintBytes = 10;

// `out` must have kMaxVarintBytes of room. Returns the end of what was written.
MSCOPE_FAST uint8_t* put_varint(uint8_t* out, uint64_t value) {
  // Most are short, but how short is not to be guessed: no branches up to four bytes.
  if (value < 1u << 28) [[likely]] {
    uint32_t v = static_cast<uint32_t>(value);
    uint32_t spread = (v & 0x7f) | (v & 0x3f80) << 1 | (v & 0x1fc000) << 2 | (v & 0xfe00000) << 3;
    unsigned more = (v >= 1u << 7) + (v >= 1u << 14) + (v >= 1u << 21);
    spread |= 0x808080u & ((1u << 8 * more) - 1);
    memcpy(out, &spread, sizeof spread);
    return out + 1 + more;
  }
  while (value >= 0x80) {
    *out++ = static_cast<uint8_t>(value) | 0x80;
    value >>= 7;
  }
  *out++ = static_cast<uint8_t>(value);
  return out;
}

// Returns the end of what was read, or nullptr if the number is cut or too long.
MSCOPE_FAST const uint8_t* get_varint(const uint8_t* in, const uint8_t* end, uint64_t* value) {
  uint64_t result = 0;
  for (unsigned shift = 0; in < end && shift < 64; shift += 7) {
    uint8_t byte = *in++;
    result |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (!(byte & 0x80)) {
      *value = result;
      return in;
    }
  }
  return nullptr;
}

constexpr uint64_t zigzag(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}
constexpr int64_t unzigzag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

}  // namespace malloscope
