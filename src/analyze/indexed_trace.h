// SPDX-License-Identifier: Apache-2.0
// A trace's tables together with its index, which is found beside the trace, made and left
// there, or made in memory: whichever is first to work.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "analyze/index.h"
#include "trace/event_stream.h"
#include "trace/tables.h"

namespace malloscope::analyze {

struct IndexedTrace {
  trace::Tables tables;
  std::unique_ptr<Index> index;
};

// Whether a file is to be made of what the index has. One that is there is used in any case, unless
// MALLOSCOPE_INDEX=never.
enum class IndexAs {
  kFile,          // If it is worth one, else there is no index.
  kFileOrMemory,  // If it is worth one and can be written, else in memory.
};

// False: no index can be had of it, and nothing was read. A pipe can be read only once.
bool may_be_indexed(const std::string& path);

// Nothing: there is none, or none that could be trusted; nothing is wrong then. `progress` is
// called while events are read.
std::optional<IndexedTrace> open_indexed(const std::string& path, const trace::Overview& overview,
                                         IndexAs as, const std::function<void(double)>& progress);

// For tests: an index in memory. The tables are in `tables` if there is one.
std::unique_ptr<Index> index_in_memory(const std::string& trace, const trace::Overview& overview,
                                       std::function<void(double)> progress,
                                       std::optional<trace::Tables>* tables);

}  // namespace malloscope::analyze
