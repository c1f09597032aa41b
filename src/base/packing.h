// SPDX-License-Identifier: Apache-2.0
// Numbers and strings as bytes, one after the other: what the chunks of traces and the
// files of the symbol cache are made of.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/varint.h"

namespace malloscope {

// Writes numbers and strings one after the other.
class Packer {
 public:
  Packer& number(uint64_t value) {
    uint8_t bytes[kMaxVarintBytes];
    uint8_t* end = put_varint(bytes, value);
    bytes_.insert(bytes_.end(), bytes, end);
    return *this;
  }
  Packer& text(std::string_view value) {
    number(value.size());
    bytes_.insert(bytes_.end(), value.begin(), value.end());
    return *this;
  }
  Packer& bytes(std::span<const uint8_t> value) {
    bytes_.insert(bytes_.end(), value.begin(), value.end());
    return *this;
  }
  std::vector<uint8_t>& result() { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

// Reads them back. After the first impossible one everything reads as 0 and ok() is false.
class Unpacker {
 public:
  explicit Unpacker(std::span<const uint8_t> bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  uint64_t number() {
    uint64_t value = 0;
    const uint8_t* next = ok_ ? get_varint(at_, end_, &value) : nullptr;
    if (!next) {
      ok_ = false;
      return 0;
    }
    at_ = next;
    return value;
  }
  std::string_view text() {
    uint64_t size = number();
    if (!ok_ || size > remaining()) {
      ok_ = false;
      return {};
    }
    std::string_view result(reinterpret_cast<const char*>(at_), size);
    at_ += size;
    return result;
  }
  std::span<const uint8_t> bytes(uint64_t size) {
    if (!ok_ || size > remaining()) {
      ok_ = false;
      return {};
    }
    std::span<const uint8_t> result(at_, size);
    at_ += size;
    return result;
  }

  bool ok() const { return ok_; }
  bool done() const { return at_ == end_; }
  uint64_t remaining() const { return static_cast<uint64_t>(end_ - at_); }
  void refuse() { ok_ = false; }

 private:
  const uint8_t* at_;
  const uint8_t* end_;
  bool ok_ = true;
};

}  // namespace malloscope
