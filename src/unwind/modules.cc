// SPDX-License-Identifier: Apache-2.0
// The loader knows which module a pc is in, and glibc (2.35 and later) lets us ask
// without a lock: _dl_find_object. Everything else that tells - dl_iterate_phdr,
// /proc/self/maps - takes the loader's lock or a file, and inside malloc both
// end in a deadlock sooner or later.
//
// A module met for the first time is described in a record (path, build-id,
// where its CFI is) that is built in private and then published by one
// compare-and-swap at the end of a table which only grows; so the recorder can
// follow it by index, and no thread ever waits for another. When the table is full,
// its last record says that from then on nothing is known of any address.
//
// Generations. A pc names a piece of code only until its module is unloaded and
// another one mapped in its place. We cannot stop the world for that; instead,
//
//     begin_unload()   from here on nobody believes a cache, everyone asks the loader
//     dlclose()
//     end_unload()     looks whether a module we met is gone; if so, a new
//                      generation begins, and with it all caches are void
//
// Most calls of dlclose only drop a reference: then nothing is lost.
// Loading needs no such care, because we never cache that a pc is unknown.

#include "unwind/modules.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>
#include <sys/uio.h>

#include <cstring>
#include <iterator>

#include "base/syscall.h"
#include "unwind/counts.h"
#include "unwind/loaded_elf.h"
#include "unwind/rule_cache.h"
#include "unwind/stack_reader.h"

// Absent before glibc 2.35: then no module is ever found, and every stack ends at once.
extern "C" int _dl_find_object(void* pc, dl_find_object* result) noexcept __attribute__((weak));

namespace malloscope::unwind {

constinit std::atomic<uint64_t> epoch_bits = uint64_t{1} << 32;

namespace {

constexpr uint64_t kOneGeneration = uint64_t{1} << 32, kOneUnloading = 1;
constexpr size_t kMaxName = 4095;

// Whether a module is still loaded, as far as we know. Threads that unload others look at the same
// time, and what one of them has seen may be over when he says so: every change has a number of
// its own, by which he notices.
class Presence {
 public:
  enum State : uint32_t {
    kThere,
    kLookedAt,  // By a thread that takes it back to kThere, unless another one comes in between.
    kGone,      // Or not to be trusted, until it is met again.
  };
  State state() const { return static_cast<State>(bits_ & 3); }
  Presence then(State state) const { return Presence((bits_ | 3) + 1 + state); }

  Presence() = default;

