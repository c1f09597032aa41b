// SPDX-License-Identifier: Apache-2.0
// Runs of the real player on workloads made up here.

#include "replay/trial.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "replay/writer.h"

namespace malloscope::replay {
namespace {

namespace fs = std::filesystem;

std::string player() {
  return fs::read_symlink("/proc/self/exe").parent_path() / "../lib/malloscope/malloscope-player";
}

// A file that is gone with the test.
struct MadeUp {
  std::string path = testing::TempDir() + "malloscope-trial-" + std::to_string(getpid());
  ~MadeUp() { unlink(path.c_str()); }

  // One track of calls, a millisecond apart, and so many without any.
  MadeUp(const std::vector<Op>& calls, uint32_t empty_tracks) {
    int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    WorkloadWriter writer(fd, path);
    writer.append(0, {.kind = OpKind::kNewSlots, .slot = 0, .size = 16});
    FileTail tail;
    tail.threads = 1;
    tail.slots = 16;
    tail.ns_per_tick = 1e6;
    for (const Op& op : calls) {
      writer.append(0, op);
      ++tail.calls[static_cast<int>(op.kind)];
    }
    std::vector<TrackPlace> tracks(1 + empty_tracks);
    tracks[0] = {calls.size() + 1, 16, 0};
    Result<FileTail> written = writer.finish(tail, std::move(tracks));
    EXPECT_TRUE(written) << written.error().sentence;
  }
};

Trial run(const MadeUp& made_up, const TrialOptions& options) {
  Result<WorkloadReader> workload = WorkloadReader::open(made_up.path);
  EXPECT_TRUE(workload) << workload.error().sentence;
  return workload ? run_trial(*workload, find_allocator("glibc"), options) : Trial();
}

// The most threads that a child of ours has had; looked at until the end.
class ThreadCounter {
 public:
  ThreadCounter() : self_(gettid()), watcher_([this] { watch(); }) {}
  ~ThreadCounter() {
    if (watcher_.joinable()) most();
  }
  size_t most() {
    over_ = true;
    watcher_.join();
    return most_;
  }

 private:
  void watch() {
    while (!over_) {
      std::ifstream children("/proc/self/task/" + std::to_string(self_) + "/children");
      for (int pid = 0; children >> pid;) {
        std::error_code gone;
        fs::directory_iterator tasks("/proc/" + std::to_string(pid) + "/task", gone);
        size_t threads = 0;
        for (; !gone && tasks != fs::directory_iterator(); tasks.increment(gone)) ++threads;
        most_ = std::max(most_, threads);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  int self_;
  size_t most_ = 0;
  std::atomic<bool> over_ = false;
  std::thread watcher_;
};

TEST(Trial, TracksWithoutOperationsStartNoThreads) {
  MadeUp made_up({{.kind = OpKind::kMalloc, .slot = 0, .size = 100, .tick = 1},
                  {.kind = OpKind::kMalloc, .slot = 1, .size = 200, .tick = 200},
                  {.kind = OpKind::kFree, .slot = 0, .tick = 201}},
                 300);
  ThreadCounter threads;
  Trial trial = run(made_up, {.player = player(), .speed = 1});
  EXPECT_EQ(threads.most(), 1u);
  EXPECT_EQ(trial.error, "");
  EXPECT_EQ(trial.calls, 3u);
  // Whoever is the only one to call knows the sum to the byte.
  EXPECT_EQ(trial.max_ideal_bytes, 300u);
  EXPECT_EQ(trial.end_ideal_bytes, 200u);
}

}  // namespace
}  // namespace malloscope::replay
