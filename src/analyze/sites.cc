// SPDX-License-Identifier: Apache-2.0
#include "analyze/sites.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace malloscope::analyze {

uint64_t value(const Amounts& amounts, Metric metric) {
  switch (metric) {
    case Metric::kAllocations:
      return amounts.allocations;
    case Metric::kAllocated:
      return amounts.allocated_bytes;
    case Metric::kLive:
      return amounts.live_bytes;
    case Metric::kPeak:
      return amounts.peak_bytes;
    case Metric::kTemporary:
      return amounts.temporary;
    case Metric::kCalls:
      return amounts.allocations + amounts.reallocations;
    case Metric::kLifetime:
      return amounts.lifetime_ns;
    case Metric::kOverhead:
      return amounts.overhead_bytes;
    case Metric::kAllocatorTime:
      return amounts.allocator_ns;
    case Metric::kCpu:
      return amounts.cpu_ns;
  }
  return 0;
}

static auto weight(const Amounts& a) {
  return std::tuple(a.peak_bytes, a.allocated_bytes, a.allocations + a.reallocations);
}

// An order that does not depend on addresses or on the order of events.
static auto name(const Frame& f) { return std::tie(f.function, f.file, f.line, f.module); }

std::vector<Site> sites(const Accounts& accounts, FrameTable* frames) {
  std::vector<Site> found;
  std::vector<Amounts> heaviest_stack;  // Beside `found`.
  std::unordered_map<FrameId, size_t> index;
  accounts.for_each_stack([&](ImageId image, StackId stack, const Amounts& amounts) {
    FrameId frame = frames->site(image, stack);
    auto [place, fresh] = index.try_emplace(frame, found.size());
    if (fresh) {
      found.emplace_back().frame = frame;
      heaviest_stack.emplace_back();
    }
    Site& site = found[place->second];
    Amounts& heaviest = heaviest_stack[place->second];
    if (fresh || weight(amounts) > weight(heaviest)) {
      heaviest = amounts;
      site.image = image;
      site.stack = stack;
    }
    site.amounts += amounts;
    ++site.stacks;
  });
  std::sort(found.begin(), found.end(), [&](const Site& a, const Site& b) {
    if (weight(a.amounts) != weight(b.amounts)) return weight(a.amounts) > weight(b.amounts);
    return name(frames->frame(a.frame)) < name(frames->frame(b.frame));
  });
  return found;
}

std::vector<const Site*> heaviest(const std::vector<Site>& sites, const FrameTable& frames,
                                  Metric metric, size_t most) {
  std::vector<const Site*> order;
  for (const Site& site : sites)
    if (value(site.amounts, metric) > 0) order.push_back(&site);
  size_t kept = std::min(most, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(kept), order.end(),
                    [&](const Site* a, const Site* b) {
                      uint64_t x = value(a->amounts, metric), y = value(b->amounts, metric);
                      if (x != y) return x > y;
                      return name(frames.frame(a->frame)) < name(frames.frame(b->frame));
                    });
  order.resize(kept);
  return order;
}

}  // namespace malloscope::analyze
