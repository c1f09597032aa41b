// SPDX-License-Identifier: Apache-2.0
// The collector's side of the handshake (wire/handshake.h): who has connected, and what
// he is given.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collect/session.h"

namespace malloscope::collect {

struct Newcomer {
  int pid = 0;
  bool leaves = false;     // It found us stopped and runs on alone; the rest is not known.
  uint64_t cycles = 0;     // When it began.
  std::string executable;  // As it calls itself.
};

// nullopt if what has connected to `fd` is no recorder of ours.
std::optional<Newcomer> hear_newcomer(int fd);

// The shared memory, and which slot in it is his.
void welcome_into(uint32_t slot, const Session& session, int fd);

}  // namespace malloscope::collect
