// SPDX-License-Identifier: Apache-2.0
// Open addressing with linear probing. A slot is taken by writing its hash and
// becomes valid when its id is written; who meets a slot in between behaves as
// if it were not there, which at worst makes a second id for the same stack.
//
// When a table is two thirds full one thread copies it into one of twice the
// size. The others go on with the old one meanwhile; what they add to it is lost
// to the new one, again at the price of a second id. The old table stays, since
// another thread may be reading it: all of them together are no larger than the
// newest.

#include "record/stack_table.h"

namespace malloscope::record {

static constexpr uint64_t kFirstSlots = 1 << 10;

bool StackTable::insert(Table* table, uint64_t hash, uint32_t id) {
  for (uint64_t i = hash, tries = 0; tries <= table->mask; ++i, ++tries) {
    Slot& slot = table->slots[i & table->mask];
    uint64_t there = slot.hash.load(std::memory_order_acquire);
    if (there == hash) return true;
    if (there != 0) continue;
    if (slot.hash.compare_exchange_strong(there, hash)) {
      slot.id.store(id, std::memory_order_release);
      table->used.fetch_add(1, std::memory_order_relaxed);
      return true;
    }
    if (there == hash) return true;
  }
  return false;
}

StackTable::Table* StackTable::grow(Table* old, Arena* arena) {
  if (growing_.exchange(1, std::memory_order_acquire)) return old;  // Another thread is at it.
  // It may have been done between our look at the table and our turn.
  if (Table* current = table_.load(std::memory_order_acquire); current != old) {
    growing_.store(0, std::memory_order_release);
    return current;
  }
  uint64_t slots = old ? (old->mask + 1) * 2 : kFirstSlots;
  auto* fresh = static_cast<Table*>(arena->take(sizeof(Table) + slots * sizeof(Slot)));
  if (fresh) {
    fresh->mask = slots - 1;
    fresh->slots = reinterpret_cast<Slot*>(fresh + 1);
    for (uint64_t i = 0; old && i <= old->mask; ++i) {
      uint64_t hash = old->slots[i].hash.load(std::memory_order_acquire);
      uint32_t id = old->slots[i].id.load(std::memory_order_acquire);
      if (hash && id) insert(fresh, hash, id);
    }
    table_.store(fresh, std::memory_order_release);
  }
  growing_.store(0, std::memory_order_release);
  return fresh ? fresh : old;
}

void StackTable::publish(uint64_t hash, StackId id, Arena* arena) {
  Table* table = table_.load(std::memory_order_acquire);
  if (!table || table->used.load(std::memory_order_relaxed) * 3 > table->mask * 2)
    table = grow(table, arena);
  // Never quite full: find() stops at an empty slot.
  if (table && table->used.load(std::memory_order_relaxed) < table->mask - table->mask / 8)
    insert(table, hash, raw(id));
}

}  // namespace malloscope::record
