// SPDX-License-Identifier: Apache-2.0
// The stacks of a recording for a file that is read without a server: the heaviest of them as rows
// of a tree, what is lighter folded where it would be, and what became of the rows slice by slice.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "serve/answers.h"

namespace malloscope::serve {

class FileRows {
 public:
  // The `most` heaviest stacks, by whatever amount they are heaviest; all if there are not more.
  FileRows(const Context& context, size_t most);

  size_t rows() const { return rows_.size(); }
  size_t stacks_kept() const { return kept_; }
  size_t sites() const;  // That have blocks.
  size_t stacks_folded() const { return folded_; }

  // As columns (docs/viewer_api.md, "The self-contained file").
  std::string tree() const;
  // So many slices of the time. Nothing: there are more entries than that, or nobody knows.
  std::optional<std::string> slices(uint32_t count, size_t most_entries) const;

 private:
  struct FileRow {
    uint32_t node = 0;  // Of the file's tree.
    uint32_t site = analyze::Explorer::kNobody;
    uint32_t image = 0;
  };
  void keep(size_t most);

  const Context& context_;
  analyze::Explorer::Question question_;
  analyze::Explorer::Amounting amounts_, cpu_;  // The latter may be null.
  analyze::Explorer::Treeing tree_;
  analyze::Explorer::Grouping sites_;
  size_t kept_ = 0, folded_ = 0;
  std::vector<FileRow> rows_;
  std::vector<uint32_t> file_row_of_row_;
  std::vector<uint32_t> parent_, symbol_;  // Of the file's nodes; symbols are those of tree_.
  std::vector<uint8_t> kind_;
};

// The heaviest sites at the peak.
std::vector<uint32_t> heaviest_sites(const Context& context, size_t most);

}  // namespace malloscope::serve
