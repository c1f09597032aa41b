// SPDX-License-Identifier: Apache-2.0
// dlsym would be the usual way to find the next definition, but it allocates
// (its error message), takes the loader's lock, and is itself replaced by some
// preloads: each of these has hung or crashed a profiler. So we walk the loader's
// list of modules and look into their symbol tables ourselves. That needs no
// lock, no heap and no libc, and works before any constructor has run.
//
// The list is in load order, which is the order in which the loader searches
// too, and everything after us in it is what RTLD_NEXT would search, and more:
// modules opened later with RTLD_LOCAL are there as well.

#include "record/real.h"

#include <elf.h>
#include <link.h>

#include <atomic>
#include <cstdint>

#include "base/attributes.h"

namespace malloscope::record {
namespace {

// The dynamic symbol table of one loaded module.
struct Symbols {
  const ElfW(Sym) * table = nullptr;
  const char* names = nullptr;
  const uint32_t* gnu_hash = nullptr;
  const uint16_t* versions = nullptr;
  uintptr_t bias = 0;

  explicit Symbols(const link_map* module) : bias(module->l_addr) {
    if (!module->l_ld) return;
    for (const ElfW(Dyn)* d = module->l_ld; d->d_tag != DT_NULL; ++d) {
      // The loader has relocated these in place, except in read-only modules such as the vdso.
      uintptr_t address = d->d_un.d_ptr < bias ? d->d_un.d_ptr + bias : d->d_un.d_ptr;
      if (d->d_tag == DT_SYMTAB) table = reinterpret_cast<const ElfW(Sym)*>(address);
      if (d->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(address);
      if (d->d_tag == DT_GNU_HASH) gnu_hash = reinterpret_cast<const uint32_t*>(address);
      if (d->d_tag == DT_VERSYM) versions = reinterpret_cast<const uint16_t*>(address);
    }
  }

  static uint32_t hash_of(const char* name) {
    uint32_t hash = 5381;
    for (; *name; ++name) hash = hash * 33 + static_cast<uint8_t>(*name);
    return hash;
  }

  static bool same(const char* a, const char* b) {
    while (*a && *a == *b) ++a, ++b;
    return *a == *b;
  }

  void* find(const char* name, uint32_t hash) const {
    if (!table || !names || !gnu_hash || gnu_hash[0] == 0) return nullptr;
    uint32_t buckets = gnu_hash[0], first = gnu_hash[1], bloom_words = gnu_hash[2];
    const uint64_t* bloom = reinterpret_cast<const uint64_t*>(gnu_hash + 4);
    const uint32_t* bucket = reinterpret_cast<const uint32_t*>(bloom + bloom_words);
    const uint32_t* chain = bucket + buckets;
    uint32_t index = bucket[hash % buckets];
    if (index < first) return nullptr;
    const ElfW(Sym)* old_version = nullptr;
    for (;; ++index) {
      uint32_t candidate = chain[index - first];
      const ElfW(Sym)& symbol = table[index];
      if ((candidate | 1) == (hash | 1) && symbol.st_shndx != SHN_UNDEF &&
          same(names + symbol.st_name, name)) {
        bool hidden = versions && (versions[index] & 0x8000);
        if (!hidden) return address_of(symbol);
        old_version = &symbol;  // Kept for binaries linked long ago; a default one goes first.
      }
      if (candidate & 1) break;
    }
    return old_version ? address_of(*old_version) : nullptr;
  }

  void* address_of(const ElfW(Sym) & symbol) const {
    uintptr_t address = bias + symbol.st_value;
    if (ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC)
      return reinterpret_cast<void* (*)()>(address)();
    return reinterpret_cast<void*>(address);
  }
};

const link_map* own_module() {
  for (const link_map* m = _r_debug.r_map; m; m = m->l_next)
    if (m->l_ld == _DYNAMIC) return m;
  return nullptr;
}

template <typename Function>
void find(Function& entry, const char* name) {
  if (void* found = next_definition(name)) entry = reinterpret_cast<Function>(found);
}

// What the entries hold until resolve() has run.
template <auto Member>
struct Stub;
template <typename Result, typename... Args, Result (*Real::*Member)(Args...)>
struct Stub<Member> {
  static Result call(Args... args) {
    resolve();
    return (real.*Member)(args...);
  }
};

void free_sized_by_free(void* block, size_t) { real.free(block); }
void free_aligned_sized_by_free(void* block, size_t, size_t) { real.free(block); }

constexpr const char* kOperatorNames[] = {
    "_Znwm",
    "_Znam",
    "_ZnwmRKSt9nothrow_t",
    "_ZnamRKSt9nothrow_t",
    "_ZnwmSt11align_val_t",
    "_ZnamSt11align_val_t",
    "_ZnwmSt11align_val_tRKSt9nothrow_t",
    "_ZnamSt11align_val_tRKSt9nothrow_t",
    "_ZdlPv",
    "_ZdaPv",
    "_ZdlPvm",
    "_ZdaPvm",
    "_ZdlPvRKSt9nothrow_t",
    "_ZdaPvRKSt9nothrow_t",
    "_ZdlPvSt11align_val_t",
    "_ZdaPvSt11align_val_t",
    "_ZdlPvmSt11align_val_t",
    "_ZdaPvmSt11align_val_t",
    "_ZdlPvSt11align_val_tRKSt9nothrow_t",
    "_ZdaPvSt11align_val_tRKSt9nothrow_t",
};
constinit std::atomic<void*> operators[static_cast<int>(Operator::kCount)] = {};

}  // namespace

constinit Real real = {
    .malloc = Stub<&Real::malloc>::call,
    .calloc = Stub<&Real::calloc>::call,
    .realloc = Stub<&Real::realloc>::call,
    .reallocarray = Stub<&Real::reallocarray>::call,
    .free = Stub<&Real::free>::call,
    .cfree = Stub<&Real::cfree>::call,
    .free_sized = Stub<&Real::free_sized>::call,
    .free_aligned_sized = Stub<&Real::free_aligned_sized>::call,
    .memalign = Stub<&Real::memalign>::call,
    .aligned_alloc = Stub<&Real::aligned_alloc>::call,
    .posix_memalign = Stub<&Real::posix_memalign>::call,
    .valloc = Stub<&Real::valloc>::call,
    .pvalloc = Stub<&Real::pvalloc>::call,
    .malloc_usable_size = Stub<&Real::malloc_usable_size>::call,
    .mmap = Stub<&Real::mmap>::call,
    .munmap = Stub<&Real::munmap>::call,
    .mremap = Stub<&Real::mremap>::call,
    .mprotect = Stub<&Real::mprotect>::call,
    .brk = Stub<&Real::brk>::call,
    .sbrk = Stub<&Real::sbrk>::call,
    .dlclose = Stub<&Real::dlclose>::call,
    .fork = Stub<&Real::fork>::call,
    .execve = Stub<&Real::execve>::call,
    .execvpe = Stub<&Real::execvpe>::call,
    .fexecve = Stub<&Real::fexecve>::call,
    .execveat = Stub<&Real::execveat>::call,
    .posix_spawn = Stub<&Real::posix_spawn>::call,
    .posix_spawnp = Stub<&Real::posix_spawnp>::call,
    .prctl = Stub<&Real::prctl>::call,
    .pthread_setname_np = Stub<&Real::pthread_setname_np>::call,
    .pthread_create = Stub<&Real::pthread_create>::call,
    .sigaction = Stub<&Real::sigaction>::call,
    .signal = Stub<&Real::signal>::call,
    .__sysv_signal = Stub<&Real::__sysv_signal>::call,
    .sigset = Stub<&Real::sigset>::call,
    .sigprocmask = Stub<&Real::sigprocmask>::call,
    .pthread_sigmask = Stub<&Real::pthread_sigmask>::call,
};

void* next_definition(const char* name) {
  const link_map* own = own_module();
  uint32_t hash = Symbols::hash_of(name);
  for (const link_map* m = own ? own->l_next : nullptr; m; m = m->l_next)
    if (void* found = Symbols(m).find(name, hash)) return found;
  return nullptr;
}

void resolve() {
  // Two threads may do this at once; both write the same values.
  real.free_sized = free_sized_by_free;
  real.free_aligned_sized = free_aligned_sized_by_free;
#define FIND(name) find(real.name, #name)
  FIND(malloc);
  FIND(calloc);
  FIND(realloc);
  FIND(reallocarray);
  FIND(free);
  real.cfree = real.free;
  FIND(cfree);
  FIND(free_sized);
  FIND(free_aligned_sized);
  FIND(memalign);
  FIND(aligned_alloc);
  FIND(posix_memalign);
  FIND(valloc);
  FIND(pvalloc);
  FIND(malloc_usable_size);
  FIND(mmap);
  FIND(munmap);
  FIND(mremap);
  FIND(mprotect);
  FIND(brk);
  FIND(sbrk);
  FIND(dlclose);
  FIND(fork);
  FIND(execve);
  FIND(execvpe);
  FIND(fexecve);
  FIND(execveat);
  FIND(posix_spawn);
  FIND(posix_spawnp);
  FIND(prctl);
  FIND(pthread_setname_np);
#ifdef MSCOPE_DETAILED
  FIND(pthread_create);
  FIND(sigaction);
  FIND(signal);
  FIND(__sysv_signal);
  FIND(sigset);
  FIND(sigprocmask);
  FIND(pthread_sigmask);
#endif
#undef FIND
  resolve_syscall();
}

void* real_operator(Operator which) {
  std::atomic<void*>& entry = operators[static_cast<int>(which)];
  void* found = entry.load(std::memory_order_relaxed);
  if (!found) [[unlikely]] {
    found = next_definition(kOperatorNames[static_cast<int>(which)]);
    entry.store(found, std::memory_order_relaxed);
  }
  return found;
}

void forget_operators() {
  for (auto& entry : operators) entry.store(nullptr, std::memory_order_relaxed);
}

const char* own_path() {
  const link_map* own = own_module();
  return own && own->l_name ? own->l_name : "";
}

}  // namespace malloscope::record
