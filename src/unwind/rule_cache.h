// SPDX-License-Identifier: Apache-2.0
// Every rule found so far, for all threads. The idea is told in rule_cache.cc.

#pragma once

#include <atomic>
#include <cstdint>

#include "base/arena.h"
#include "base/attributes.h"
#include "unwind/rule.h"

namespace malloscope::unwind {

class RuleCache {
 public:
  // kNone if it is not known. A rule from another generation is not known.
  MSCOPE_FAST Rule find(uintptr_t key, uint32_t generation) const {
    const Table* table = table_.load(std::memory_order_acquire);
    if (!table) [[unlikely]]
      return Rule();
    for (uint32_t i = hash(key), tries = 0; tries < kMaxTries; ++i, ++tries) {
      const Entry& entry = table->entries()[i & table->mask];
      uintptr_t found = entry.key.load(std::memory_order_relaxed);
      if (found == 0) break;
      if (found != key) continue;
      uint64_t tagged = entry.rule.load(std::memory_order_relaxed);
      if (tagged >> Rule::kBits != (generation & kTagMask)) break;
      return Rule::from_bits(tagged & kRuleMask);
    }
    return Rule();
  }

  // Found while `generation` was current. Does nothing where that would take waiting.
  void insert(uintptr_t key, Rule rule, uint32_t generation, Arena& arena);

  // Called before `generation` becomes current.
  void prepare(uint32_t generation);

  // For a forked child, whose arena is empty.
  void reset();

 private:
  struct Entry {
    std::atomic<uintptr_t> key;
    std::atomic<uint64_t> rule;  // The generation in the bits a rule leaves free.
  };
  struct Table {
    uint32_t mask;
    std::atomic<uint32_t> used;
    // They follow it in memory.
    Entry* entries() const {
      return reinterpret_cast<Entry*>(reinterpret_cast<uintptr_t>(this) + sizeof(Table));
    }
  };
  static constexpr uint32_t kMinEntries = 1024, kMaxTries = 64;
  static constexpr uint64_t kRuleMask = (uint64_t{1} << Rule::kBits) - 1;
  static constexpr uint64_t kTagMask = (uint64_t{1} << (64 - Rule::kBits)) - 1;

  // The low bits of a product are poor: fold the high half down.
  MSCOPE_FAST static uint32_t hash(uintptr_t key) {
    uint64_t product = key * 0x9e3779b97f4a7c15;
    return static_cast<uint32_t>(product >> 32 ^ product >> 16);
  }

  static bool put(Table* table, uintptr_t key, uint64_t tagged);
  void grow(Table* old, uint32_t generation, Arena& arena);

  std::atomic<Table*> table_ = nullptr;
  std::atomic<bool> growing_ = false;
};

inline constinit RuleCache rule_cache;

}  // namespace malloscope::unwind
