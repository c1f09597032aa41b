// SPDX-License-Identifier: Apache-2.0
// Two recordings in memory, so that one question can be asked of both: what changed since then.

#pragma once

#include <memory>

#include "analyze/counterparts.h"
#include "analyze/explorer.h"
#include "analyze/flame.h"

namespace malloscope::analyze {

class Comparison {
 public:
  Comparison(Explorer* before, Explorer* after)
      : before_(*before), after_(*after), names_(before->reading(), after->reading()) {}

  Explorer& before() { return before_; }
  const Counterparts& names() const { return names_; }

  // The functions of both, with the question's rules for frames.
  struct Tree {
    Tree(Explorer::Treeing old_tree, Explorer::Treeing new_tree, const Counterparts& names)
        : before(std::move(old_tree)),
          after(std::move(new_tree)),
          tree(*before->tree, *after->tree, names),
          children(tree) {}
    Explorer::Treeing before, after;
    MergedTree tree;
    NodeChildren children;
  };
  using Treeing = std::shared_ptr<const Tree>;
  Treeing tree(const Explorer::Question& question);

  // What there was and is at the nodes of that tree.
  NodeValues values_before(const Tree& tree, const Explorer::Amounted& amounts,
                           Metric metric) const;
  NodeValues values_after(const Tree& tree, const Explorer::Amounted& amounts, Metric metric) const;

 private:
  Explorer &before_, &after_;
  Counterparts names_;
  Treeing latest_;
};

}  // namespace malloscope::analyze
