// SPDX-License-Identifier: Apache-2.0
// The heap with a row for every stack: what the page and most reports are made from.

#pragma once

#include "analyze/heap.h"
#include "analyze/tally.h"

namespace malloscope::analyze {

class Accounts : public Heap {
 public:
  explicit Accounts(Selection selection = {}, Window window = {}, TallyOptions options = {})
      : Heap(selection, window), tally_(this, options) {}

  const Tally& tally() const { return tally_; }
  Tally* tally_to_restore() { return &tally_; }

  // Calls visit(ImageId, StackId, const Amounts&) for every row.
  template <typename Visit>
  void for_each_stack(Visit&& visit) const {
    tally_.for_each_row([&](const Row& row) { visit(row.image, row.stack, row.amounts); });
  }

 private:
  Tally tally_;
};

}  // namespace malloscope::analyze
