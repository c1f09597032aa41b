// SPDX-License-Identifier: Apache-2.0
// Functions of a file that its symbol tables do not list.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "symbols/elf_file.h"

namespace malloscope::symbols {

struct HiddenSymbol {
  uint64_t start;
  uint64_t end;
  std::string name;
  unsigned binding;  // As in ELF: STB_GLOBAL ...
};

// The stubs through which a file calls other libraries, each named after the
// function that it calls.
std::vector<HiddenSymbol> plt_stubs(const ElfFile& file);

// The functions listed in .gnu_debugdata.
std::vector<HiddenSymbol> mini_debug_symbols(const ElfFile& file);

}  // namespace malloscope::symbols
