// SPDX-License-Identifier: Apache-2.0
// A call to another library goes through a stub in the procedure linkage table:
//
//     malloc@plt:  jmp *0x2fca(%rip)      # ff 25 <offset of the slot from the next instruction>
//
// No symbol names the stub, but the slot it jumps through has a relocation, and
// that names the function. Linkers arrange stubs in several ways (.plt, .plt.sec
// with branch tracking, .plt.got); the jump is common to all.
//
// Fedora and its kin leave in stripped files a small ELF file, compressed in the
// section .gnu_debugdata, with the symbols of the functions that are not exported.
// libdwfl knows how to read it. It would also look for debug files, and might ask
// servers for them; the callbacks below leave it no way to.

#include "symbols/hidden_symbols.h"

#include <elfutils/libdwfl.h>

#include <cstring>
#include <memory>
#include <unordered_map>

namespace malloscope::symbols {

// The names of the functions whose addresses the dynamic linker puts into slots, by slot.
static std::unordered_map<uint64_t, const char*> slots(const ElfFile& file) {
  std::unordered_map<uint64_t, const char*> names;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(file.elf(), section));) {
    GElf_Shdr header, symbols_header;
    if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA || header.sh_entsize == 0)
      continue;
    Elf_Scn* symbols = elf_getscn(file.elf(), header.sh_link);
    if (!symbols || !gelf_getshdr(symbols, &symbols_header) || symbols_header.sh_type != SHT_DYNSYM)
      continue;
    Elf_Data* relocations = elf_getdata(section, nullptr);
    Elf_Data* symbol_data = elf_getdata(symbols, nullptr);
    if (!relocations || !symbol_data) continue;
    size_t count = relocations->d_size / header.sh_entsize;
    for (size_t i = 0; i < count; ++i) {
      GElf_Rela relocation;
      GElf_Sym symbol;
      if (!gelf_getrela(relocations, static_cast<int>(i), &relocation)) break;
      uint64_t type = GELF_R_TYPE(relocation.r_info);
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
      int index = static_cast<int>(GELF_R_SYM(relocation.r_info));
      if (!gelf_getsym(symbol_data, index, &symbol)) continue;
      const char* name = elf_strptr(file.elf(), symbols_header.sh_link, symbol.st_name);
      if (name && *name) names.emplace(relocation.r_offset, name);
    }
  }
  return names;
}

std::vector<HiddenSymbol> plt_stubs(const ElfFile& file) {
  std::vector<HiddenSymbol> stubs;
  GElf_Ehdr elf_header;
  if (!gelf_getehdr(file.elf(), &elf_header) || elf_header.e_machine != EM_X86_64) return stubs;
  auto names = slots(file);
  for (const char* table : {".plt", ".plt.sec", ".plt.got"}) {
    Elf_Scn* section = file.section(table);
    GElf_Shdr header;
    Elf_Data* data = nullptr;
    if (!section || !gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS) continue;
    if (!(data = elf_getdata(section, nullptr)) || !data->d_buf) continue;
    const uint8_t* bytes = static_cast<const uint8_t*>(data->d_buf);
    size_t entry = header.sh_entsize == 8 ? 8 : 16;
    for (size_t at = 0; at + entry <= data->d_size; at += entry) {
      for (size_t jump = at; jump + 6 <= at + entry; ++jump) {
        if (bytes[jump] != 0xff || bytes[jump + 1] != 0x25) continue;
        int32_t distance;
        memcpy(&distance, bytes + jump + 2, sizeof distance);
        uint64_t next = header.sh_addr + jump + 6;
        auto name = names.find(next + static_cast<uint64_t>(int64_t{distance}));
        if (name != names.end())
          stubs.push_back(
              {header.sh_addr + at, header.sh_addr + at + entry, name->second, STB_LOCAL});
        break;
      }
    }
  }
  return stubs;
}

std::vector<HiddenSymbol> mini_debug_symbols(const ElfFile& file) {
  std::vector<HiddenSymbol> symbols;
  if (!file.has_section(".gnu_debugdata")) return symbols;
  Dwfl_Callbacks callbacks{};
  callbacks.find_elf = [](Dwfl_Module*, void**, const char*, Dwarf_Addr, char**, Elf**) {
    return -1;
  };
  callbacks.find_debuginfo = [](Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*,
                                const char*, GElf_Word, char**) { return -1; };
  std::unique_ptr<Dwfl, decltype(&dwfl_end)> session(dwfl_begin(&callbacks), &dwfl_end);
  if (!session) return symbols;
  // At address 0, so that addresses are those of the file.
  Dwfl_Module* module = dwfl_report_elf(session.get(), "module", file.path().c_str(), -1, 0, true);
  dwfl_report_end(session.get(), nullptr, nullptr);
  int count = module ? dwfl_module_getsymtab(module) : 0;
  for (int i = 1; i < count; ++i) {
    GElf_Sym symbol;
    GElf_Addr address;
    const char* name =
        dwfl_module_getsym_info(module, i, &symbol, &address, nullptr, nullptr, nullptr);
    if (!name || !*name || GELF_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_size == 0 ||
        symbol.st_shndx == SHN_UNDEF)
      continue;
    symbols.push_back({address, address + symbol.st_size, name,
                       static_cast<unsigned>(GELF_ST_BIND(symbol.st_info))});
  }
  return symbols;
}

}  // namespace malloscope::symbols
