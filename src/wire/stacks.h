// SPDX-License-Identifier: Apache-2.0
// The payload of a kStacks chunk: definitions of stacks of one image.
//
// A definition adds a few return addresses to an older stack. Programs have few
// distinct return addresses and reach the next one mostly from the same one, so
// an address is written as
//     0            the one that followed the address before it last time
//     1            a new one; its value is in the column of new addresses
//     n >= 2       the address numbered n - 2 in order of first appearance
// The numbering goes on from chunk to chunk, one for each image.

#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "wire/chunk.h"

namespace malloscope::wire {

struct StackDefinition {
  StackId id = StackId::kNone;
  StackId owner = StackId::kNone;
  uint32_t kept = 0;
  uint32_t generation = 0;
  uint32_t flags = 0;
  std::vector<uint64_t> fresh;  // Outermost first.
};

class StackEncoder {
 public:
  void add(uint32_t id, uint32_t owner, uint32_t kept, uint32_t generation, uint32_t flags,
           std::span<const uint64_t> fresh);
  bool empty() const { return count_ == 0; }
  // Roughly, to know when a chunk is large enough.
  size_t bytes() const { return heads_.size() + codes_.size() + addresses_.size(); }
  std::vector<uint8_t> finish(ImageId image);

 private:
  std::vector<uint8_t> heads_, codes_, addresses_;
  uint64_t count_ = 0;
  uint32_t last_id_ = 0;
  std::unordered_map<uint64_t, uint32_t> numbers_;
  std::vector<uint32_t> followers_;
  uint64_t last_new_ = 0;
};

class StackDecoder {
 public:
  // Calls `define(const StackDefinition&) -> bool` for each; false if the payload is not a
  // possible one or `define` said no.
  template <typename Define>
  bool decode(Unpacker in, Define&& define) {
    uint64_t count = in.number(), head_bytes = in.number(), code_bytes = in.number();
    Unpacker heads(in.bytes(head_bytes)), codes(in.bytes(code_bytes));
    Unpacker addresses(in.bytes(in.remaining()));
    if (!in.ok()) return false;
    uint32_t last_id = 0;
    for (uint64_t i = 0; i < count; ++i) {
      if (!next(heads, codes, addresses, &last_id) || !define(definition_)) return false;
    }
    return heads.done() && codes.done() && addresses.done();
  }

 private:
  bool next(Unpacker& heads, Unpacker& codes, Unpacker& addresses, uint32_t* last_id);

  StackDefinition definition_;
  std::vector<uint64_t> by_number_;
  std::vector<uint32_t> followers_;
  uint64_t last_new_ = 0;
};

}  // namespace malloscope::wire
