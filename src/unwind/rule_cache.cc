// SPDX-License-Identifier: Apache-2.0
// A hash table that is read by all threads, inside malloc and inside signal
// handlers, and therefore never locked. An entry's key is claimed by one
// compare-and-swap and never changes; its rule is one word. A reader that comes
// between the two sees no rule and finds it out by itself: every thread would
// find the same one, so all races end in the same table.
//
// A full table is replaced by a larger copy. One thread makes it (the others go
// on with the old one; what they add there meanwhile is found again later), and
// the old one stays where it is for those who still read it.
//
// A rule is a function of its key only as long as the same code is mapped there.
// Each carries the low bits of the generation it was found in, and is ignored, then
// overwritten, in any other. When those bits come round, the table is wiped.

#include "unwind/rule_cache.h"

#include "unwind/counts.h"
#include "unwind/stack_reader.h"

namespace malloscope::unwind {

bool RuleCache::put(Table* table, uintptr_t key, uint64_t tagged) {
  for (uint32_t i = hash(key), tries = 0; tries < kMaxTries; ++i, ++tries) {
    Entry& entry = table->entries()[i & table->mask];
    uintptr_t found = entry.key.load(std::memory_order_relaxed);
    if (found == 0 && entry.key.compare_exchange_strong(found, key)) {
      table->used.fetch_add(1, std::memory_order_relaxed);
      found = key;
    }
    if (found != key) continue;
    entry.rule.store(tagged, std::memory_order_relaxed);
    return true;
  }
  return false;
}

void RuleCache::insert(uintptr_t key, Rule rule, uint32_t generation, Arena& arena) {
  Table* table = table_.load(std::memory_order_acquire);
  if (!table || table->used.load(std::memory_order_relaxed) > table->mask / 2)
    grow(table, generation, arena);
  table = table_.load(std::memory_order_acquire);
  if (table) put(table, key, rule.bits() | (generation & kTagMask) << Rule::kBits);
}

void RuleCache::grow(Table* old, uint32_t generation, Arena& arena) {
  if (growing_.exchange(true, std::memory_order_acquire)) return;
  if (table_.load(std::memory_order_relaxed) == old) {
    uint32_t entries = old ? (old->mask + 1) * 2 : kMinEntries;
    auto* table = static_cast<Table*>(arena.take(sizeof(Table) + entries * sizeof(Entry)));
    if (table) {
      table->mask = entries - 1;
      for (uint32_t i = 0; old && i <= old->mask; ++i) {
        uintptr_t key = old->entries()[i].key.load(std::memory_order_relaxed);
        uint64_t tagged = old->entries()[i].rule.load(std::memory_order_relaxed);
        if (key && tagged && tagged >> Rule::kBits == (generation & kTagMask))
          put(table, key, tagged);
      }
      table_.store(table, std::memory_order_release);
    } else {
      count(counts.no_memory);
    }
  }
  growing_.store(false, std::memory_order_release);
}

void RuleCache::prepare(uint32_t generation) {
  Table* table = table_.load(std::memory_order_acquire);
  if (!table || (generation & kTagMask) != 0) return;
  for (uint32_t i = 0; i <= table->mask; ++i)
    table->entries()[i].rule.store(0, std::memory_order_relaxed);
}

void RuleCache::reset() {
  table_.store(nullptr, std::memory_order_relaxed);
  growing_.store(false, std::memory_order_relaxed);
}

}  // namespace malloscope::unwind
