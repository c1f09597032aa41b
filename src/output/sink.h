// SPDX-License-Identifier: Apache-2.0
// Where reports are written to.

#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace malloscope::output {

class Sink {
 public:
  virtual ~Sink() = default;
  virtual void write(std::string_view text) = 0;
};

class StringSink : public Sink {
 public:
  void write(std::string_view text) override { text_ += text; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Buffered. After an error everything else is dropped; finish() tells.
class FileSink : public Sink {
 public:
  // `name` is for the error's sentence. Does not close the descriptor.
  FileSink(int fd, std::string name) : fd_(fd), name_(std::move(name)) {}

  void write(std::string_view text) override;
  // Whether a report that takes long to make is still wanted.
  bool failed() const { return error_ != 0; }
  Result<void> finish();

 private:
  void flush();

  int fd_;
  std::string name_;
  std::string buffer_;
  int error_ = 0;
};

}  // namespace malloscope::output
