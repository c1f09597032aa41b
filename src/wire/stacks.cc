// SPDX-License-Identifier: Apache-2.0

#include "wire/stacks.h"

namespace malloscope::wire {

static void put(std::vector<uint8_t>& column, uint64_t value) {
  uint8_t bytes[kMaxVarintBytes];
  uint8_t* end = put_varint(bytes, value);
  column.insert(column.end(), bytes, end);
}

static constexpr uint32_t kNobody = ~uint32_t{0};

void StackEncoder::add(uint32_t id, uint32_t owner, uint32_t kept, uint32_t generation,
                       uint32_t flags, std::span<const uint64_t> fresh) {
  put(heads_, zigzag(static_cast<int64_t>(id) - last_id_));
  put(heads_, id - owner);
  put(heads_, kept);
  put(heads_, uint64_t{generation} << 8 | (flags & 0xff));
  put(heads_, fresh.size());
  last_id_ = id;
  ++count_;
  uint32_t before = kNobody;
  for (uint64_t address : fresh) {
    auto [it, is_new] = numbers_.try_emplace(address, static_cast<uint32_t>(numbers_.size()));
    uint32_t number = it->second;
    if (is_new) {
      put(codes_, 1);
      put(addresses_, zigzag(static_cast<int64_t>(address - last_new_)));
      last_new_ = address;
      followers_.push_back(kNobody);
    } else if (before != kNobody && followers_[before] == number) {
      put(codes_, 0);
    } else {
      put(codes_, uint64_t{number} + 2);
    }
    if (before != kNobody) followers_[before] = number;
    before = number;
  }
}

std::vector<uint8_t> StackEncoder::finish(ImageId image) {
  Packer out;
  out.number(raw(image)).number(count_).number(heads_.size()).number(codes_.size());
  out.bytes(heads_).bytes(codes_).bytes(addresses_);
  heads_.clear();
  codes_.clear();
  addresses_.clear();
  count_ = 0;
  last_id_ = 0;
  return std::move(out.result());
}

bool StackDecoder::next(Unpacker& heads, Unpacker& codes, Unpacker& addresses, uint32_t* last_id) {
  StackDefinition& d = definition_;
  int64_t id = *last_id + unzigzag(heads.number());
  uint64_t back = heads.number(), kept = heads.number(), generation = heads.number(),
           fresh = heads.number();
  if (!heads.ok() || id <= 0 || id > UINT32_MAX || back == 0 || back > static_cast<uint64_t>(id) ||
      kept > UINT32_MAX || generation >> 8 > UINT32_MAX || fresh > codes.remaining())
    return false;
  *last_id = static_cast<uint32_t>(id);
  d.id = StackId{static_cast<uint32_t>(id)};
  d.owner = StackId{static_cast<uint32_t>(static_cast<uint64_t>(id) - back)};
  d.kept = static_cast<uint32_t>(kept);
  d.generation = static_cast<uint32_t>(generation >> 8);
  d.flags = static_cast<uint32_t>(generation & 0xff);
  d.fresh.clear();
  uint32_t before = kNobody;
  for (uint64_t i = 0; i < fresh; ++i) {
    uint64_t code = codes.number();
    uint32_t number;
    if (code == 1) {
      number = static_cast<uint32_t>(by_number_.size());
      last_new_ += static_cast<uint64_t>(unzigzag(addresses.number()));
      by_number_.push_back(last_new_);
      followers_.push_back(kNobody);
    } else if (code == 0) {
      if (before == kNobody || followers_[before] == kNobody) return false;
      number = followers_[before];
    } else {
      if (code - 2 >= by_number_.size()) return false;
      number = static_cast<uint32_t>(code - 2);
    }
    if (!codes.ok() || !addresses.ok()) return false;
    if (before != kNobody) followers_[before] = number;
    before = number;
    d.fresh.push_back(by_number_[number]);
  }
  return true;
}

}  // namespace malloscope::wire
