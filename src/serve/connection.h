// SPDX-License-Identifier: Apache-2.0
// One connection to the server, as the HTTP library reads and writes it. Unlike the library's own
// it has a time for the whole of a question, however slowly that comes, and knows whose it is.

#pragma once

#include <httplib.h>

#include <array>
#include <chrono>

namespace malloscope::serve {

class Connection final : public httplib::Stream {
 public:
  // Closes the socket in the end.
  explicit Connection(socket_t socket) : socket_(socket) {}
  ~Connection() override;
  Connection(const Connection&) = delete;

  // Whether the other end is a process of our user's, or of root's. No, if nobody can tell.
  bool is_ours() const;
  // Waits for a question. From its first byte on, the rest has a few seconds to come.
  bool await_question();

  bool is_readable() const override;
  bool is_writable() const override;
  ssize_t read(char* to, size_t most) override;
  ssize_t write(const char* from, size_t bytes) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  using Clock = std::chrono::steady_clock;
  bool await(short event, Clock::time_point until) const;

  socket_t socket_;
  Clock::time_point deadline_;
  size_t room_ = 0;                // For the rest of the question, in bytes.
  bool failed_ = false;            // Half a question came: what follows is none.
  std::array<char, 4096> buffer_;  // Read, but not yet asked for: from begin_ to end_.
  size_t begin_ = 0, end_ = 0;
};

}  // namespace malloscope::serve
