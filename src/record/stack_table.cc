// SPDX-License-Identifier: Apache-2.0
// Two arrays: the hashes by id, and the ids by hash (open addressing, linear
// probing). The latter is what a new stack is looked for in vain, so it is kept
// small, with nothing but ids. A stack is there once its id is; the hash is
// written first.
//
// A table of n places has room for ids up to n, and two thirds of that are used, so
// that a search ends. Then one thread copies it into one of twice the size. The
// others go on with the old one meanwhile; what they add to it is lost to the new
// one, at the price of a second id for the same stack. The old table stays, since
// another thread may be reading it: all of them together are no larger than the
// newest.

#include "record/stack_table.h"

namespace malloscope::record {

static constexpr uint64_t kFirstPlaces = 1 << 10;

static bool has_room_for(uint64_t mask, uint32_t id) { return uint64_t{id} * 3 <= mask * 2; }

void StackTable::insert(Table* table, uint64_t hash, uint32_t id) {
  table->hashes[id].store(hash, std::memory_order_release);
  for (uint64_t i = hash;; ++i) {
    std::atomic<uint32_t>& place = table->ids[i & table->mask];
    uint32_t there = place.load(std::memory_order_acquire);
    if (there == 0 && place.compare_exchange_strong(there, id)) return;
    if (table->hashes[there].load(std::memory_order_relaxed) == hash) return;
  }
}

StackTable::Table* StackTable::grow(Table* old, uint32_t id, Arena* arena) {
  if (growing_.exchange(1, std::memory_order_acquire)) return old;  // Another thread is at it.
  // It may have been done between our look at the table and our turn.
  Table* current = table_.load(std::memory_order_acquire);
  if (current == old) {
    uint64_t places = old ? (old->mask + 1) * 2 : kFirstPlaces;
    while (!has_room_for(places - 1, id)) places *= 2;
    size_t hash_bytes = places * sizeof(uint64_t), id_bytes = places * sizeof(uint32_t);
    auto* fresh = static_cast<Table*>(arena->take(sizeof(Table) + hash_bytes + id_bytes));
    if (fresh) {
      fresh->mask = places - 1;
      fresh->hashes = reinterpret_cast<std::atomic<uint64_t>*>(fresh + 1);
      fresh->ids = reinterpret_cast<std::atomic<uint32_t>*>(fresh->hashes + places);
      for (uint32_t i = 1; old && i <= old->mask; ++i)
        if (uint64_t hash = old->hashes[i].load(std::memory_order_acquire)) insert(fresh, hash, i);
      table_.store(fresh, std::memory_order_release);
      current = fresh;
    }
  }
  growing_.store(0, std::memory_order_release);
  return current;
}

void StackTable::publish(uint64_t hash, StackId id, Arena* arena) {
  Table* table = table_.load(std::memory_order_acquire);
  if (!table || !has_room_for(table->mask, raw(id))) table = grow(table, raw(id), arena);
  if (table && has_room_for(table->mask, raw(id))) insert(table, hash, raw(id));
}

}  // namespace malloscope::record
