// SPDX-License-Identifier: Apache-2.0

#include "trace/module_finder.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace malloscope::trace {
namespace {

// What the finder promises, word by word.
const Module* found_by_looking_at_all(const std::vector<Module>& modules, uint64_t address,
                                      uint32_t generation) {
  const Module* found = nullptr;
  for (const Module& module : modules)
    if (address >= module.start && address < module.end && module.generation <= generation &&
        (!found || module.generation >= found->generation))
      found = &module;
  return found;
}

TEST(ModuleFinder, FindsWhatLookingAtAllFinds) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Module> modules(random() % 40);
    for (Module& module : modules) {
      module.start = random() % 30;
      module.end = random() % 40;  // Maybe empty or the wrong way round, as a file may say.
      module.generation = static_cast<uint32_t>(random() % 6);
    }
    ModuleFinder finder(modules);
    for (uint64_t address = 0; address < 42; ++address)
      for (uint32_t generation = 0; generation < 7; ++generation)
        ASSERT_EQ(finder.find(address, generation),
                  found_by_looking_at_all(modules, address, generation))
            << "round " << round << " address " << address << " generation " << generation;
  }
}

}  // namespace
}  // namespace malloscope::trace
