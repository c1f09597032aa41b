// SPDX-License-Identifier: Apache-2.0
// An image is known here by its slot in the shared memory and by its process. The slot is given
// to another when the image has ended, with a new stamp, so (slot, stamp) names one for good: by
// that a forked child names its parent, which may be gone by the time that we look.
//
// What the kernel tells of a process may come late, in any order or not at all, so the end of an
// image is written as soon as it is seen, and once more when it is known how its process ended.

#include "collect/process_images.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/clock.h"
#include "collect/greeting.h"
#include "collect/program_check.h"

namespace malloscope::collect {

using wire::ChunkType;
using wire::ImageState;

ProcessImages::ProcessImages(Session* session, trace::FileWriter* file, Drain* drain,
                             const CollectorOptions& options, bool has_launcher)
    : session_(*session),
      file_(*file),
      drain_(*drain),
      options_(options),
      has_launcher_(has_launcher),
      shared_(session->shared()) {
  if (!options.only.empty()) only_.emplace(options.only);
}

// ---- joining ----

void ProcessImages::welcome_newcomers() {
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
void ProcessImages::adopt_children() {
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
        if (!orphans && !slot_history_.contains({image.parent_slot, image.parent_stamp})) continue;
        adopt_child(slot);
        again = true;
      }
    }
  }
}

bool ProcessImages::wanted(const wire::ImageStartRecord& start) const {
  if (!options_.follow && static_cast<int>(start.pid) != options_.launched_pid) return false;
  if (!only_) return true;
  auto matches = [&](const std::string& path) {
    return re2::RE2::PartialMatch(path.substr(path.rfind('/') + 1), *only_);
  };
  // What was typed may be a link to a file of another name.
  return matches(start.executable) || (!start.command.empty() && matches(start.command[0]));
}

void ProcessImages::welcome(int fd) {
  std::optional<Newcomer> newcomer = hear_newcomer(fd);
  if (!newcomer) return;
  int pid = newcomer->pid;
  for (std::atomic<int32_t>& place : shared_.control().execs)
    if (place.load(std::memory_order_relaxed) == pid) place.store(0, std::memory_order_relaxed);
  if (newcomer->leaves) {
    note(fmt::format("pid {} was not recorded: the collector was stopped when it started", pid));
    return;
  }

  wire::ImageStartRecord start;
  start.pid = static_cast<uint64_t>(pid);
  start.parent_pid = static_cast<uint64_t>(parent_of(pid));
  start.executable = executable_of(pid);
  if (start.executable.empty()) start.executable = newcomer->executable;
  start.command = command_of(pid);
  if (pid == options_.launched_pid && start.command.empty()) start.command = options_.command;
  start.start_tick = std::min(newcomer->cycles >> session_.tick_shift(), session_.tick_now());
  // What ran in this process until now has been replaced.
  end_by_exec(pid, &start);
  if (!wanted(start)) return;
  bool first = pid == options_.launched_pid && !start.parent;
  start.origin = !first ? 2 : has_launcher_ ? 0 : 3;
  if (!start.parent) start.parent = raw(image_of_process(static_cast<int>(start.parent_pid)));

  uint32_t slot = 0;
  while (slot < wire::kImages && !claim(slot)) ++slot;
  if (slot == wire::kImages) {
    note(fmt::format("pid {} ({}) was not recorded: more than {} processes at once", pid,
                     start.executable, wire::kImages));
    return;
  }
  shared_.image(slot).pid = pid;
  shared_.image(slot).joined.store(0, std::memory_order_relaxed);
  add_image(slot, &start);
  live_.back().by_socket = true;
  shared_.image(slot).state.store(static_cast<uint32_t>(ImageState::kLive),
                                  std::memory_order_release);
  welcome_into(slot, session_, fd);
}

