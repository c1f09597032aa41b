// SPDX-License-Identifier: Apache-2.0
// Places may overlap, since a library may be loaded where a smaller one was. The places that hold
// an address are among those that start at or before it; going backwards through them, we are done
// when no place further back reaches up to the address.

#include "trace/module_finder.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace malloscope::trace {

ModuleFinder::ModuleFinder(std::span<const Module> modules) {
  for (const Module& module : modules)
    if (module.start < module.end) modules_.push_back(&module);
  // Of two modules of one generation the one told later wins, so their order is kept.
  std::ranges::stable_sort(modules_, {}, [](const Module* module) {
    return std::tuple(module->start, module->end, module->generation);
  });
  uint64_t highest_end = 0;
  for (auto first = modules_.begin(); first != modules_.end();) {
    auto last = std::find_if(first, modules_.end(), [&](const Module* module) {
      return module->start != (*first)->start || module->end != (*first)->end;
    });
    highest_end = std::max(highest_end, (*first)->end);
    places_.push_back({(*first)->start, (*first)->end, highest_end, std::span(first, last)});
    first = last;
  }
}

const Module* ModuleFinder::find(uint64_t address, uint32_t generation) const {
  const Module* found = nullptr;
  auto newer = [&](const Module* candidate) {
    if (!found || candidate->generation != found->generation)
      return !found || candidate->generation > found->generation;
    return candidate > found;  // They are in one array, in the order in which they were told.
  };
  auto place = std::ranges::upper_bound(places_, address, {}, &Place::start);
  while (place != places_.begin() && (--place)->highest_end > address) {
    if (place->end <= address) continue;
    auto later = std::ranges::upper_bound(place->modules, generation, {}, &Module::generation);
    if (later == place->modules.begin()) continue;
    const Module* candidate = *std::prev(later);
    if (newer(candidate)) found = candidate;
  }
  return found;
}

}  // namespace malloscope::trace
