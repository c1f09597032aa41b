// SPDX-License-Identifier: Apache-2.0
// The chunks of a trace that count: those of whole epochs, then its end, then names that were
// added later. What a cut left of an epoch is passed over.

#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "trace/file_reader.h"

namespace malloscope::trace {

class WholeChunks {
 public:
  // Is shown every chunk of the file, once, with its payload only if it is an image's start:
  // these are wanted before anything else. False: it makes no sense.
  using Look = std::function<bool(const Chunk&)>;
  static Result<WholeChunks> open(const std::string& path, const Look& look);

  // Chunks of events and mappings are not shown, nor is what they hold checked.
  void leave_out_events() { events_ = false; }
  // The next one; false if there is none.
  Result<bool> next(Chunk* chunk);

  // What to say of a chunk that makes no sense.
  std::unexpected<Error> nonsense(const Chunk& chunk) const;
  // What to say if there was no header among them.
  std::unexpected<Error> nothing() const;
  // Once all chunks were shown: why there was no end, if there was none.
  std::string why_no_end() const;
  uint64_t bytes() const { return reader_.bytes(); }
  uint64_t position() const { return reader_.position(); }

 private:
  WholeChunks(FileReader reader, std::string path)
      : reader_(std::move(reader)), path_(std::move(path)) {}

  FileReader reader_;
  std::string path_;
  uint64_t whole_ = 0;  // Chunks that begin before this belong to whole epochs.
  bool events_ = true;
  bool cut_ = false, half_epoch_ = false, ended_ = false;
};

}  // namespace malloscope::trace
