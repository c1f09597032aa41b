// SPDX-License-Identifier: Apache-2.0
// What an ELF file says of itself, read from its bytes: without a heap, so that
// the recorder can ask before an exec, and bounded, since the bytes are anybody's.

#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace malloscope {

class ElfFile {
 public:
  explicit ElfFile(std::span<const char> bytes) : bytes_(bytes) {
    if (!is_elf() || !is_64_bit()) return;
    auto header = at<Elf64_Ehdr>(0);
    if (header.empty()) return;
    segments_ = at<Elf64_Phdr>(header[0].e_phoff, header[0].e_phnum);
    for (const Elf64_Phdr& s : segments_)
      if (s.p_type == PT_DYNAMIC)
        dynamic_ = at<Elf64_Dyn>(s.p_offset, s.p_filesz / sizeof(Elf64_Dyn));
    strings_ = file_offset(dynamic_value(DT_STRTAB));
  }

  bool is_elf() const {
    return bytes_.size() > EI_CLASS && memcmp(bytes_.data(), ELFMAG, SELFMAG) == 0;
  }
  bool is_64_bit() const { return bytes_[EI_CLASS] == ELFCLASS64; }
  uint16_t machine() const {
    auto header = at<Elf64_Ehdr>(0);
    return header.empty() ? static_cast<uint16_t>(EM_NONE) : header[0].e_machine;
  }

  // The dynamic loader it asks for; empty if it is statically linked.
  std::string_view interpreter() const {
    for (const Elf64_Phdr& s : segments_)
      if (s.p_type == PT_INTERP) return text(s.p_offset);
    return {};
  }

  // Whether a library whose name contains `part` is linked.
  bool needs(std::string_view part) const {
    for (const Elf64_Dyn& d : dynamic_) {
      if (d.d_tag == DT_NULL) break;
      if (d.d_tag == DT_NEEDED &&
          text(strings_ + d.d_un.d_val).find(part) != std::string_view::npos)
        return true;
    }
    return false;
  }

  // Whether its dynamic symbol table defines the function `name`.
  bool defines(std::string_view name) const {
    uint64_t symbols = file_offset(dynamic_value(DT_SYMTAB));
    uint64_t hash = file_offset(dynamic_value(DT_GNU_HASH));
    auto head = at<uint32_t>(hash, 4);
    if (symbols == kNowhere || head.empty() || head[0] == 0) return false;
    uint32_t wanted = 5381;
    for (char c : name) wanted = wanted * 33 + static_cast<uint8_t>(c);
    uint64_t buckets = hash + 16 + head[2] * uint64_t{8};
    auto bucket = at<uint32_t>(buckets + wanted % head[0] * uint64_t{4});
    if (bucket.empty() || bucket[0] < head[1]) return false;
    for (uint64_t index = bucket[0];; ++index) {
      auto chain = at<uint32_t>(buckets + (head[0] + index - head[1]) * uint64_t{4});
      auto symbol = at<Elf64_Sym>(symbols + index * sizeof(Elf64_Sym));
      if (chain.empty() || symbol.empty()) return false;
      if ((chain[0] | 1) == (wanted | 1) && symbol[0].st_shndx != SHN_UNDEF &&
          text(strings_ + symbol[0].st_name) == name)
        return true;
      if (chain[0] & 1) return false;
    }
  }

 private:
  static constexpr uint64_t kNowhere = UINT64_MAX / 2;

  // `count` objects at `offset`, or none if they are not all in the file.
  template <typename T>
  std::span<const T> at(uint64_t offset, uint64_t count = 1) const {
    if (offset > bytes_.size() || offset % alignof(T) != 0 ||
        count > (bytes_.size() - offset) / sizeof(T))
      return {};
    return {reinterpret_cast<const T*>(bytes_.data() + offset), count};
  }
  std::string_view text(uint64_t offset) const {
    if (offset >= bytes_.size()) return {};
    size_t room = bytes_.size() - offset, length = 0;
    while (length < room && bytes_[offset + length] != 0) ++length;
    return {bytes_.data() + offset, length};
  }
  uint64_t dynamic_value(int64_t tag) const {
    for (const Elf64_Dyn& d : dynamic_) {
      if (d.d_tag == DT_NULL) break;
      if (d.d_tag == tag) return d.d_un.d_val;
    }
    return kNowhere;
  }
  uint64_t file_offset(uint64_t address) const {
    for (const Elf64_Phdr& s : segments_)
      if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz)
        return address - s.p_vaddr + s.p_offset;
    return kNowhere;
  }

  std::span<const char> bytes_;
  std::span<const Elf64_Phdr> segments_;
  std::span<const Elf64_Dyn> dynamic_;
  uint64_t strings_ = kNowhere;
};

// Why a program that is this file cannot be recorded; kNone if it can.
enum class Obstacle {
  kNone,
  kNotElf,
  k32Bit,
  kOtherCpu,
  kStatic,
  kMusl,
  kSanitizer,
};

inline Obstacle obstacle_in(std::span<const char> bytes) {
#if defined(__x86_64__)
  constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
  constexpr uint16_t kMachine = EM_AARCH64;
#endif
  ElfFile file(bytes);
  if (!file.is_elf()) return Obstacle::kNotElf;
  if (!file.is_64_bit()) return Obstacle::k32Bit;
  if (file.machine() != kMachine) return Obstacle::kOtherCpu;
  std::string_view loader = file.interpreter();
  if (loader.empty()) return Obstacle::kStatic;
  if (loader.find("musl") != std::string_view::npos) return Obstacle::kMusl;
  for (const char* sanitizer : {"libasan.", "libtsan.", "libmsan.", "liblsan.", "libhwasan."})
    if (file.needs(sanitizer)) return Obstacle::kSanitizer;
  // clang links its sanitizers into the program.
  for (const char* start : {"__asan_init", "__tsan_init", "__msan_init", "__lsan_init"})
    if (file.defines(start)) return Obstacle::kSanitizer;
  return Obstacle::kNone;
}

}  // namespace malloscope