bool ProcessImages::claim(uint32_t slot) {
  uint32_t free = static_cast<uint32_t>(ImageState::kFree);
  return !drain_.image(slot) && shared_.image(slot).state.compare_exchange_strong(
                                    free, static_cast<uint32_t>(ImageState::kClaimed));
}

void ProcessImages::adopt_child(uint32_t slot) {
  wire::ImageSlot& image = shared_.image(slot);
  wire::ImageStartRecord start;
  // It knows itself by the pid of its own namespace. One that is gone already keeps that.
  auto parent = slot_history_.find({image.parent_slot, image.parent_stamp});
  bool parent_known = parent != slot_history_.end();
  int pid = parent_known && shares_pid_namespace(parent->second.pid)
                ? image.pid
                : find_process(image.pid, session_.memory_inode());
  start.pid = static_cast<uint64_t>(pid ? pid : image.pid);
  start.origin = 1;
  start.start_tick = image.start_tick;
  start.forked_tick = image.forked_tick;
  if (parent_known) {
    start.parent = raw(parent->second.id);
    start.parent_pid = static_cast<uint64_t>(parent->second.pid);
    start.executable = parent->second.executable;
    start.command = parent->second.command;
  }
  add_image(slot, &start);
  if (pid == 0 && live_.back().pidfd >= 0) {
    close(live_.back().pidfd);  // Of another process that has the number now.
    live_.back().pidfd = -1;
  }
}

void ProcessImages::add_image(uint32_t slot, wire::ImageStartRecord* start) {
  wire::ImageSlot& shared = shared_.image(slot);
  start->image = ++image_count_;
  auto drained = std::make_unique<DrainedImage>();
  drained->id = ImageId{static_cast<uint32_t>(start->image)};
  drained->stamp = shared.stamp.load(std::memory_order_relaxed);
  drained->pid = static_cast<int>(start->pid);
  drained->executable = start->executable;
  drained->folder = folder_of(drained->pid);
  // A child that is gone already began where its parent did, as far as anybody knows.
  if (auto parent = slot_history_.find({shared.parent_slot, shared.parent_stamp});
      drained->folder.empty() && start->origin == 1 && parent != slot_history_.end())
    drained->folder = parent->second.folder;
  slot_history_[{slot, drained->stamp}] = {drained->id, drained->pid, start->executable,
                                           drained->folder, start->command};
  drain_.add_image(slot, std::move(drained));
  wire::Packer payload;
  wire::pack(*start, &payload);
  file_.append(ChunkType::kImageStart, payload.result(), start->start_tick, start->start_tick);

  Live live;
  live.slot = slot;
  live.pid = static_cast<int>(start->pid);
  live.pidfd = live.pid > 0 ? open_pidfd(live.pid) : -1;
  live.executable = start->executable;
  live.executable_id = executable_id_of(live.pid);
  live.statm = open(fmt::format("/proc/{}/statm", live.pid).c_str(), O_RDONLY | O_CLOEXEC);
  live.end.image = start->image;
  live_.push_back(live);
}

ImageId ProcessImages::image_of_process(int pid) const {
  for (const Live& image : live_)
    if (image.pid == pid) return ImageId{static_cast<uint32_t>(image.end.image)};
  return ImageId::kNone;
}

// ---- while they run ----

void ProcessImages::watch(std::vector<pollfd>* fds) const {
  for (const Live& image : live_)
    if (image.pidfd >= 0) fds->push_back({image.pidfd, POLLIN, 0});
}

void ProcessImages::sample_memory(wire::Packer* rss, wire::Packer* vm) {
  for (Live& image : live_) {
    char text[128];
    ssize_t n = image.statm < 0 ? 0 : pread(image.statm, text, sizeof text - 1, 0);
    if (n <= 0) continue;
    text[n] = 0;
    unsigned long mapped = 0, resident = 0;
    sscanf(text, "%lu %lu", &mapped, &resident);
    auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    uint64_t tick = session_.tick_now(), bytes = resident * page;
    image.end.peak_rss_bytes = std::max(image.end.peak_rss_bytes, bytes);
    wire::pack(wire::RssRecord{image.end.image, tick, bytes}, rss);
    if (mapped == image.vm_pages) continue;
    image.vm_pages = mapped;
    wire::pack(wire::VmRecord{image.end.image, tick, mapped * page}, vm);
  }
}

