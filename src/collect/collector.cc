// SPDX-License-Identifier: Apache-2.0
// The collector's loop. It wakes every few milliseconds, or at once when a process
// joins or ends, and makes a pass over the lanes when there is enough to read or
// the last pass is 100 ms old. Each pass is an epoch of the file. Which processes there are
// to read from is process_images.cc's to know.
//
// It never waits for a recorded process, and no recorded process waits for it
// longer than lane_writer.cc says.

#include "collect/collector.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "collect/drain.h"
#include "collect/process_images.h"
#include "wire/records.h"

namespace malloscope::collect {
namespace {

using wire::ChunkType;

constexpr uint64_t kEpochNs = 100'000'000;
constexpr uint64_t kRssEveryNs = 10'000'000;
constexpr int kPollMs = 2;

volatile sig_atomic_t told_to_stop = 0;

class Collector {
 public:
  Collector(Session* session, trace::FileWriter* file, int launcher,
            const CollectorOptions& options)
      : session_(*session),
        file_(*file),
        launcher_(launcher),
        options_(options),
        shared_(session->shared()),
        drain_(session->shared(), session->segment_count(), file),
        images_(session, file, &drain_, options, launcher >= 0) {}

  void run(int first_fd) {
    std::jthread heart([this](std::stop_token stop) { beat(stop); });
    write_header();
    // Again, in this process: who connects learns from it whom to look at (peer_is_stopped()).
    listen(session_.listen_fd(), SOMAXCONN);
    say({.kind = LauncherMessage::kReady});
    if (launcher_ < 0) {
      program_ended_ = true;  // Nobody will tell us when it does.
      warned_ = true;
      images_.welcome(first_fd);
      close(first_fd);
    }
    last_pass_ns_ = clock_ns();
    while (!finished()) {
      wait();
      if (told_to_stop) {
        incomplete_ = "the collector was told to stop before the program had ended";
        break;
      }
      hear_launcher();
      images_.welcome_newcomers();
      sample_memory();
      if (clock_ns() - last_pass_ns_ >= kEpochNs || backlog_is_large()) pass();
      images_.look_for_ends();
      images_.learn_exits(!program_ended_);
      warn_of_survivors();
    }
    finish();
  }

 private:
  // Tells the recorded processes that we are alive, and that a millisecond has passed (tick_now()
  // in record/recorder.h). A thread of its own, since the disk may keep
  // us waiting for longer than they are patient; a stopped or killed collector stops it too.
  void beat(std::stop_token stop) {
    while (!stop.stop_requested()) {
      shared_.control().heartbeat.fetch_add(1, std::memory_order_release);
      usleep(1000);
    }
  }

  bool backlog_is_large() const {
    uint64_t backlog = shared_.control().segments_taken.load(std::memory_order_relaxed) -
                       shared_.control().segments_returned.load(std::memory_order_relaxed);
    // Threads that are idle hold a segment each without being behind.
    return backlog > drain_.live_lanes() + session_.segment_count() / 8;
  }

  bool finished() { return program_ended_ && images_.count() == 0 && !images_.more_may_come(); }

  void wait() {
    std::vector<pollfd> fds = {{session_.listen_fd(), POLLIN, 0}};
    if (launcher_ >= 0) fds.push_back({launcher_, POLLIN, 0});
    images_.watch(&fds);
    poll(fds.data(), fds.size(), kPollMs);
  }

  // ---- passing on ----

  void pass() {
    uint64_t tick = session_.tick_now();
    images_.adopt_children();
    drain_.pass(tick);
    shared_.control().passes.fetch_add(1, std::memory_order_relaxed);
    images_.note_peak_rss();
    for (auto [type, samples] :
         {std::pair(ChunkType::kRss, &rss_), std::pair(ChunkType::kVm, &vm_)}) {
      if (samples->result().empty()) continue;
      file_.append(type, samples->result(), tick, tick, true);
      samples->result().clear();
    }
    file_.end_epoch(tick);
    last_pass_ns_ = clock_ns();
    end_abandoned_lanes();
  }

  // A thread can wake the recorder once more after its last destructor has run; nobody tells us
  // of its end then.
  void end_abandoned_lanes() {
    constexpr uint64_t kEveryNs = 1'000'000'000;
    if (last_pass_ns_ - last_sweep_ns_ < kEveryNs || access("/proc/self/task", X_OK) != 0) return;
    last_sweep_ns_ = last_pass_ns_;
    drain_.end_abandoned([&](uint32_t slot, int tid) { return images_.is_thread_gone(slot, tid); });
  }

