// SPDX-License-Identifier: Apache-2.0
// A function that returns a constant string is an address and a return, whatever
// compiled it. We know these few forms of x86-64 and no others: anything longer
// might compute, and what it computes cannot be told by looking.
//
//     [endbr64] [push rbp; mov rbp, rsp]  lea rax, [rip + x] | mov eax, x  [pop rbp] ret

#include "symbols/returned_string.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "symbols/elf_file.h"

namespace malloscope::symbols {
namespace {

using Bytes = std::span<const uint8_t>;

// The bytes from `address` to the end of what the file has of its segment.
Bytes bytes_at(const ElfFile& file, uint64_t address) {
  size_t size = 0, segments = 0;
  const char* image = elf_rawfile(file.elf(), &size);
  if (!image || elf_getphdrnum(file.elf(), &segments) != 0) return {};
  for (size_t i = 0; i < segments; ++i) {
    GElf_Phdr segment;
    if (!gelf_getphdr(file.elf(), static_cast<int>(i), &segment)) continue;
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
    uint64_t inside = address - segment.p_vaddr;
    if (inside >= segment.p_filesz || segment.p_offset >= size || inside >= size - segment.p_offset)
      continue;
    uint64_t length =
        std::min<uint64_t>(segment.p_filesz - inside, size - segment.p_offset - inside);
    return {reinterpret_cast<const uint8_t*>(image) + segment.p_offset + inside, length};
  }
  return {};
}

std::optional<uint64_t> address_of(const ElfFile& file, const std::string& function) {
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(file.elf(), section));) {
    GElf_Shdr header;
    if (!gelf_getshdr(section, &header) || header.sh_entsize == 0) continue;
    if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) continue;
    Elf_Data* data = elf_getdata(section, nullptr);
    if (!data) continue;
    for (int i = 0; i < static_cast<int>(data->d_size / header.sh_entsize); ++i) {
      GElf_Sym symbol;
      if (!gelf_getsym(data, i, &symbol)) break;
      if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF) continue;
      const char* name = elf_strptr(file.elf(), header.sh_link, symbol.st_name);
      if (name && function == name) return symbol.st_value;
    }
  }
  return std::nullopt;
}

class Code {
 public:
  Code(Bytes bytes, uint64_t address) : bytes_(bytes), address_(address) {}

  bool take(std::initializer_list<uint8_t> wanted) {
    if (bytes_.size() < wanted.size() || !std::equal(wanted.begin(), wanted.end(), bytes_.begin()))
      return false;
    skip(wanted.size());
    return true;
  }
  std::optional<int32_t> number() {
    int32_t value = 0;
    if (bytes_.size() < sizeof(value)) return std::nullopt;
    memcpy(&value, bytes_.data(), sizeof(value));
    skip(sizeof(value));
    return value;
  }
  uint64_t address() const { return address_; }

 private:
  void skip(size_t count) {
    bytes_ = bytes_.subspan(count);
    address_ += count;
  }

  Bytes bytes_;
  uint64_t address_;
};

std::optional<uint64_t> returned_address(Code code) {
  code.take({0xf3, 0x0f, 0x1e, 0xfa});                                 // endbr64
  if (code.take({0x55}) && !code.take({0x48, 0x89, 0xe5})) return {};  // push rbp; mov rbp, rsp
  uint64_t address = 0;
  if (code.take({0x48, 0x8d, 0x05})) {  // lea rax, [rip + x]
    std::optional<int32_t> offset = code.number();
    if (!offset) return {};
    address = code.address() + static_cast<uint64_t>(int64_t{*offset});
  } else if (code.take({0xb8}) || code.take({0x48, 0xc7, 0xc0})) {  // mov eax, x
    std::optional<int32_t> value = code.number();
    if (!value || *value < 0) return {};
    address = static_cast<uint64_t>(*value);
  } else {
    return {};
  }
  code.take({0x5d});  // pop rbp
  bool returns = code.take({0xc3}) || code.take({0xf3, 0xc3}) || code.take({0xf2, 0xc3});
  return returns ? std::optional(address) : std::nullopt;
}

}  // namespace

Result<std::optional<std::string>> returned_string(const ModuleFile& module,
                                                   const std::string& function) {
  Result<ElfFile> file = ElfFile::open(module.path);
  if (!file || (!module.build_id.empty() && file->build_id() != module.build_id))
    return std::nullopt;
  std::optional<uint64_t> entry = address_of(*file, function);
  if (!entry) return std::nullopt;
  GElf_Ehdr header;
  if (gelf_getehdr(file->elf(), &header) && header.e_machine == EM_X86_64)
    if (auto address = returned_address({bytes_at(*file, *entry), *entry})) {
      Bytes text = bytes_at(*file, *address);
      auto end = std::find(text.begin(), text.end(), uint8_t{0});
      if (end != text.end()) return std::string(text.begin(), end);
    }
  return fail(
      fmt::format("{} has {}(), but what it returns is not a plain constant and was not read",
                  module.path, function));
}

}  // namespace malloscope::symbols
