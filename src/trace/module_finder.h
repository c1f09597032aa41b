// SPDX-License-Identifier: Apache-2.0
// Which module held an address when a stack was recorded. A program that loads and unloads
// plug-ins all day has tens of thousands of modules, nearly all of them at the same few places:
// so modules are kept by place, and at a place by generation.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/tables.h"

namespace malloscope::trace {

class ModuleFinder {
 public:
  // The modules, of one image, must stay where they are.
  explicit ModuleFinder(std::span<const Module> modules);
  ModuleFinder(const ModuleFinder&) = delete;
  ModuleFinder& operator=(const ModuleFinder&) = delete;

  // The module that held `address` when a stack of that generation was recorded, or nullptr: of
  // those that were there and were met by then the newest.
  const Module* find(uint64_t address, uint32_t generation) const;

 private:
  struct Place {
    uint64_t start;
    uint64_t end;
    uint64_t highest_end;  // Of this place and those before it.
    std::span<const Module* const> modules;
  };
  std::vector<const Module*> modules_;  // By place, and there the oldest first.
  std::vector<Place> places_;           // By start.
};

}  // namespace malloscope::trace