  void sample_memory() {
    uint64_t now = clock_ns();
    if (now - last_rss_ns_ < kRssEveryNs) return;
    last_rss_ns_ = now;
    images_.sample_memory(&rss_, &vm_);
  }

  // ---- the launcher ----

  void say(const LauncherMessage& message) {
    if (launcher_ >= 0) send(launcher_, &message, sizeof message, MSG_NOSIGNAL);
  }

  void hear_launcher() {
    LauncherMessage message;
    while (launcher_ >= 0) {
      ssize_t n = recv(launcher_, &message, sizeof message, MSG_DONTWAIT);
      if (n == static_cast<ssize_t>(sizeof message) && message.kind == LauncherMessage::kExited) {
        program_ended_ = true;
        program_ended_ns_ = clock_ns();
        images_.end_program(message.status, message.max_rss_bytes);
      } else if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        // The launcher is gone; the program, if it lives, is recorded to its end.
        close(launcher_);
        launcher_ = -1;
        if (!program_ended_) program_ended_ = true, program_ended_ns_ = clock_ns();
      } else {
        return;
      }
    }
  }

  void warn_of_survivors() {
    if (!program_ended_ || warned_ || clock_ns() - program_ended_ns_ < kDaemonPatienceNs) return;
    size_t left = images_.count() + images_.execs_under_way();
    if (left == 0) return;
    warned_ = true;
    pass();
    say({.kind = LauncherMessage::kStillRunning, .number = left});
  }

  // ---- beginning and end ----

  void write_header() {
    wire::HeaderRecord header;
    header.tick_shift = session_.tick_shift();
    header.cycles_per_second = session_.cycles_per_second();
    start_ns_ = clock_ns();
    start_cycles_ = cycles_ordered();
    header.start_tick = start_cycles_ >> session_.tick_shift();
    header.start_unix_ns = clock_ns(CLOCK_REALTIME);
    header.recorder_version = MSCOPE_VERSION;
    header.settings = options_.settings;
    wire::Packer payload;
    wire::pack(header, &payload);
    file_.append(ChunkType::kHeader, payload.result(), header.start_tick, header.start_tick);
    file_.end_epoch(header.start_tick);
  }

  void finish() {
    images_.end_all();
    // A parent may be a moment late in waiting for its child.
    for (int i = 0; i < 20 && !images_.all_exits_known(); ++i) {
      images_.learn_exits(!program_ended_);
      if (!images_.all_exits_known()) usleep(1000);
    }
    pass();
    if (incomplete_.empty()) incomplete_ = images_.damage();
    wire::EndRecord end;
    uint64_t passed = cycles_ordered() - start_cycles_, passed_ns = clock_ns() - start_ns_;
    end.tick = session_.tick_now();
    end.cycles_per_second = passed_ns < 100'000'000
                                ? session_.cycles_per_second()
                                : static_cast<uint64_t>(static_cast<double>(passed) * 1e9 /
                                                        static_cast<double>(passed_ns));
    end.events = drain_.events();
    end.incomplete_because = incomplete_;
    wire::Packer payload;
    wire::pack(end, &payload);
    file_.finish(payload.result(), end.tick);
    session_.remove_folder();
    LauncherMessage done = {.kind = LauncherMessage::kFinished};
    const std::string& problem = file_.error().empty() ? incomplete_ : file_.error();
    problem.copy(done.text, sizeof done.text - 1);
    say(done);
  }

  Session& session_;
  trace::FileWriter& file_;
  int launcher_;
  const CollectorOptions& options_;
  wire::SharedMemory shared_;
  Drain drain_;
  ProcessImages images_;
  wire::Packer rss_, vm_;
  uint64_t last_pass_ns_ = 0, last_rss_ns_ = 0, last_sweep_ns_ = 0;
  uint64_t start_ns_ = 0, start_cycles_ = 0;
  bool program_ended_ = false, warned_ = false;
  uint64_t program_ended_ns_ = 0;
  std::string incomplete_;
};

}  // namespace

void collect(Session* session, trace::FileWriter* file, int launcher_fd,
             const CollectorOptions& options, int first_fd) {
  struct sigaction stop = {};
  stop.sa_handler = [](int) { told_to_stop = 1; };
  sigaction(SIGTERM, &stop, nullptr);
  for (int ignored : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU, SIGXFSZ})
    signal(ignored, SIG_IGN);
  Collector(session, file, launcher_fd, options).run(first_fd);
}

}  // namespace malloscope::collect
