// SPDX-License-Identifier: Apache-2.0
// The names of functions as the debug information tells them.

#pragma once

#include <elfutils/libdw.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "symbols/symbol_table.h"

namespace malloscope::symbols {

class DieNames {
 public:
  // `symbols` must outlive this.
  explicit DieNames(const SymbolTable& symbols) : symbols_(symbols) {}

  // The name of a function or an inlined call of one, in the form display_name()
  // gives to symbols. Empty if it has none.
  const std::string& function_name(Dwarf_Die die);

  // A name put together from the entries alone, for functions without a linkage name.
  std::string built_name(Dwarf_Die definition);

  // Says that the code of the function `die` begins at `address`, which may help to
  // name other copies of it.
  void note_code(Dwarf_Die die, uint64_t address);

 private:
  std::string name_of(Dwarf_Die die);
  std::string symbol_of(Dwarf_Die definition, const std::string& name) const;
  std::string scope_of(Dwarf_Die die, int depth);
  std::string own_name(Dwarf_Die die, int depth);
  std::string unnamed_type(Dwarf_Die die, int depth);
  std::string template_arguments(Dwarf_Die die, int depth);
  std::string template_value(Dwarf_Die die, int depth);
  std::string parameters_of(Dwarf_Die definition, Dwarf_Die declaration, int depth);
  std::string type_name(Dwarf_Die type, int depth);
  std::string type_of(Dwarf_Die die, int depth);
  bool parent_of(Dwarf_Die die, Dwarf_Die* parent);

  struct Child {
    void* die;
    void* parent;
  };
  using Parents = std::vector<Child>;  // In order of die.

  const SymbolTable& symbols_;
  int open_ = 0;    // Names being made, one inside another.
  int budget_ = 0;  // How many types may still be spelled out for this name.
  std::unordered_map<const void*, std::string> names_;
  std::unordered_map<const void*, uint64_t> code_;    // By abstract entry.
  std::unordered_map<const void*, Parents> parents_;  // By unit.
};

}  // namespace malloscope::symbols
