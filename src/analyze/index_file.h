// SPDX-License-Identifier: Apache-2.0
// Indexes as files: beside the trace, or, if nothing can be written there, in the user's
// cache. One that is not of this very trace, or not whole, is none.

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "analyze/index.h"
#include "analyze/index_builder.h"
#include "base/whole_file.h"
#include "trace/event_stream.h"

namespace malloscope::analyze {

// What a trace file was when it was indexed.
struct TraceStamp {
  uint64_t bytes = 0;
  uint64_t changed_ns = 0;
  uint64_t fingerprint = 0;
  bool operator==(const TraceStamp&) const = default;

  static TraceStamp of(const std::string& trace, const trace::Overview& overview);
};

// Where the index of a trace may be, the best place first.
std::vector<std::string> index_places(const std::string& trace);

// nullptr: there is none that could be used.
std::unique_ptr<Index> open_index(const std::string& path, const TraceStamp& stamp,
                                  const IndexTimes& times);

// Where blocks are in a file.
struct IndexBlockPlace {
  uint64_t offset = 0, bytes = 0, raw_bytes = 0, checksum = 0;
};

struct IndexPlaces {
  std::vector<IndexBlockPlace> steps, groups, lives, survivors, sizes, odd_sizes;
  IndexBlockPlace whole;
};

// The file is there when all of it is.
class IndexFileWriter {
 public:
  explicit IndexFileWriter(std::string path);

  bool ok() const { return file_.ok() && ok_; }
  uint64_t bytes() const { return at_; }
  void put(IndexBuilder::Level level, uint32_t i, const PackedBlock& block);
  // True: the file is there.
  bool finish(const TraceStamp& stamp, const IndexFacts& facts,
              const std::vector<IndexCell>& cells);

 private:
  IndexBlockPlace write(const PackedBlock& block);
  void append(const void* bytes, size_t size);

  WholeFile file_;
  bool ok_ = true;
  uint64_t at_ = 0;
  IndexPlaces places_;
};

// Reads all events of `trace` once and leaves an index at `path`. The trace's tables are in
// `tables` if it does.
enum class Built {
  kYes,
  kNotHere,  // Nothing can be written there; nothing was read.
  kNot,
};
Built build_index(const std::string& trace, const trace::Overview& overview,
                  const std::string& path, std::function<void(double)> progress,
                  std::optional<trace::Tables>* tables);

}  // namespace malloscope::analyze
