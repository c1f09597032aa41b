// SPDX-License-Identifier: Apache-2.0
// The functions that a file's symbol tables name.

#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "symbols/elf_file.h"
#include "symbols/interval_index.h"

namespace malloscope::symbols {

class SymbolTable {
 public:
  SymbolTable() = default;

  // The symbols of all `files`, which describe the same code (a library and its
  // debug file) and must outlive the table: names stay where they are.
  explicit SymbolTable(const std::vector<const ElfFile*>& files);

  struct Symbol {
    uint64_t start;
    uint64_t end;
    std::string_view name;  // As in the file.
    bool stub = false;      // Not the function itself but the stub that calls it ("name@plt").
  };

  // The function whose bytes hold the address; nullptr if there is none, also
  // where an unsized symbol stands just before.
  const Symbol* find(uint64_t address) const {
    uint32_t found = index_.find(address);
    return found == IntervalIndex::kNone ? nullptr : &symbols_[found];
  }

  bool empty() const { return symbols_.empty(); }
  // Whether there was a .symtab with functions, which names more than the exported ones.
  bool complete() const { return complete_; }

 private:
  std::vector<Symbol> symbols_;
  std::deque<std::string> hidden_names_;  // Those that are in no file as they are.
  IntervalIndex index_;
  bool complete_ = false;
};

}  // namespace malloscope::symbols