 private:
  explicit Presence(uint64_t bits) : bits_(bits) {}
  uint64_t bits_;  // Zero, as fresh memory is: there.
};

// A module in the table, with what only we need to know.
struct Known {
  Module module;
  const link_map* map;
  std::atomic<Presence> presence;
  uint64_t beginning;                  // A hash of its first bytes; 0 if they cannot be read.
  std::atomic<uint32_t> newest_until;  // Later records below this index lie elsewhere.
};

constinit std::atomic<Arena*> memory = nullptr;
// The newest module of each address, most of the time: only a hint.
constinit std::atomic<uint32_t> hints[256] = {};

std::atomic<uint32_t>& hint_of(uintptr_t start) { return hints[(start >> 12 ^ start >> 20) & 255]; }

void* take(size_t bytes) {
  Arena* arena = memory.load(std::memory_order_relaxed);
  void* result = arena ? arena->take(bytes) : nullptr;
  if (!result) count(counts.no_memory);
  return result;
}

// The table, in chunks that are made when they are needed. It is filled from the front without
// gaps.
struct Chunk {
  static constexpr size_t kRecords = 1024;
  std::atomic<Known*> records[kRecords];
  // A bit for each record that is not gone, so that the few that are left are soon found.
  std::atomic<uint64_t> left[kRecords / 64];
};
constinit std::atomic<Chunk*> chunks[kMaxModules / Chunk::kRecords] = {};
static_assert(kMaxModules % Chunk::kRecords == 0);

Chunk* chunk_of(size_t index) {
  return chunks[index / Chunk::kRecords].load(std::memory_order_acquire);
}

Known* known_at(size_t index) {
  Chunk* chunk = chunk_of(index);
  return chunk ? chunk->records[index % Chunk::kRecords].load(std::memory_order_acquire) : nullptr;
}

void mark_left(size_t index) {
  chunk_of(index)->left[index % Chunk::kRecords / 64].fetch_or(uint64_t{1} << index % 64);
}

// Puts it at the index, unless another thread has put one there. False if there is no memory.
bool put(Known* known, size_t index) {
  std::atomic<Chunk*>& chunk = chunks[index / Chunk::kRecords];
  if (!chunk.load(std::memory_order_acquire)) {
    auto* fresh = static_cast<Chunk*>(take(sizeof(Chunk)));
    if (!fresh) return false;
    Chunk* nobodys = nullptr;
    chunk.compare_exchange_strong(nobodys, fresh, std::memory_order_acq_rel);
  }
  mark_left(index);
  Known* nothing = nullptr;
  chunk_of(index)->records[index % Chunk::kRecords].compare_exchange_strong(
      nothing, known, std::memory_order_acq_rel);
  return true;
}

Section section_of(LoadedElf::Range range) {
  size_t size = range.end - range.start;
  return {reinterpret_cast<const uint8_t*>(range.start), size < INT32_MAX ? size : INT32_MAX,
          range.start};
}

// All that the kernel has mapped of the program itself, or nothing if `part` does not belong to it.
LoadedElf::Range program_around(uintptr_t part, uintptr_t bias) {
  auto* segments = reinterpret_cast<const Elf64_Phdr*>(getauxval(AT_PHDR));
  size_t count_there = segments ? getauxval(AT_PHNUM) : 0;
  LoadedElf::Range all;
  for (size_t i = 0; i < count_there; ++i) {
    if (segments[i].p_type != PT_LOAD) continue;
    if (all.end == 0) all.start = bias + (segments[i].p_vaddr & ~uintptr_t{4095});
    all.end = bias + segments[i].p_vaddr + segments[i].p_memsz;
  }
  bool ours = all.contains(part) && all.contains(reinterpret_cast<uintptr_t>(segments));
  return ours ? all : LoadedElf::Range{};
}

// Where the program was linked with gaps between its segments (node is), the loader tells only of
// the segment that `pc` is in. Libraries are mapped as a whole.
bool ask_loader(uintptr_t pc, dl_find_object* found) {
  if (!_dl_find_object || _dl_find_object(reinterpret_cast<void*>(pc), found) != 0) return false;
  const link_map* map = found->dlfo_link_map;
  if (map->l_prev || !map->l_name || map->l_name[0]) return true;
  auto start = reinterpret_cast<uintptr_t>(found->dlfo_map_start);
  if (LoadedElf::Range all = program_around(start, map->l_addr); all.end) {
    found->dlfo_map_start = reinterpret_cast<void*>(all.start);
    found->dlfo_map_end = reinterpret_cast<void*>(all.end);
  }
  return true;
}

LoadedElf elf_of(const dl_find_object& found) {
  auto start = reinterpret_cast<uintptr_t>(found.dlfo_map_start);
  auto end = reinterpret_cast<uintptr_t>(found.dlfo_map_end);
  return LoadedElf({start, end}, found.dlfo_link_map->l_addr);
}

// All but the name's copy and the generation.
void describe(const dl_find_object& found, Module* out) {
  *out = {};
  out->start = reinterpret_cast<uintptr_t>(found.dlfo_map_start);
  out->end = reinterpret_cast<uintptr_t>(found.dlfo_map_end);
  out->bias = found.dlfo_link_map->l_addr;
  const char* name = found.dlfo_link_map->l_name;
  out->name = name ? name : "";
  while (out->name_size < kMaxName && out->name[out->name_size]) ++out->name_size;
  if (ask_readable(out->start) == Answer::kNo) return;
  LoadedElf elf = elf_of(found);
  out->build_id_size = static_cast<uint32_t>(elf.build_id(out->build_id, sizeof out->build_id));
  LoadedElf::Range header = elf.find(PT_GNU_EH_FRAME);
  if (header.start == 0) return;
  out->header = section_of(header);
  uintptr_t address = frames_address(out->header);
  if (LoadedElf::Range room = elf.segment(address); room.start)
    out->frames = section_of({address, room.end});
}

bool same(const Module& a, const Module& b) {
  return a.start == b.start && a.end == b.end && a.bias == b.bias && a.name_size == b.name_size &&
         memcmp(a.name, b.name, a.name_size) == 0 && a.build_id_size == b.build_id_size &&
         memcmp(a.build_id, b.build_id, a.build_id_size) == 0 && a.header.bytes == b.header.bytes &&
         a.header.size == b.header.size;
}

bool overlap(const Module& a, const Module& b) { return a.start < b.end && b.start < a.end; }

// The beginning of a file holds its headers and, as linkers lay it out, its build-id.
constexpr size_t kBeginning = 1024;
uint64_t hash_of(const char* bytes, size_t count) {
  uint64_t hash = count;
  for (size_t i = 0; i + sizeof hash <= count; i += sizeof hash) {
    uint64_t word;
    memcpy(&word, bytes + i, sizeof word);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return hash;
}

// `module`, with its name still the loader's, as the table's own. nullptr if there is no room.
Known* make(const Module& module, const link_map* map, Epoch now) {
  auto* known = static_cast<Known*>(take(sizeof(Known) + module.name_size + 1));
  if (!known) return nullptr;
  char* name = reinterpret_cast<char*>(known + 1);
  memcpy(name, module.name, module.name_size);
  known->module = module;
  known->module.name = name;
  known->module.generation = now.generation();
  known->map = map;
  if (module.end - module.start >= kBeginning && ask_readable(module.start) == Answer::kYes)
    known->beginning = hash_of(reinterpret_cast<const char*>(module.start), kBeginning);
  return known;
}

// The last record of a full table, in the place of all that would follow. It holds every address,
// so that a reader does not take an older module for one that is not there.
Module anything() {
  Module all = {};
  all.end = UINTPTR_MAX;
  all.name = "[unknown]";
  all.name_size = static_cast<uint32_t>(strlen(all.name));
  return all;
}

// Somebody runs the module at `index`: whoever looks at it now sees no more than we know.
void be_there(Known* known, size_t index) {
  Presence seen = known->presence.load(std::memory_order_relaxed);
  if (seen.state() == Presence::kThere) return;
  while (!known->presence.compare_exchange_weak(seen, seen.then(Presence::kThere))) {
  }
  mark_left(index);
}

// The table's record of the module that the loader found.
MSCOPE_SLOW const Module* meet(const dl_find_object& found, Epoch now) {
  Module module;
  describe(found, &module);
  Known* fresh = nullptr;
  for (;;) {
    // The newest record of these addresses is the only one that may still hold. A thread that has
    // met it in a later generation may have been faster than we; then ours needs one too.
    size_t count_now = module_count();
    size_t hint = hint_of(module.start).load(std::memory_order_relaxed);
    const Known* last = known_at(hint);
    size_t looked_at = last && last->module.start == module.start && last->module.end == module.end
                           ? last->newest_until.load(std::memory_order_relaxed)
                           : 0;
    for (size_t i = count_now; i-- > 0;) {
      if (i < looked_at && i > hint) i = hint;
      Known* known = known_at(i);
      if (!overlap(known->module, module)) continue;
      if (!same(known->module, module) || known->module.generation > now.generation()) break;
      be_there(known, i);
      known->newest_until.store(static_cast<uint32_t>(count_now), std::memory_order_relaxed);
      hint_of(module.start).store(static_cast<uint32_t>(i), std::memory_order_relaxed);
      return &known->module;
    }
    if (count_now >= kMaxModules - 1) {
      Known* end = count_now < kMaxModules ? make(anything(), nullptr, now) : nullptr;
      if (end) put(end, count_now);
      count(counts.modules_lost);
      return nullptr;
    }
    if (!fresh && !(fresh = make(module, found.dlfo_link_map, now))) return nullptr;
    if (!put(fresh, count_now)) return nullptr;
    // Now it is there, by us or, if we lost the race, perhaps by another: look again.
  }
}

const Module* module_of(const dl_find_object& found, Epoch now) {
  // Whoever unloads says what is gone before he has ended: so this is looked at first.
  if (epoch().unloading()) return meet(found, now);
  auto start = reinterpret_cast<uintptr_t>(found.dlfo_map_start);
  size_t hint = hint_of(start).load(std::memory_order_relaxed);
  Known* known = known_at(hint);
  if (known && known->module.start == start &&
      known->module.end == reinterpret_cast<uintptr_t>(found.dlfo_map_end) &&
      known->map == found.dlfo_link_map && known->module.generation <= now.generation() &&
      known->presence.load(std::memory_order_relaxed).state() == Presence::kThere)
    return &known->module;
  return meet(found, now);
}

// --- Registered frames.

struct Registered {
  enum State : uint32_t { kFree, kClaimed, kReady };
  std::atomic<uint32_t> state;
  std::atomic<uint32_t> size;
  std::atomic<uintptr_t> section;
  std::atomic<uintptr_t> low, high;  // All pcs described are in between.
};
struct Block {
  static constexpr size_t kPlaces = 64;
  Registered places[kPlaces];
  std::atomic<Block*> next;
};
constinit Block first_block = {};
constinit std::atomic<uint32_t> registered_count = 0;

template <typename Each>
Registered* find_place(Each each) {
  for (Block* block = &first_block; block; block = block->next.load(std::memory_order_acquire))
    for (Registered& place : block->places)
      if (each(place)) return &place;
  return nullptr;
}

bool claim(Registered& place) {
  uint32_t state = Registered::kFree;
  return place.state.load(std::memory_order_relaxed) == state &&
         place.state.compare_exchange_strong(state, Registered::kClaimed);
}

bool find_registered(uintptr_t pc, CfiSource* out) {
  if (registered_count.load(std::memory_order_relaxed) == 0) return false;
  return find_place([&](Registered& place) {
           if (place.state.load(std::memory_order_acquire) != Registered::kReady) return false;
           uintptr_t low = place.low.load(std::memory_order_relaxed);
           uintptr_t high = place.high.load(std::memory_order_relaxed);
           if (pc < low || pc >= high) return false;
           uintptr_t section = place.section.load(std::memory_order_relaxed);
           Section frames = {reinterpret_cast<const uint8_t*>(section),
                             place.size.load(std::memory_order_relaxed), section};
           // It was removed, and perhaps another put there, while we read: nobody can
           // remove the frames of code that he is running, so it was not the one we want.
           if (place.state.load(std::memory_order_acquire) != Registered::kReady) return false;
           Fde fde;
           if (!find_fde({}, frames, pc, &fde)) return false;
           *out = {{}, frames, nullptr};
           return true;
         }) != nullptr;
}

}  // namespace

// The threads that are inside dlclose, by their thread pointers, each with room to look at a
// module. One that finds no place is taken for one that is not inside.
struct Unloader {
  std::atomic<uintptr_t> thread;
  int depth;            // A destructor may call dlclose again.
  uint32_t generation;  // When it went inside.
  char beginning[kBeginning];
};
static constinit Unloader unloaders[16] = {};

static uintptr_t this_thread() { return reinterpret_cast<uintptr_t>(__builtin_thread_pointer()); }

static Unloader* this_unloader() {
  for (Unloader& place : unloaders)
    if (place.thread.load(std::memory_order_relaxed) == this_thread()) return &place;
  return nullptr;
}

// Whether the module is as it was. Another thread may be unmapping it at this moment, so nothing of
// it is touched: the loader's own table is asked, and the kernel copies what lies there.
static bool still_there(const Known& known, Unloader* unloader) {
  dl_find_object found;
  if (!_dl_find_object ||
      _dl_find_object(reinterpret_cast<void*>(known.module.start), &found) != 0 ||
      found.dlfo_link_map != known.map)
    return false;
  if (!unloader || known.beginning == 0 || sys::is_sandboxed()) return false;
  iovec to = {unloader->beginning, kBeginning};
  iovec from = {reinterpret_cast<void*>(known.module.start), kBeginning};
  return sys::call(SYS_process_vm_readv, sys::pid(), sys::arg(&to), 1, sys::arg(&from), 1, 0) ==
             static_cast<long>(kBeginning) &&
         hash_of(unloader->beginning, kBeginning) == known.beginning;
}

void start(Arena& arena) {
  memory.store(&arena, std::memory_order_relaxed);
  for (auto& chunk : chunks) chunk.store(nullptr, std::memory_order_relaxed);
  rule_cache.reset();
  reset(counts);
  // Another thread of the parent may have been inside dlclose; it does not exist here.
  uint64_t bits = epoch_bits.load(std::memory_order_relaxed);
  epoch_bits.store((bits & ~(kOneGeneration - 1)) + kOneGeneration, std::memory_order_release);
  for (Unloader& place : unloaders) {
    place.thread.store(0, std::memory_order_relaxed);
    place.depth = 0;
  }
}

// An unload begins a generation of its own at once: from then on another thread may load other code
// into the same place. What the unloading thread itself still runs of the old code keeps the old
// generation. If in the end nothing was unloaded, and nobody has used the new generation, it never
// was.
//
// That is right because whoever unloads a module that was met looks at it. But while several
// threads unload, one of them may take for gone what is still there, and he who unloads it later
// does not look at it any more. So if anything was taken for gone, stacks that were recorded
// meanwhile keep their generation to themselves: after the last of these unloads comes another, in
// which every module is met anew.
Epoch epoch_here() {
  Epoch now = epoch();
  while (now.unloading()) {
    if (const Unloader* unloader = this_unloader(); unloader && unloader->depth > 0)
      return {uint64_t{unloader->generation} << 32 | static_cast<uint32_t>(now.bits)};
    if (now.bits & Epoch::kUsed) return now;
    if (epoch_bits.compare_exchange_strong(now.bits, now.bits | Epoch::kUsed))
      now.bits |= Epoch::kUsed;
  }
  return now;
}

void begin_unload() {
  Unloader* unloader = this_unloader();
  for (size_t i = 0; !unloader && i < std::size(unloaders); ++i) {
    uintptr_t nobody = 0;
    if (unloaders[i].thread.compare_exchange_strong(nobody, this_thread()))
      unloader = &unloaders[i];
  }
  uint64_t bits = epoch_bits.load();
  do {
    uint32_t generation = Epoch{bits}.generation();
    rule_cache.prepare(generation + 1);
    if (unloader && unloader->depth == 0) unloader->generation = generation;
  } while (!epoch_bits.compare_exchange_weak(bits, bits + kOneGeneration + kOneUnloading,
                                             std::memory_order_acq_rel));
  if (unloader) ++unloader->depth;
}

// Looks whether the module is still there; false if it is not, or if nobody can say. What another
// thread has seen may have been before our unload: his look is made void, and if he was faster, we
// look ourselves.
static bool look_at(Known* known, Unloader* unloader) {
  Presence seen = known->presence.load();
  while (seen.state() != Presence::kGone) {
    if (seen.state() == Presence::kLookedAt) {
      if (known->presence.compare_exchange_strong(seen, seen.then(Presence::kGone))) return false;
      continue;
    }
    Presence looking = seen.then(Presence::kLookedAt);
    if (!known->presence.compare_exchange_strong(seen, looking)) continue;
    bool there = still_there(*known, unloader);
    Presence after = looking.then(there ? Presence::kThere : Presence::kGone);
    return known->presence.compare_exchange_strong(looking, after) && there;
  }
  return false;
}

// False if a module that we met is gone.
static bool all_still_there(Unloader* unloader) {
  bool all = true;
  for (size_t first = 0; first < kMaxModules && chunk_of(first); first += Chunk::kRecords)
    for (size_t word = 0; word < std::size(chunk_of(first)->left); ++word) {
      std::atomic<uint64_t>& left = chunk_of(first)->left[word];
      for (uint64_t bits = left.load(); bits; bits &= bits - 1) {
        size_t index = first + word * 64 + static_cast<size_t>(__builtin_ctzll(bits));
        Known* known = known_at(index);  // Or it is about to be put there.
        while (known && !look_at(known, unloader)) {
          all = false;
          if (known->presence.load().state() != Presence::kGone) break;
          left.fetch_and(~(bits & -bits));
          if (known->presence.load().state() == Presence::kGone) break;
          // It was met again meanwhile, and whoever has unloaded it since may have passed it over.
          mark_left(index);
        }
      }
    }
  return all;
}

void end_unload() {
  Unloader* unloader = this_unloader();
  bool changed = !all_still_there(unloader);
  for (uint64_t bits = epoch_bits.load();;) {
    uint64_t next = (bits | (changed ? Epoch::kChanged : 0)) - kOneUnloading;
    constexpr uint64_t kFlags = Epoch::kUsed | Epoch::kChanged;
    if ((static_cast<uint32_t>(next) & ~kFlags) == 0) {  // We are the last.
      bool used = next & Epoch::kUsed, any_changed = next & Epoch::kChanged;
      bool newest = unloader && Epoch{next}.generation() == unloader->generation + 1;
      if (used && any_changed) {
        rule_cache.prepare(Epoch{next}.generation() + 1);
        next += kOneGeneration;
      } else if (!used && !any_changed && newest) {
        next -= kOneGeneration;
      }
      next &= ~kFlags;
    }
    if (epoch_bits.compare_exchange_weak(bits, next, std::memory_order_acq_rel)) break;
  }
  if (unloader && --unloader->depth == 0) unloader->thread.store(0, std::memory_order_release);
}

void flush() {
  uint64_t bits = epoch_bits.load();
  do {
    rule_cache.prepare(Epoch{bits}.generation() + 1);
  } while (
      !epoch_bits.compare_exchange_weak(bits, bits + kOneGeneration, std::memory_order_acq_rel));
}

size_t module_count() {
  size_t low = 0, high = kMaxModules;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (known_at(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

const Module* module_at(size_t index) {
  Known* known = index < kMaxModules ? known_at(index) : nullptr;
  return known ? &known->module : nullptr;
}

// How many bytes can be read from `address` on: at least up to the end of its
// page, and `wanted` if they are there.
static size_t readable_bytes(uintptr_t address, size_t wanted) {
  size_t bytes = kPageBytes - address % kPageBytes;
  while (bytes < wanted && ask_readable(address + bytes) != Answer::kNo) bytes += kPageBytes;
  return bytes;
}

bool add_frames(const void* section) {
  auto address = reinterpret_cast<uintptr_t>(section);
  if (!section || ask_readable(address) == Answer::kNo) return false;
  struct Extent {
    uintptr_t low, high;
  } extent;
  size_t size;
  // Nothing says where the section ends but its last word; look in ever larger parts.
  for (size_t wanted = kPageBytes;; wanted *= 2) {
    size_t readable = readable_bytes(address, wanted);
    extent = {UINTPTR_MAX, 0};
    size = scan_fdes(
        {static_cast<const uint8_t*>(section), readable, address},
        [](const Fde& fde, void* context) {
          auto* widest = static_cast<Extent*>(context);
          if (fde.start < widest->low) widest->low = fde.start;
          if (fde.end > widest->high) widest->high = fde.end;
          return false;
        },
        &extent);
    uint32_t length = 1;
    if (readable - size >= sizeof length)
      memcpy(&length, static_cast<const uint8_t*>(section) + size, sizeof length);
    if (length == 0 || readable < wanted || readable > INT32_MAX / 2) break;
  }
  if (extent.low >= extent.high) return false;

  Registered* place = find_place(claim);
  if (!place) {
    // Not from the arena: what was registered before a fork holds in the child too.
    auto* block = static_cast<Block*>(sys::map(sizeof(Block)));
    if (!block) return false;
    place = &block->places[0];
    claim(*place);
    std::atomic<Block*>* end = &first_block.next;
    for (Block* expected = nullptr; !end->compare_exchange_strong(expected, block);
         expected = nullptr)
      end = &expected->next;
  }
  place->section.store(address, std::memory_order_relaxed);
  place->size.store(static_cast<uint32_t>(size), std::memory_order_relaxed);
  place->low.store(extent.low, std::memory_order_relaxed);
  place->high.store(extent.high, std::memory_order_relaxed);
  place->state.store(Registered::kReady, std::memory_order_release);
  registered_count.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool remove_frames(const void* section) {
  auto address = reinterpret_cast<uintptr_t>(section);
  Registered* place = find_place([&](Registered& candidate) {
    if (candidate.state.load(std::memory_order_acquire) != Registered::kReady) return false;
    if (candidate.section.load(std::memory_order_relaxed) != address) return false;
    uint32_t ready = Registered::kReady;
    return candidate.state.compare_exchange_strong(ready, Registered::kFree);
  });
  if (!place) return false;
  registered_count.fetch_sub(1, std::memory_order_relaxed);
  flush();
  return true;
}

bool find_cfi(uintptr_t pc, CfiSource* out, Epoch now) {
  dl_find_object found;
  if (!ask_loader(pc, &found)) return find_registered(pc, out);
  const Module* module = module_of(found, now);
  if (!module) return false;
  // A program linked without a header registers its frames itself.
  if (module->frames.size == 0 && find_registered(pc, out)) return true;
  *out = {module->header, module->frames, module};
  return true;
}

bool is_known(uintptr_t pc) {
  dl_find_object found;
  CfiSource source;
  return ask_loader(pc, &found) || find_registered(pc, &source);
}

// Whether the code at `pc` is what signal handlers return to.
MSCOPE_SLOW static bool is_sigreturn(uintptr_t pc) {
  dl_find_object found;
  if (!ask_loader(pc, &found)) return false;
  LoadedElf::Range text = elf_of(found).segment(pc, PF_R | PF_X);
  return text.start && text.end - pc >= sizeof arch::kSigreturn &&
         memcmp(reinterpret_cast<const void*>(pc), arch::kSigreturn, sizeof arch::kSigreturn) == 0;
}

MSCOPE_SLOW Rule find_rule(uintptr_t key, Epoch now) {
  CfiSource source;
  if (!find_cfi(lookup_pc(key), &source, now)) {
    count(counts.no_module);
    return Rule(Rule::kUnknown);
  }
  Rule rule = rule_from(source.header, source.frames, key);
  if (rule.kind() != Rule::kStop) return rule;
  if (source.module && !(key & kInterrupted) && is_sigreturn(key)) return Rule(Rule::kSignal);
  // The loader's first code has no CFI: the process begins there, as constructors see it.
  if (source.module && source.module->bias == _r_debug.r_ldbase) return Rule(Rule::kEnd);
  count(counts.no_cfi);
  return rule;
}

MSCOPE_SLOW Rule find_rule_cached(uintptr_t key, Epoch now) {
  if (now.unloading()) return find_rule(key, now);
  Rule rule = rule_cache.find(key, now.generation());
  if (rule.kind() != Rule::kNone) return rule;
  rule = find_rule(key, now);
  Arena* arena = memory.load(std::memory_order_relaxed);
  // If an unload has begun since, we may have read a module that is going away.
  if (rule.kind() != Rule::kUnknown && arena && epoch() == now)
    rule_cache.insert(key, rule, now.generation(), *arena);
  return rule;
}

}  // namespace malloscope::unwind
