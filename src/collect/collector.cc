// SPDX-License-Identifier: Apache-2.0
// The collector's loop. It wakes every few milliseconds, or at once when a process
// joins or ends, and makes a pass over the lanes when there is enough to read or
// the last pass is 100 ms old. Each pass is an epoch of the file.
//
//     a process joins   by the socket (an exec'd image) or by taking an image slot
//                       in the shared memory (a forked child)
//     an image ends     when its process ends, or execs another program
//
// It never waits for a recorded process, and no recorded process waits for it
// longer than lane_writer.cc says.

#include "collect/collector.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <re2/re2.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "collect/drain.h"
#include "collect/process_info.h"
#include "collect/program_check.h"
#include "wire/handshake.h"
#include "wire/records.h"

namespace malloscope::collect {
namespace {

using wire::ChunkType;
using wire::ImageState;

constexpr uint64_t kEpochNs = 100'000'000;
constexpr uint64_t kRssEveryNs = 10'000'000;
constexpr uint64_t kDaemonPatienceNs = 2'000'000'000;
constexpr int kPollMs = 2;

// An image whose process has not ended.
struct LiveImage {
  uint32_t slot = 0;
  int pid = 0;
  int pidfd = -1;
  int statm = -1;
  std::string executable;
  FileId executable_id;
  uint64_t looked_ns = 0, changed_ns = 0;  // When its executable was looked at; found another.
  bool by_socket = false;                  // It must map the memory first, and may fail to.
  wire::ImageEndRecord end;                // Filled as things become known.
};

// One whose end is written but not yet how its process ended.
struct PendingExit {
  int pid;
  int pidfd;
  wire::ImageEndRecord end;
};

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
        drain_(session->shared(), session->segment_count(), file) {
    struct stat info = {};
    fstat(session->memory_fd(), &info);
    memory_inode_ = info.st_ino;
    if (!options.only.empty()) only_.emplace(options.only);
  }

