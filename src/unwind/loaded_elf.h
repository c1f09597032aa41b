// SPDX-License-Identifier: Apache-2.0
// An ELF file as the loader has mapped it, read in place: its segments and its
// build-id. Heap-free, and it believes the file's headers only as far as they
// agree with what the loader says, so that no read leaves the mapping.

#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace malloscope::unwind {

class LoadedElf {
 public:
  struct Range {
    uintptr_t start = 0, end = 0;
    bool contains(uintptr_t address) const { return start <= address && address < end; }
  };

  // `mapped` is the range the loader gave the file, `bias` what it added to the
  // file's own addresses. The first page must be readable. Empty if what lies
  // there is not the start of an ELF file that was loaded so.
  LoadedElf(Range mapped, uintptr_t bias) : mapped_(mapped), bias_(bias) {
    if (mapped.end < mapped.start || mapped.end - mapped.start < kFirstPage) return;
    Elf64_Ehdr header;
    memcpy(&header, reinterpret_cast<const void*>(mapped.start), sizeof header);
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr)) return;
    if (header.e_phoff > kFirstPage || header.e_phoff % 8 != 0) return;
    if (header.e_phnum * sizeof(Elf64_Phdr) > kFirstPage - header.e_phoff) return;
    auto* table = reinterpret_cast<const Elf64_Phdr*>(mapped.start + header.e_phoff);
    for (const Elf64_Phdr* p = table; p < table + header.e_phnum; ++p) {
      if (p->p_type != PT_LOAD) continue;
      // The first segment holds the header; another file's header would lie elsewhere.
      if (bias + (p->p_vaddr & ~(kFirstPage - 1)) != mapped.start) return;
      break;
    }
    segments_ = table;
    count_ = header.e_phnum;
  }

  // The loaded segment around `address`, if it has all of `flags`; empty if there is none.
  Range segment(uintptr_t address, uint32_t flags = PF_R) const {
    for (size_t i = 0; i < count_; ++i) {
      if (segments_[i].p_type != PT_LOAD || (segments_[i].p_flags & flags) != flags) continue;
      Range range = range_of(segments_[i]);
      if (range.contains(address)) return range;
    }
    return {};
  }

  // Where the first segment of this type lies; empty if it is not in readable memory.
  Range find(uint32_t type) const {
    for (size_t i = 0; i < count_; ++i) {
      if (segments_[i].p_type != type) continue;
      Range range = range_of(segments_[i]);
      return segment(range.start).contains(range.end - 1) ? range : Range{};
    }
    return {};
  }

  // Copies the build-id to `out`; returns its size, 0 if there is none that fits.
  size_t build_id(uint8_t* out, size_t room) const {
    for (size_t i = 0; i < count_; ++i) {
      if (segments_[i].p_type != PT_NOTE) continue;
      Range range = range_of(segments_[i]);
      if (!segment(range.start).contains(range.end - 1)) continue;
      while (range.end - range.start >= sizeof(Elf64_Nhdr)) {
        Elf64_Nhdr note;
        memcpy(&note, reinterpret_cast<const void*>(range.start), sizeof note);
        range.start += sizeof note;
        size_t name = (size_t{note.n_namesz} + 3) & ~size_t{3};
        size_t description = (size_t{note.n_descsz} + 3) & ~size_t{3};
        if (name > range.end - range.start) break;
        if (description > range.end - range.start - name) break;
        auto* bytes = reinterpret_cast<const char*>(range.start);
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(bytes, "GNU", 4) == 0 &&
            note.n_descsz <= room) {
          memcpy(out, bytes + name, note.n_descsz);
          return note.n_descsz;
        }
        range.start += name + description;
      }
    }
    return 0;
  }

 private:
  static constexpr size_t kFirstPage = 4096;

  // Cut to what the loader mapped.
  Range range_of(const Elf64_Phdr& segment) const {
    uintptr_t start = bias_ + segment.p_vaddr;
    if (!mapped_.contains(start) || segment.p_memsz == 0) return {};
    size_t room = mapped_.end - start;
    return {start, start + (segment.p_memsz < room ? segment.p_memsz : room)};
  }

  Range mapped_;
  uintptr_t bias_;
  const Elf64_Phdr* segments_ = nullptr;
  size_t count_ = 0;
};

}  // namespace malloscope::unwind
