// SPDX-License-Identifier: Apache-2.0
#include "output/gzip_sink.h"

#include <zlib.h>

#include <algorithm>
#include <array>

namespace malloscope::output {

GzipSink::GzipSink(Sink* sink) : sink_(*sink), stream_(std::make_unique<z_stream_s>()) {
  constexpr int kWindowBits = 15, kGzipHeader = 16, kMemoryLevel = 8;
  failed_ = deflateInit2(stream_.get(), Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                         kWindowBits + kGzipHeader, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK;
}

GzipSink::~GzipSink() { deflateEnd(stream_.get()); }

void GzipSink::run(std::string_view text, int flush) {
  if (failed_) return;
  std::array<char, 1 << 16> out;
  stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream_->avail_in = static_cast<uInt>(text.size());
  do {
    stream_->next_out = reinterpret_cast<Bytef*>(out.data());
    stream_->avail_out = out.size();
    if (deflate(stream_.get(), flush) == Z_STREAM_ERROR) failed_ = true;
    sink_.write({out.data(), out.size() - stream_->avail_out});
  } while (stream_->avail_out == 0 && !failed_);
}

void GzipSink::write(std::string_view text) {
  constexpr size_t kPiece = 1 << 30;  // zlib counts in 32 bits.
  for (; !text.empty(); text.remove_prefix(std::min(kPiece, text.size())))
    run(text.substr(0, kPiece), Z_NO_FLUSH);
}

Result<void> GzipSink::finish() {
  run({}, Z_FINISH);
  if (failed_) return fail("the file could not be compressed: zlib has no memory left");
  return {};
}

}  // namespace malloscope::output