void ProcessImages::note_peak_rss() {
  for (Live& image : live_)
    image.end.peak_rss_bytes = std::max(image.end.peak_rss_bytes, peak_rss_of(image.pid));
}

bool ProcessImages::is_thread_gone(uint32_t slot, int tid) const {
  auto image = std::ranges::find(live_, slot, &Live::slot);
  if (image == live_.end() || tid <= 0) return false;  // What ended threads share; not known.
  std::string task = fmt::format("/proc/{}/task", image->pid);
  return access(task.c_str(), X_OK) == 0 &&
         access(fmt::format("{}/{}", task, tid).c_str(), F_OK) != 0;
}

// ---- ending ----

static void set_exit(wire::ImageEndRecord* end, int status) {
  end->exit_kind = WIFSIGNALED(status) ? wire::kExitSignal : wire::kExitCode;
  end->exit_value =
      static_cast<uint64_t>(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

void ProcessImages::end_by_exec(int pid, wire::ImageStartRecord* successor) {
  for (size_t i = 0; i < live_.size(); ++i) {
    if (live_[i].pid != pid) continue;
    successor->parent = live_[i].end.image;
    live_[i].end.exit_kind = wire::kExitExec;
    successor->start_tick = std::max(successor->start_tick, end_image(i));
    return;
  }
}

void ProcessImages::look_for_ends() {
  for (size_t i = live_.size(); i-- > 0;) {
    Live& image = live_[i];
    if (has_become_another(image)) {
      image.end.exit_kind = wire::kExitExec;
      end_image(i);
      continue;
    }
    bool ended = image.pidfd < 0;
    if (!ended) {
      pollfd fd = {image.pidfd, POLLIN, 0};
      ended = poll(&fd, 1, 0) > 0 && (fd.revents & POLLIN);
    }
    if (ended) end_image(i);
  }
}

// Whether its process runs another program by now, which has had time to join but did not.
bool ProcessImages::has_become_another(Live& image) {
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

uint64_t ProcessImages::end_image(size_t index) {
  Live image = std::move(live_[index]);
  live_.erase(live_.begin() + static_cast<ptrdiff_t>(index));
  last_end_ns_ = clock_ns();
  wire::ImageSlot& shared = shared_.image(image.slot);
  // In the same epoch as all that came before in other processes: a child frees what its
  // parent has allocated.
  uint64_t pass_tick = session_.tick_now();
  adopt_children();
  drain_.pass(pass_tick);
  std::unique_ptr<DrainedImage> drained = drain_.take_out(image.slot);
  // It is told of after all that others did until now, so that is when it ended: whoever looks at
  // a part of the time is to see the same as who reads all of it.
  image.end.end_tick = std::max(pass_tick, drained->last_tick);
  image.end.lost = drained->lost;
  image.end.peak_rss_bytes = std::max(image.end.peak_rss_bytes, shared.peak_rss_bytes);
  image.end.truncated_stacks = shared.truncated_stacks.load(std::memory_order_relaxed);
  image.end.unwind_failures = shared.unwind_failures.load(std::memory_order_relaxed);
  image.end.recorder_rss_bytes =
      session_.memory_bytes() + shared.private_bytes.load(std::memory_order_relaxed);
  tell_what_is_missing(*drained, &image);
  if (image.pid == options_.launched_pid && program_status_) set_exit(&image.end, *program_status_);
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
  file_.end_epoch(image.end.end_tick);
  if (image.pidfd >= 0) close(image.pidfd);
  if (image.statm >= 0) close(image.statm);
  free_slot(image.slot);
  return image.end.end_tick;
}

// In the trace's notes, and in the image's own counts.
void ProcessImages::tell_what_is_missing(const DrainedImage& drained, Live* image) {
  const wire::ImageSlot& shared = shared_.image(image->slot);
  uint64_t unclaimed = shared.unclaimed_children.load(std::memory_order_relaxed);
  uint64_t sandboxed = shared.sandboxed_children.load(std::memory_order_relaxed);
  image->end.not_followed = drained.not_followed.size() + unclaimed + sandboxed;
  for (const NotFollowed& other : drained.not_followed)
    note(fmt::format("{}, started by pid {}, was not recorded: it {}", other.program, image->pid,
                     words_for(other.why)));
  if (drained.garbled_lanes) {
    image->end.lost += drained.garbled_lanes;  // At least so many.
    if (damage_.empty()) damage_ = fmt::format("pid {} damaged the recorder's memory", image->pid);
    note(
        fmt::format("{} thread{} of pid {} damaged the recorder's memory; their later events "
                    "are missing",
                    drained.garbled_lanes, drained.garbled_lanes == 1 ? "" : "s", image->pid));
  }
  if (image->by_socket && !shared.joined.load(std::memory_order_acquire)) {
    ++image->end.not_followed;
    note(
        fmt::format("pid {} ({}) was not recorded: it could not map the recorder's memory "
                    "(limits of memory or of open files?)",
                    image->pid, image->executable));
  }
  auto note_children = [&](uint64_t count, const char* why) {
    if (count)
      note(fmt::format("{} forked {} of pid {} went unrecorded: {}", count,
                       count == 1 ? "child" : "children", image->pid, why));
  };
  note_children(unclaimed, "too many processes at once");
  note_children(sandboxed, "forked inside a sandbox (seccomp)");
}

void ProcessImages::write_end(const wire::ImageEndRecord& end) {
  wire::Packer payload;
  wire::pack(end, &payload);
  file_.append(ChunkType::kImageEnd, payload.result(), end.end_tick, end.end_tick);
}

void ProcessImages::free_slot(uint32_t slot) {
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

void ProcessImages::end_program(int status, uint64_t max_rss_bytes) {
  program_status_ = status;
  // It may have ended before we ever saw it.
  welcome_newcomers();
  auto with_peak = [&](wire::ImageEndRecord* end) {
    end->peak_rss_bytes = std::max(end->peak_rss_bytes, max_rss_bytes);
  };
  auto program = std::ranges::find(live_, options_.launched_pid, &Live::pid);
  if (program != live_.end()) {
    with_peak(&program->end);
    end_image(static_cast<size_t>(program - live_.begin()));
  }
  for (size_t i = pending_.size(); i-- > 0;) {
    if (pending_[i].pid != options_.launched_pid) continue;
    with_peak(&pending_[i].end);
    settle(i, status);
  }
}

void ProcessImages::learn_exits(bool launcher_will_tell) {
  for (size_t i = pending_.size(); i-- > 0;) {
    if (launcher_will_tell && pending_[i].pid == options_.launched_pid) continue;
    if (std::optional<int> status = exit_status_of(pending_[i].pidfd)) settle(i, *status);
  }
}

// Writes how it ended, which had been left open.
void ProcessImages::settle(size_t index, int status) {
  PendingExit& pending = pending_[index];
  set_exit(&pending.end, status);
  write_end(pending.end);
  close(pending.pidfd);
  pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(index));
}

void ProcessImages::end_all() {
  while (!live_.empty()) end_image(live_.size() - 1);
}

bool ProcessImages::more_may_come() {
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

size_t ProcessImages::execs_under_way() {
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

void ProcessImages::note(const std::string& text) {
  wire::Packer payload;
  wire::pack(wire::NoteRecord{text}, &payload);
  file_.append(ChunkType::kNote, payload.result(), 0, 0);
}

}  // namespace malloscope::collect
