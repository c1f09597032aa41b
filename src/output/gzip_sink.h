// SPDX-License-Identifier: Apache-2.0
// What goes through it comes out as gzip.

#pragma once

#include <memory>

#include "base/error.h"
#include "output/sink.h"

struct z_stream_s;

namespace malloscope::output {

class GzipSink : public Sink {
 public:
  explicit GzipSink(Sink* sink);
  ~GzipSink() override;

  void write(std::string_view text) override;
  // Writes what is left. Nothing may follow.
  Result<void> finish();

 private:
  void run(std::string_view text, int flush);

  Sink& sink_;
  std::unique_ptr<z_stream_s> stream_;
  bool failed_ = false;
};

}  // namespace malloscope::output
