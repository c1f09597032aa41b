// SPDX-License-Identifier: Apache-2.0
// The player: performs a workload on whatever allocator it was started with. It is a program of its
// own so that the heap which is measured holds the workload's blocks and nothing else: its own
// memory comes from mmap, is touched before the beginning, and it needs no C++ library.
//
// Here everything is made ready, then each track becomes a thread (player_track.h), and the tool,
// which watches, is told when all have ended.

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <new>

#include "replay/player_track.h"

namespace malloscope::replay {
namespace {

constexpr size_t kThreadStack = 256 << 10;

std::atomic<uint32_t> running;  // Tracks that have not ended; at first, all that have operations.

std::atomic<uint32_t>* state_word() {
  return reinterpret_cast<std::atomic<uint32_t>*>(&board->state);
}

void track_ended() {
  if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) futex_wake(&running);
}

void* thread_main(void* argument);

void start_thread(Player* player) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kThreadStack);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  int problem = pthread_create(&thread, &attributes, thread_main, player);
  if (problem != 0) give_up(Fault::kNoThread, static_cast<uint64_t>(problem), 0, player->number());
  pthread_attr_destroy(&attributes);
}

void* thread_main(void* argument) {
  auto* player = static_cast<Player*>(argument);
  while (board->state.load(std::memory_order_acquire) < State::kGo)
    futex_wait(state_word(), static_cast<uint32_t>(State::kReady), 1'000'000'000);
  if (player->play() == Player::Stop::kNextThread)
    start_thread(player);
  else
    track_ended();
  return nullptr;
}

int play(int workload_fd, int board_fd) {
  workload = workload_fd;
  off_t board_bytes = lseek(board_fd, 0, SEEK_END);
  off_t bytes = lseek(workload_fd, 0, SEEK_END);
  if (board_bytes < static_cast<off_t>(sizeof(Board)) || bytes < static_cast<off_t>(sizeof tail))
    return 2;
  board = static_cast<Board*>(mmap(nullptr, static_cast<size_t>(board_bytes),
                                   PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, board_fd, 0));
  if (board == MAP_FAILED) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != board->launcher) return 2;  // It has ended before that.
  read_workload(static_cast<uint64_t>(bytes) - sizeof tail, &tail, sizeof tail);
  if (tail.tracks != board->tracks) give_up(Fault::kBadWorkload);
  find_allocator();

  auto* chunks = static_cast<ChunkPlace*>(own_memory(tail.chunks * sizeof(ChunkPlace)));
  auto* tracks = static_cast<TrackPlace*>(own_memory(tail.tracks * sizeof(TrackPlace)));
  read_workload(tail.places_offset, chunks, tail.chunks * sizeof(ChunkPlace));
  read_workload(tail.places_offset + tail.chunks * sizeof(ChunkPlace), tracks,
                tail.tracks * sizeof(TrackPlace));
  places = chunks;
  track_places = tracks;
  next_chunk = static_cast<uint32_t*>(own_memory(tail.chunks * sizeof(uint32_t)));
  auto* first = static_cast<uint32_t*>(own_memory(tail.tracks * sizeof(uint32_t)));
  for (uint32_t i = static_cast<uint32_t>(tail.chunks); i-- > 0;)
    next_chunk[i] = std::exchange(first[chunks[i].track], i + 1);
  slots = static_cast<Slot*>(own_memory(tail.slots * sizeof(Slot)));
  if (board->verify) marks = static_cast<uint64_t*>(own_memory(tail.slots * sizeof(uint64_t)));
  auto* players = static_cast<Player*>(own_memory(tail.tracks * sizeof(Player)));
  // A track without operations needs neither memory nor a thread.
  auto is_played = [](uint32_t track) { return track_places[track].ops > 0; };
  for (uint32_t i = 0; i < tail.tracks; ++i) running += is_played(i);
  for (uint32_t i = 0; i < tail.tracks; ++i)
    if (is_played(i)) new (&players[i]) Player(i, first[i], running == 1);
  calibrate();
  next_trim = board->trim_ticks;

  for (uint32_t i = 1; i < tail.tracks; ++i)
    if (is_played(i)) start_thread(&players[i]);
  board->state.store(State::kReady, std::memory_order_release);
  futex_wake(state_word());
  while (board->state.load(std::memory_order_acquire) < State::kGo)
    futex_wait(state_word(), static_cast<uint32_t>(State::kReady), 1'000'000'000);
  uint64_t go_ns = start_ns = clock_ns();
  start_cycles = cycles_ordered();
  if (tail.tracks > 0 && is_played(0)) {
    players[0].play();
    track_ended();
  }
  while (uint32_t left = running.load(std::memory_order_acquire))
    futex_wait(&running, left, 1'000'000'000);
  board->wall_ns = clock_ns() - start_ns;
  board->setup_ns = start_ns - go_ns;
  if (board->verify) check_all();
  board->state.store(State::kDone, std::memory_order_release);
  while (board->state.load(std::memory_order_acquire) < State::kMayExit)
    futex_wait(state_word(), static_cast<uint32_t>(State::kDone), 1'000'000'000);
  // What the allocator does at the end of a program is no part of the workload.
  _exit(0);
}

}  // namespace
}  // namespace malloscope::replay

int main(int argc, char** argv) {
  if (argc != 3) {
    static const char kUse[] = "malloscope-player is started by `malloscope replay`\n";
    (void)!write(2, kUse, sizeof kUse - 1);
    return 2;
  }
  return malloscope::replay::play(atoi(argv[1]), atoi(argv[2]));
}
