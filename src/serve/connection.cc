// SPDX-License-Identifier: Apache-2.0
#include "serve/connection.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

namespace malloscope::serve {
namespace {

// For a question to begin, to come as a whole, and for a piece of the answer to be taken.
constexpr std::chrono::seconds kPatience{5};

// For all of a question, headers included: the library would keep any number of them.
constexpr size_t kMostBytes = 64 << 10;

// The user of the socket that is at the other end, which is on this machine too: the kernel tells
// everybody.
std::optional<uid_t> user_behind(int socket) {
  sockaddr_in here = {}, there = {};
  socklen_t here_size = sizeof here, there_size = sizeof there;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&here), &here_size) != 0 ||
      getpeername(socket, reinterpret_cast<sockaddr*>(&there), &there_size) != 0)
    return std::nullopt;
  struct {
    nlmsghdr head;
    inet_diag_req_v2 body;
  } question = {};
  question.head.nlmsg_len = sizeof question;
  question.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.head.nlmsg_flags = NLM_F_REQUEST;
  question.body.sdiag_family = AF_INET;
  question.body.sdiag_protocol = IPPROTO_TCP;
  question.body.idiag_states = ~0u;
  inet_diag_sockid& id = question.body.id;
  id.idiag_sport = there.sin_port;
  id.idiag_dport = here.sin_port;
  id.idiag_src[0] = there.sin_addr.s_addr;
  id.idiag_dst[0] = here.sin_addr.s_addr;
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;

  int kernel = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (kernel < 0) return std::nullopt;
  struct {
    nlmsghdr head;
    inet_diag_msg body;
    char more[1024];
  } answer = {};
  bool known =
      send(kernel, &question, sizeof question, 0) == static_cast<ssize_t>(sizeof question) &&
      recv(kernel, &answer, sizeof answer, 0) >=
          static_cast<ssize_t>(offsetof(decltype(answer), more)) &&
      answer.head.nlmsg_type == SOCK_DIAG_BY_FAMILY;
  close(kernel);
  if (!known) return std::nullopt;
  return answer.body.idiag_uid;
}

}  // namespace

Connection::~Connection() {
  shutdown(socket_, SHUT_RDWR);
  close(socket_);
}

bool Connection::is_ours() const {
  std::optional<uid_t> user = user_behind(socket_);
  return user && (*user == geteuid() || *user == 0);
}

bool Connection::await_question() {
  if (failed_) return false;
  deadline_ = Clock::now() + kPatience;
  if (!is_readable()) return false;
  deadline_ = Clock::now() + kPatience;
  room_ = kMostBytes;
  return true;
}

bool Connection::await(short event, Clock::time_point until) const {
  for (;;) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    pollfd one = {.fd = socket_, .events = event, .revents = 0};
    int ready = poll(&one, 1, static_cast<int>(std::max<int64_t>(left, 0)));
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

bool Connection::is_readable() const { return begin_ < end_ || await(POLLIN, deadline_); }

bool Connection::is_writable() const { return await(POLLOUT, Clock::now() + kPatience); }

ssize_t Connection::read(char* to, size_t most) {
  if (begin_ == end_) {
    ssize_t got = -1;
    if (Clock::now() < deadline_ && is_readable())
      got = recv(socket_, buffer_.data(), buffer_.size(), 0);
    failed_ = got <= 0;
    if (failed_) return got;
    begin_ = 0;
    end_ = static_cast<size_t>(got);
  }
  size_t bytes = std::min({most, end_ - begin_, room_});
  if (bytes == 0) {
    failed_ = true;
    return -1;
  }
  room_ -= bytes;
  memcpy(to, buffer_.data() + begin_, bytes);
  begin_ += bytes;
  return static_cast<ssize_t>(bytes);
}

ssize_t Connection::write(const char* from, size_t bytes) {
  return is_writable() ? send(socket_, from, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) : -1;
}

void Connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip = "127.0.0.1";
  port = 0;  // Nobody asks.
}

void Connection::get_local_ip_and_port(std::string& ip, int& port) const {
  get_remote_ip_and_port(ip, port);
}

}  // namespace malloscope::serve
