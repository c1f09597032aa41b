// SPDX-License-Identifier: Apache-2.0
// What the debug information knows about an address: the function, the functions
// inlined into it there, and the source lines.

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "symbols/elf_file.h"
#include "symbols/symbol_frame.h"
#include "symbols/symbol_table.h"

namespace malloscope::symbols {

class DwarfIndex {
 public:
  // `file` has the debug information, `code` tells where the module's code is. Both
  // `file` and `symbols` must outlive the index. nullptr if there is no information.
  static std::unique_ptr<DwarfIndex> open(const ElfFile& file, std::vector<ElfFile::Range> code,
                                          const SymbolTable& symbols);
  ~DwarfIndex();

  // Innermost first; none if nothing is known. Functions may be empty here.
  std::vector<SymbolFrame> frames(uint64_t address);

 private:
  struct State;
  explicit DwarfIndex(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace malloscope::symbols
