// SPDX-License-Identifier: Apache-2.0
// The process images of a recording, as they come and go:
//
//     one joins   by the socket (an exec'd image), or by taking an image slot in the shared
//                 memory (a forked child)
//     one ends    when its process ends, or execs another program
//
// Both are written to the trace, with what is to be said of an image as a whole.

#pragma once

#include <poll.h>
#include <re2/re2.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "collect/collector.h"
#include "collect/drain.h"
#include "collect/process_info.h"
#include "collect/session.h"
#include "trace/file_writer.h"
#include "wire/lane.h"
#include "wire/records.h"

namespace malloscope::collect {

// What goes on for longer than this after the program's end is a daemon.
inline constexpr uint64_t kDaemonPatienceNs = 2'000'000'000;

class ProcessImages {
 public:
  // `has_launcher`: the first of them was started by `run`, not preloaded by itself.
  ProcessImages(Session* session, trace::FileWriter* file, Drain* drain,
                const CollectorOptions& options, bool has_launcher);

  // ---- joining ----

  // All that have connected, and the children that have been forked.
  void welcome_newcomers();
  // Those that have been forked alone: whoever reads all events up to some moment asks for them
  // after it, or what the youngest have done would be told of behind what came later elsewhere.
  void adopt_children();
  // One that has connected. The caller closes `fd`.
  void welcome(int fd);

  // ---- while they run ----

  size_t count() const { return live_.size(); }
  // Descriptors that become readable when one ends.
  void watch(std::vector<pollfd>* fds) const;
  // RssRecords and VmRecords.
  void sample_memory(wire::Packer* rss, wire::Packer* vm);
  void note_peak_rss();
  // Whether the image in this slot runs, and has no such thread. False also if nobody can tell.
  bool is_thread_gone(uint32_t slot, int tid) const;

  // ---- ending ----

  void look_for_ends();
  // What the launcher knows of the program that it started.
  void end_program(int status, uint64_t max_rss_bytes);
  // How those have ended of which it was not known yet. Of the program the launcher knows more,
  // if it is still to tell.
  void learn_exits(bool launcher_will_tell);
  void end_all();
  bool all_exits_known() const { return pending_.empty(); }

  // A child that was forked or exec'd may not have shown itself yet when its parent ends.
  bool more_may_come();
  // Processes that are about to join. Those that died on the way are not.
  size_t execs_under_way();

  // What one of them did to the recording; empty if none did.
  const std::string& damage() const { return damage_; }

 private:
  // An image whose process has not ended.
  struct Live {
    uint32_t slot = 0;
    int pid = 0;
    int pidfd = -1;
    int statm = -1;
    unsigned long vm_pages = 0;  // As they were last told.
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

  struct Known {
    ImageId id;
    int pid;
    std::string executable;
    std::string folder;
    std::vector<std::string> command;
  };

  void adopt_child(uint32_t slot);
  bool wanted(const wire::ImageStartRecord& start) const;
  bool claim(uint32_t slot);
  void add_image(uint32_t slot, wire::ImageStartRecord* start);
  ImageId image_of_process(int pid) const;

  void end_by_exec(int pid, wire::ImageStartRecord* successor);
  bool has_become_another(Live& image);
  uint64_t end_image(size_t index);
  void tell_what_is_missing(const DrainedImage& drained, Live* image);
  void write_end(const wire::ImageEndRecord& end);
  void settle(size_t index, int status);
  void free_slot(uint32_t slot);
  void note(const std::string& text);

  Session& session_;
  trace::FileWriter& file_;
  Drain& drain_;
  const CollectorOptions& options_;
  const bool has_launcher_;
  wire::SharedMemory shared_;
  std::optional<re2::RE2> only_;
  std::vector<Live> live_;
  std::vector<PendingExit> pending_;
  // Who has used an image slot, by (slot, stamp): a child may outlive its parent.
  std::map<std::pair<uint32_t, uint32_t>, Known> slot_history_;
  uint64_t image_count_ = 0;
  uint64_t last_end_ns_ = 0;
  uint64_t memory_used_ns_ = 0;        // When it was last seen in use, with no image to be seen.
  std::optional<int> program_status_;  // As the launcher told it.
  std::string damage_;
};

}  // namespace malloscope::collect
