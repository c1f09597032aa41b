// SPDX-License-Identifier: Apache-2.0
// Who it is the kernel says, not he: a process knows itself by the pid of its own namespace.

#include "collect/greeting.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstring>

#include "wire/handshake.h"

namespace malloscope::collect {

std::optional<Newcomer> hear_newcomer(int fd) {
  timeval second = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
  ucred peer = {};
  socklen_t length = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return std::nullopt;
  Newcomer newcomer;
  newcomer.pid = peer.pid;
  wire::Hello hello;
  ssize_t heard = recv(fd, &hello, sizeof hello, 0);
  newcomer.leaves = heard == sizeof wire::kFarewell;
  if (newcomer.leaves) return newcomer;
  if (heard != sizeof hello || hello.magic != wire::kHandshakeMagic ||
      hello.version != wire::kHandshakeVersion)
    return std::nullopt;
  hello.executable[sizeof hello.executable - 1] = 0;
  newcomer.cycles = hello.cycles;
  newcomer.executable = hello.executable;
  return newcomer;
}

void welcome_into(uint32_t slot, const Session& session, int fd) {
  wire::Welcome welcome;
  welcome.image_slot = slot;
  welcome.segment_count = session.segment_count();
  welcome.bytes = wire::SharedMemory::bytes_for(session.segment_count());
  session.preload_path().copy(welcome.preload_path, sizeof welcome.preload_path - 1);

  iovec data = {&welcome, sizeof welcome};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  int memory = session.open_memory_for_target();
  memcpy(CMSG_DATA(header), &memory, sizeof memory);
  sendmsg(fd, &message, MSG_NOSIGNAL);
  if (memory >= 0) close(memory);
}

}  // namespace malloscope::collect