  void run(int first_fd) {
    std::jthread heart([this](std::stop_token stop) { beat(stop); });
    write_header();
    // Again, in this process: who connects learns from it whom to look at (peer_is_stopped()).
    listen(session_.listen_fd(), SOMAXCONN);
    say({.kind = LauncherMessage::kReady});
    if (launcher_ < 0) {
      program_ended_ = true;  // Nobody will tell us when it does.
      warned_ = true;
      welcome(first_fd);
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
      welcome_newcomers();
      sample_rss();
      if (clock_ns() - last_pass_ns_ >= kEpochNs || backlog_is_large()) pass();
      look_for_ends();
      learn_exits();
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

  uint64_t tick_now() const { return cycles_before_loads() >> session_.tick_shift(); }

  bool backlog_is_large() const {
    uint64_t backlog = shared_.control().segments_taken.load(std::memory_order_relaxed) -
                       shared_.control().segments_returned.load(std::memory_order_relaxed);
    // Threads that are idle hold a segment each without being behind.
    return backlog > drain_.live_lanes() + session_.segment_count() / 8;
  }

  bool finished() { return program_ended_ && images_.empty() && !child_may_come(); }

  // A child that was forked or exec'd may not have shown itself yet when its parent ends.
  bool child_may_come() {
    if (!options_.follow) return false;
    uint64_t now = clock_ns();
    // A forked one that never does anything is not waited for longer than a daemon. Once it lets
    // go of the memory it has ended, or has exec'd by a way that we do not see.
    if (session_.memory_is_in_use()) {
      memory_used_ns_ = now;
      return now - last_end_ns_ < kDaemonPatienceNs;
    }
    constexpr uint64_t kTimeToExecNs = 50'000'000;
    return now - memory_used_ns_ < kTimeToExecNs || execs_under_way() > 0;
  }

  // Processes that are about to join. Those that died on the way are not.
  size_t execs_under_way() {
    size_t count = 0;
    for (std::atomic<int32_t>& place : shared_.control().execs) {
      int32_t pid = place.load(std::memory_order_relaxed);
      if (pid == 0) continue;
      // One that has an image still runs it, or has joined before its parent could say who it is.
      if (is_alive(pid))
        count += image_of_process(pid) == ImageId::kNone;
      else
        place.store(0, std::memory_order_relaxed);
    }
    return count;
  }

  // ---- joining ----

  void wait() {
    std::vector<pollfd> fds = {{session_.listen_fd(), POLLIN, 0}};
    if (launcher_ >= 0) fds.push_back({launcher_, POLLIN, 0});
    for (const LiveImage& image : images_)
      if (image.pidfd >= 0) fds.push_back({image.pidfd, POLLIN, 0});
    poll(fds.data(), fds.size(), kPollMs);
  }

  void welcome_newcomers() {
    for (;;) {
      int fd = accept4(session_.listen_fd(), nullptr, nullptr, SOCK_CLOEXEC);
      // One that connects may have been a forked child until now.
      adopt_children();
      if (fd < 0) break;
      welcome(fd);
      close(fd);
    }
  }

  // Parents before their children, since an image names its parent; a child whose parent was
  // never seen comes last.
  void adopt_children() {
    auto is_new = [&](uint32_t slot) {
      return !drain_.image(slot) && shared_.image(slot).state.load(std::memory_order_acquire) ==
                                        static_cast<uint32_t>(ImageState::kLive);
    };
    for (bool orphans : {false, true}) {
      for (bool again = true; again;) {
        again = false;
        for (uint32_t slot = 0; slot < wire::kImages; ++slot) {
          if (!is_new(slot)) continue;
          const wire::ImageSlot& image = shared_.image(slot);
          if (!orphans && !slot_history_.contains({image.parent_slot, image.parent_stamp}))
            continue;
          adopt_child(slot);
          again = true;
        }
      }
    }
  }

  bool wanted(int pid, const std::string& executable) const {
    if (!options_.follow && pid != options_.launched_pid) return false;
    if (!only_) return true;
    std::string name = executable.substr(executable.rfind('/') + 1);
    return re2::RE2::PartialMatch(name, *only_);
  }

  void welcome(int fd) {
    timeval second = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    wire::Hello hello;
    ucred peer = {};
    socklen_t length = sizeof peer;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return;
    ssize_t heard = recv(fd, &hello, sizeof hello, 0);
    bool farewell = heard == sizeof wire::kFarewell;
    if (!farewell && (heard != sizeof hello || hello.magic != wire::kHandshakeMagic ||
                      hello.version != wire::kHandshakeVersion))
      return;
    for (std::atomic<int32_t>& place : shared_.control().execs)
      if (place.load(std::memory_order_relaxed) == peer.pid)
        place.store(0, std::memory_order_relaxed);
    if (farewell) {
      note(fmt::format("pid {} was not recorded: the collector was stopped when it started",
                       peer.pid));
      return;
    }
    uint64_t start_tick = std::min(hello.cycles >> session_.tick_shift(), tick_now());

    wire::ImageStartRecord start;
    start.pid = static_cast<uint64_t>(peer.pid);
    start.parent_pid = static_cast<uint64_t>(parent_of(peer.pid));
    start.executable = executable_of(peer.pid);
    hello.executable[sizeof hello.executable - 1] = 0;
    if (start.executable.empty()) start.executable = hello.executable;
    start.command = command_of(peer.pid);
    if (peer.pid == options_.launched_pid && start.command.empty())
      start.command = options_.command;
    // What ran in this process until now has been replaced.
    start.parent = raw(end_by_exec(peer.pid, start_tick));
    if (!wanted(peer.pid, start.executable)) return;
    bool first = peer.pid == options_.launched_pid && !start.parent;
    start.origin = !first ? 2 : launcher_ < 0 ? 3 : 0;
    if (!start.parent) start.parent = raw(image_of_process(static_cast<int>(start.parent_pid)));

    uint32_t slot = 0;
    while (slot < wire::kImages && !claim(slot)) ++slot;
    if (slot == wire::kImages) {
      note(fmt::format("pid {} ({}) was not recorded: more than {} processes at once", peer.pid,
                       start.executable, wire::kImages));
      return;
    }
    shared_.image(slot).pid = peer.pid;
    wire::Welcome welcome;
    welcome.image_slot = slot;
    welcome.segment_count = session_.segment_count();
    welcome.bytes = wire::SharedMemory::bytes_for(session_.segment_count());
    session_.preload_path().copy(welcome.preload_path, sizeof welcome.preload_path - 1);
    start.start_tick = start_tick;
    shared_.image(slot).joined.store(0, std::memory_order_relaxed);
    add_image(slot, &start);
    images_.back().by_socket = true;
    shared_.image(slot).state.store(static_cast<uint32_t>(ImageState::kLive),
                                    std::memory_order_release);
    send_memory(fd, welcome);
  }

  bool claim(uint32_t slot) {
    uint32_t free = static_cast<uint32_t>(ImageState::kFree);
    return !drain_.image(slot) && shared_.image(slot).state.compare_exchange_strong(
                                      free, static_cast<uint32_t>(ImageState::kClaimed));
  }

  void send_memory(int fd, const wire::Welcome& welcome) {
    iovec data = {const_cast<wire::Welcome*>(&welcome), sizeof welcome};
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
    int memory = session_.open_memory_for_target();
    memcpy(CMSG_DATA(header), &memory, sizeof memory);
    sendmsg(fd, &message, MSG_NOSIGNAL);
    if (memory >= 0) close(memory);
  }

  void adopt_child(uint32_t slot) {
    wire::ImageSlot& image = shared_.image(slot);
    wire::ImageStartRecord start;
    // It knows itself by the pid of its own namespace. One that is gone already keeps that.
    auto parent_known = slot_history_.find({image.parent_slot, image.parent_stamp});
    bool same_namespace =
        parent_known != slot_history_.end() && shares_pid_namespace(parent_known->second.pid);
    int pid = same_namespace ? image.pid : find_process(image.pid, memory_inode_);
    start.pid = static_cast<uint64_t>(pid ? pid : image.pid);
    start.origin = 1;
    start.start_tick = image.start_tick;
    start.forked_tick = image.forked_tick;
    uint32_t parent = image.parent_slot;
    if (parent < wire::kImages) {
      if (auto known = slot_history_.find({parent, image.parent_stamp});
          known != slot_history_.end()) {
        start.parent = raw(known->second.id);
        start.parent_pid = static_cast<uint64_t>(known->second.pid);
        start.executable = known->second.executable;
        start.command = known->second.command;
      }
    }
    add_image(slot, &start);
    if (pid == 0 && images_.back().pidfd >= 0) {
      close(images_.back().pidfd);  // Of another process that has the number now.
      images_.back().pidfd = -1;
    }
  }

  void add_image(uint32_t slot, wire::ImageStartRecord* start) {
    wire::ImageSlot& shared = shared_.image(slot);
    start->image = ++image_count_;
    auto drained = std::make_unique<DrainedImage>();
    drained->id = ImageId{static_cast<uint32_t>(start->image)};
    drained->stamp = shared.stamp.load(std::memory_order_relaxed);
    drained->executable = start->executable;
    slot_history_[{slot, drained->stamp}] = {drained->id, static_cast<int>(start->pid),
                                             start->executable, start->command};
    drain_.add_image(slot, std::move(drained));
    wire::Packer payload;
    wire::pack(*start, &payload);
    file_.append(ChunkType::kImageStart, payload.result(), start->start_tick, start->start_tick);

    LiveImage live;
    live.slot = slot;
    live.pid = static_cast<int>(start->pid);
    live.pidfd = live.pid > 0 ? open_pidfd(live.pid) : -1;
    live.executable = start->executable;
    live.executable_id = executable_id_of(live.pid);
    live.statm = open(fmt::format("/proc/{}/statm", live.pid).c_str(), O_RDONLY | O_CLOEXEC);
    live.end.image = start->image;
    images_.push_back(live);
  }

  ImageId image_of_process(int pid) const {
    for (const LiveImage& image : images_)
      if (image.pid == pid) return ImageId{static_cast<uint32_t>(image.end.image)};
    return ImageId::kNone;
  }

  // ---- ending ----

  ImageId end_by_exec(int pid, uint64_t tick) {
    for (size_t i = 0; i < images_.size(); ++i) {
      if (images_[i].pid != pid) continue;
      ImageId id{static_cast<uint32_t>(images_[i].end.image)};
      images_[i].end.exit_kind = wire::kExitExec;
      end_image(i, tick);
      return id;
    }
    return ImageId::kNone;
  }

  void look_for_ends() {
    for (size_t i = images_.size(); i-- > 0;) {
      LiveImage& image = images_[i];
      if (has_become_another(image)) {
        image.end.exit_kind = wire::kExitExec;
        end_image(i, tick_now());
        continue;
      }
      bool ended = image.pidfd < 0;
      if (!ended) {
        pollfd fd = {image.pidfd, POLLIN, 0};
        ended = poll(&fd, 1, 0) > 0 && (fd.revents & POLLIN);
      }
      if (ended) end_image(i, tick_now());
    }
  }

  // Whether its process runs another program by now, which has had time to join but did not.
  bool has_become_another(LiveImage& image) {
    constexpr uint64_t kLookEveryNs = 100'000'000, kTimeToJoinNs = 2'000'000'000;
    uint64_t now = clock_ns();
    if (!image.executable_id.known() || now - image.looked_ns < kLookEveryNs) return false;
    image.looked_ns = now;
    FileId executable = executable_id_of(image.pid);
    if (!executable.known() || executable == image.executable_id) {
      image.changed_ns = 0;
      return false;
    }
    if (image.changed_ns == 0) image.changed_ns = now;
    return now - image.changed_ns > kTimeToJoinNs;
  }

  void end_image(size_t index, uint64_t tick) {
    LiveImage image = std::move(images_[index]);
    images_.erase(images_.begin() + static_cast<ptrdiff_t>(index));
    last_end_ns_ = clock_ns();
    wire::ImageSlot& shared = shared_.image(image.slot);
    // In the same epoch as all that came before in other processes: a child frees what its
    // parent has allocated.
    uint64_t pass_tick = tick_now();
    drain_.pass(pass_tick);
    std::unique_ptr<DrainedImage> drained = drain_.take_out(image.slot);
    image.end.end_tick = std::max(tick, drained->last_tick);
    image.end.lost = drained->lost;
    image.end.peak_rss_bytes = std::max(image.end.peak_rss_bytes, shared.peak_rss_bytes);
    image.end.truncated_stacks = shared.truncated_stacks.load(std::memory_order_relaxed);
    image.end.unwind_failures = shared.unwind_failures.load(std::memory_order_relaxed);
    image.end.recorder_rss_bytes =
        shared_bytes() + shared.private_bytes.load(std::memory_order_relaxed);
    uint64_t unclaimed = shared.unclaimed_children.load(std::memory_order_relaxed);
    uint64_t sandboxed = shared.sandboxed_children.load(std::memory_order_relaxed);
    image.end.not_followed = drained->not_followed.size() + unclaimed + sandboxed;
    for (const NotFollowed& other : drained->not_followed)
      note(fmt::format("{}, started by pid {}, was not recorded: it {}", other.program, image.pid,
                       words_for(other.why)));
    if (drained->garbled_lanes) {
      image.end.lost += drained->garbled_lanes;  // At least so many.
      if (incomplete_.empty())
        incomplete_ = fmt::format("pid {} damaged the recorder's memory", image.pid);
      note(
          fmt::format("{} thread{} of pid {} damaged the recorder's memory; their later events "
                      "are missing",
                      drained->garbled_lanes, drained->garbled_lanes == 1 ? "" : "s", image.pid));
    }
    if (image.by_socket && !shared.joined.load(std::memory_order_acquire)) {
      ++image.end.not_followed;
      note(
          fmt::format("pid {} ({}) was not recorded: it could not map the recorder's memory "
                      "(limits of memory or of open files?)",
                      image.pid, image.executable));
    }
    auto note_children = [&](uint64_t count, const char* why) {
      if (count)
        note(fmt::format("{} forked {} of pid {} went unrecorded: {}", count,
                         count == 1 ? "child" : "children", image.pid, why));
    };
    note_children(unclaimed, "too many processes at once");
    note_children(sandboxed, "forked inside a sandbox (seccomp)");
    if (image.pid == options_.launched_pid && program_status_)
      set_exit(&image.end, *program_status_);
    if (image.end.exit_kind == wire::kExitUnknown) {
      // The process's own word; the kernel's, if it comes, goes before it.
      if (shared.exit_known) {
        image.end.exit_kind = wire::kExitCode;
        image.end.exit_value = static_cast<uint64_t>(shared.exit_code & 0xff);
      }
      pending_.push_back({image.pid, image.pidfd, image.end});
      image.pidfd = -1;
    }
    write_end(image.end);
    file_.end_epoch(std::max(pass_tick, image.end.end_tick));
    if (image.pidfd >= 0) close(image.pidfd);
    if (image.statm >= 0) close(image.statm);
    free_image_slot(image.slot);
  }

  void write_end(const wire::ImageEndRecord& end) {
    wire::Packer payload;
    wire::pack(end, &payload);
    file_.append(ChunkType::kImageEnd, payload.result(), end.end_tick, end.end_tick);
  }

  void free_image_slot(uint32_t slot) {
    wire::ImageSlot& shared = shared_.image(slot);
    for (auto* counter :
         {&shared.dropped, &shared.truncated_stacks, &shared.unwind_failures, &shared.private_bytes,
          &shared.unclaimed_children, &shared.sandboxed_children})
      counter->store(0, std::memory_order_relaxed);
    shared.exit_known = 0;
    shared.peak_rss_bytes = 0;
    shared.stamp.fetch_add(1, std::memory_order_relaxed);
    shared.state.store(static_cast<uint32_t>(ImageState::kFree), std::memory_order_release);
  }

  static void set_exit(wire::ImageEndRecord* end, int status) {
    end->exit_kind = WIFSIGNALED(status) ? wire::kExitSignal : wire::kExitCode;
    end->exit_value =
        static_cast<uint64_t>(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  }

  void learn_exits() {
    for (size_t i = pending_.size(); i-- > 0;) {
      PendingExit& pending = pending_[i];
      // The launcher knows more of the program, and will tell.
      if (pending.pid == options_.launched_pid && launcher_ >= 0 && !program_ended_) continue;
      std::optional<int> status = exit_status_of(pending.pidfd);
      if (!status) continue;
      set_exit(&pending.end, *status);
      write_end(pending.end);
      close(pending.pidfd);
      pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(i));
    }
  }

  // ---- passing on ----

  void pass() {
    uint64_t tick = tick_now();
    drain_.pass(tick);
    shared_.control().passes.fetch_add(1, std::memory_order_relaxed);
    for (LiveImage& image : images_)
      image.end.peak_rss_bytes = std::max(image.end.peak_rss_bytes, peak_rss_of(image.pid));
    if (!rss_.result().empty()) {
      file_.append(ChunkType::kRss, rss_.result(), tick, tick, true);
      rss_.result().clear();
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
    drain_.end_abandoned([&](uint32_t slot, int tid) {
      auto image = std::find_if(images_.begin(), images_.end(),
                                [&](const LiveImage& live) { return live.slot == slot; });
      if (image == images_.end() || tid <= 0) return false;  // What ended threads share; not known.
      std::string task = fmt::format("/proc/{}/task", image->pid);
      return access(task.c_str(), X_OK) == 0 &&
             access(fmt::format("{}/{}", task, tid).c_str(), F_OK) != 0;
    });
  }

  void sample_rss() {
    uint64_t now = clock_ns();
    if (now - last_rss_ns_ < kRssEveryNs) return;
    last_rss_ns_ = now;
    for (LiveImage& image : images_) {
      char text[128];
      ssize_t n = image.statm < 0 ? 0 : pread(image.statm, text, sizeof text - 1, 0);
      if (n <= 0) continue;
      text[n] = 0;
      unsigned long pages = 0;
      sscanf(text, "%*u %lu", &pages);
      uint64_t bytes = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
      image.end.peak_rss_bytes = std::max(image.end.peak_rss_bytes, bytes);
      wire::pack(wire::RssRecord{image.end.image, tick_now(), bytes}, &rss_);
    }
  }

  uint64_t shared_bytes() const {
    struct stat info;
    return fstat(session_.memory_fd(), &info) == 0 ? static_cast<uint64_t>(info.st_blocks) * 512
                                                   : 0;
  }

  void note(const std::string& text) {
    wire::Packer payload;
    wire::pack(wire::NoteRecord{text}, &payload);
    file_.append(ChunkType::kNote, payload.result(), 0, 0);
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
        program_ended(message);
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

  void program_ended(const LauncherMessage& message) {
    program_ended_ = true;
    program_ended_ns_ = clock_ns();
    program_status_ = message.status;
    // The program may have ended before we ever saw it.
    welcome_newcomers();
    for (size_t i = 0; i < images_.size(); ++i) {
      if (images_[i].pid != options_.launched_pid) continue;
      images_[i].end.peak_rss_bytes =
          std::max(images_[i].end.peak_rss_bytes, message.max_rss_bytes);
      end_image(i, tick_now());
      break;
    }
    for (size_t i = pending_.size(); i-- > 0;) {
      if (pending_[i].pid != options_.launched_pid) continue;
      set_exit(&pending_[i].end, message.status);
      pending_[i].end.peak_rss_bytes =
          std::max(pending_[i].end.peak_rss_bytes, message.max_rss_bytes);
      write_end(pending_[i].end);
      close(pending_[i].pidfd);
      pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(i));
    }
  }

  void warn_of_survivors() {
    if (!program_ended_ || warned_ || clock_ns() - program_ended_ns_ < kDaemonPatienceNs) return;
    size_t left = images_.size() + execs_under_way();
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
    while (!images_.empty()) end_image(images_.size() - 1, tick_now());
    // A parent may be a moment late in waiting for its child.
    for (int i = 0; i < 20 && !pending_.empty(); ++i) {
      learn_exits();
      if (!pending_.empty()) usleep(1000);
    }
    pass();
    wire::EndRecord end;
    uint64_t passed = cycles_ordered() - start_cycles_, passed_ns = clock_ns() - start_ns_;
    end.tick = tick_now();
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

  struct Known {
    ImageId id;
    int pid;
    std::string executable;
    std::vector<std::string> command;
  };

  Session& session_;
  trace::FileWriter& file_;
  int launcher_;
  const CollectorOptions& options_;
  wire::SharedMemory shared_;
  Drain drain_;
  std::optional<re2::RE2> only_;
  std::vector<LiveImage> images_;
  std::vector<PendingExit> pending_;
  // Who has used an image slot, by (slot, stamp): a child may outlive its parent.
  std::map<std::pair<uint32_t, uint32_t>, Known> slot_history_;
  uint64_t image_count_ = 0;
  uint64_t memory_inode_ = 0;
  wire::Packer rss_;
  uint64_t last_pass_ns_ = 0, last_rss_ns_ = 0, last_sweep_ns_ = 0, last_end_ns_ = 0;
  uint64_t memory_used_ns_ = 0;  // When it was last seen in use, with no image to be seen.
  uint64_t start_ns_ = 0, start_cycles_ = 0;
  bool program_ended_ = false, warned_ = false;
  uint64_t program_ended_ns_ = 0;
  std::optional<int> program_status_;  // As the launcher told it.
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
