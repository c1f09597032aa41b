// SPDX-License-Identifier: Apache-2.0
// One piece of code often has several names: strdup is __strdup, malloc is
// __libc_malloc, a constructor is two symbols. We show the name people write:
//
//   1. exported (global or weak) before local,
//   2. fewer leading underscores first: glibc's global is __strdup and the weak
//      alias is what programs call, so this comes before
//   3. global before weak,
//   4. the shorter, then the alphabetically first, so that the choice does not
//      depend on the order of the table.
//
// A symbol names exactly the bytes it claims. Symbols without a size, as
// hand-written assembly has them, name nothing: the alternative, extending them
// to the next symbol, gives the wrong name to every stripped function that follows.

#include "symbols/symbol_table.h"

#include <algorithm>
#include <tuple>

#include "symbols/hidden_symbols.h"

namespace malloscope::symbols {

namespace {

struct Candidate {
  SymbolTable::Symbol symbol;
  unsigned binding;
};

// Lower is better.
auto rank(const Candidate& c) {
  std::string_view name = c.symbol.name;
  // A mangled name's underscore is not one that anybody wrote.
  size_t underscores = name.starts_with("_Z") ? 0 : name.find_first_not_of('_');
  return std::tuple(c.binding == STB_LOCAL, underscores, c.binding != STB_GLOBAL, name.size(),
                    name);
}

// Outermost first, and of aliases the best last: what IntervalIndex prefers.
bool before(const Candidate& a, const Candidate& b) {
  if (a.symbol.start != b.symbol.start) return a.symbol.start < b.symbol.start;
  if (a.symbol.end != b.symbol.end) return a.symbol.end > b.symbol.end;
  return rank(a) > rank(b);
}

}  // namespace

SymbolTable::SymbolTable(const std::vector<const ElfFile*>& files) {
  std::vector<Candidate> candidates;
  for (const ElfFile* file : files) {
    std::vector<ElfFile::Range> code = file->code_ranges();
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(file->elf(), section));) {
      GElf_Shdr header;
      if (!gelf_getshdr(section, &header)) continue;
      if (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) continue;
      Elf_Data* data = elf_getdata(section, nullptr);
      if (!data || header.sh_entsize == 0) continue;
      size_t count = data->d_size / header.sh_entsize;
      for (size_t i = 0; i < count; ++i) {
        GElf_Sym s;
        if (!gelf_getsym(data, static_cast<int>(i), &s)) break;
        unsigned type = GELF_ST_TYPE(s.st_info);
        bool function = type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
        if (!function || s.st_shndx == SHN_UNDEF || s.st_size == 0) continue;
        if (s.st_value + s.st_size < s.st_value || !contains(code, s.st_value)) continue;
        const char* name = elf_strptr(file->elf(), header.sh_link, s.st_name);
        if (!name || !*name) continue;
        candidates.push_back({{s.st_value, s.st_value + s.st_size, name},
                              static_cast<unsigned>(GELF_ST_BIND(s.st_info))});
        if (header.sh_type == SHT_SYMTAB) complete_ = true;
      }
    }
    auto add_hidden = [&](const HiddenSymbol& hidden, bool stub) {
      if (hidden.start >= hidden.end || !contains(code, hidden.start)) return;
      hidden_names_.push_back(hidden.name);
      candidates.push_back(
          {{hidden.start, hidden.end, hidden_names_.back(), stub}, hidden.binding});
    };
    for (const HiddenSymbol& stub : plt_stubs(*file)) add_hidden(stub, true);
    if (!complete_) {
      for (const HiddenSymbol& symbol : mini_debug_symbols(*file)) {
        add_hidden(symbol, false);
        if (symbol.binding == STB_LOCAL) complete_ = true;
      }
    }
  }
  std::ranges::sort(candidates, before);

  std::vector<IntervalIndex::Interval> intervals;
  for (const Candidate& c : candidates) {
    // Of aliases only the last, the best, is kept.
    if (!symbols_.empty() && symbols_.back().start == c.symbol.start &&
        symbols_.back().end == c.symbol.end) {
      symbols_.back() = c.symbol;
      continue;
    }
    intervals.push_back({c.symbol.start, c.symbol.end, static_cast<uint32_t>(symbols_.size())});
    symbols_.push_back(c.symbol);
  }
  index_ = IntervalIndex(std::move(intervals));
}

}  // namespace malloscope::symbols
