// SPDX-License-Identifier: Apache-2.0
#include "replay/trial.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <optional>

#include "base/clock.h"

extern char** environ;

namespace malloscope::replay {
namespace {

constexpr size_t kMostSamples = 1000;
constexpr uint64_t kEnoughTimes = 50'000;

// The player, and what is shared with it. Whatever happens, it is gone when this is.
class Running {
 public:
  Running(const WorkloadReader& workload, const Setup& setup, const TrialOptions& options);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  const std::string& problem() const { return problem_; }
  Board& board() { return *board_; }
  int pid() const { return pid_; }

  // True once the player has come so far; false if it has ended before.
  bool reached(State state) const { return board_->state.load() >= state; }
  void set(State state) {
    board_->state.store(state);
    syscall(SYS_futex, &board_->state, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
  }
  // Whether it has ended; how is in `status`.
  bool ended() {
    if (status_) return true;
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
    return status_.has_value();
  }
  int status() const { return status_.value_or(0); }
  void kill() {
    if (pid_ > 0 && !status_) ::kill(pid_, SIGKILL);
  }

 private:
  std::string problem_;
  size_t board_bytes_;
  Board* board_ = nullptr;
  int pid_ = 0;
  std::optional<int> status_;
  std::vector<int> others_;  // Children that are not the player's.
};

// Of this process: those that it started, and as a subreaper, theirs whose parents have ended.
std::vector<int> children() {
  std::vector<int> pids;
  std::ifstream list(fmt::format("/proc/self/task/{}/children", getpid()));
  for (int pid = 0; list >> pid;) pids.push_back(pid);
  return pids;
}

std::vector<std::string> environment_for(const Setup& setup) {
  std::vector<std::string> environment;
  for (char** at = environ; *at; ++at) {
    std::string_view variable = *at;
    std::string_view name = variable.substr(0, variable.find('='));
    // Of two with one name, the first would be found.
    bool is_set = std::ranges::any_of(setup.environment,
                                      [&](const auto& setting) { return setting.first == name; });
    if (!is_allocator_variable(name) && !is_set) environment.emplace_back(*at);
  }
  for (const auto& [name, value] : setup.environment) environment.push_back(name + "=" + value);
  if (!setup.library.empty()) environment.push_back("LD_PRELOAD=" + setup.library);
  return environment;
}

std::vector<char*> pointers(std::vector<std::string>* words) {
  std::vector<char*> result;
  for (std::string& word : *words) result.push_back(word.data());
  result.push_back(nullptr);
  return result;
}

Running::Running(const WorkloadReader& workload, const Setup& setup, const TrialOptions& options)
    : board_bytes_(Board::bytes(workload.tail().tracks)) {
  int board_fd = memfd_create("malloscope-board", MFD_CLOEXEC);
  if (board_fd < 0 || ftruncate(board_fd, static_cast<off_t>(board_bytes_)) != 0) {
    problem_ = fmt::format("no memory can be shared with the player: {}", strerror(errno));
    if (board_fd >= 0) close(board_fd);
    return;
  }
  void* memory = mmap(nullptr, board_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, board_fd, 0);
  if (memory == MAP_FAILED) {
    problem_ = fmt::format("no memory can be shared with the player: {}", strerror(errno));
    close(board_fd);
    return;
  }
  board_ = new (memory) Board;
  board_->tracks = workload.tail().tracks;
  for (uint32_t i = 0; i < board_->tracks; ++i) new (&board_->track(i)) TrackBoard;
  board_->touch = options.touch;
  board_->verify = options.verify;
  board_->speed = options.speed;
  board_->trim_ticks = static_cast<uint64_t>(static_cast<double>(options.trim_every_ns) /
                                             workload.tail().ns_per_tick);
  uint64_t calls = 0;
  for (uint64_t of_kind : workload.tail().calls) calls += of_kind;
  board_->sampling =
      static_cast<uint32_t>(std::clamp<uint64_t>(calls / kEnoughTimes, 1, kSampling));
  board_->preloaded = !setup.library.empty();
  board_->launcher = getpid();

  // The numbers that they have in the player.
  constexpr int kWorkload = 3, kBoard = 4;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // First out of the way, in case one is where the other is to be.
  int workload_copy = fcntl(workload.fd(), F_DUPFD_CLOEXEC, kBoard + 1);
  int board_copy = fcntl(board_fd, F_DUPFD_CLOEXEC, kBoard + 1);
  if (workload_copy < 0 || board_copy < 0) {
    problem_ = fmt::format("the player cannot be given its files: {}", strerror(errno));
    posix_spawn_file_actions_destroy(&actions);
    for (int fd : {workload_copy, board_copy, board_fd})
      if (fd >= 0) close(fd);
    return;
  }
  posix_spawn_file_actions_adddup2(&actions, workload_copy, kWorkload);
  posix_spawn_file_actions_adddup2(&actions, board_copy, kBoard);
  // Whatever the allocator has to say, standard output is the answer's.
  if (fcntl(STDERR_FILENO, F_GETFD) >= 0)
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  else
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  // An allocator may start processes of its own. They become ours when the player has ended, and
  // stay in our group, so that ^C and ^Z reach them.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  others_ = children();
  std::vector<std::string> words = {options.player, std::to_string(kWorkload),
                                    std::to_string(kBoard)};
  std::vector<std::string> environment = environment_for(setup);
  int problem = posix_spawn(&pid_, options.player.c_str(), &actions, nullptr,
                            pointers(&words).data(), pointers(&environment).data());
  posix_spawn_file_actions_destroy(&actions);
  close(workload_copy);
  close(board_copy);
  close(board_fd);
  if (problem != 0) {
    pid_ = 0;
    problem_ = fmt::format("{} cannot be started: {}", options.player, strerror(problem));
  }
}

Running::~Running() {
  auto end = [](int pid) {
    ::kill(pid, SIGKILL);
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  };
  if (pid_ > 0 && !status_) end(pid_);
  // Each one that ends may leave us its own.
  for (bool any = pid_ > 0; any;) {
    any = false;
    for (int pid : children())
      if (std::ranges::find(others_, pid) == others_.end()) {
        end(pid);
        any = true;
      }
  }
  if (board_) munmap(board_, board_bytes_);
}

// What the kernel says of a process's memory.
struct Memory {
  uint64_t rss = 0, highest_rss = 0, vm = 0, highest_vm = 0;
};

Memory memory_of(int pid) {
  std::string path = fmt::format("/proc/{}/status", pid);
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  // All of it: before the memory stand the groups of the user, who may be in thousands.
  std::string status;
  char text[4096];
  for (ssize_t size = 0; (size = read(fd, text, sizeof text)) > 0;)
    status.append(text, static_cast<size_t>(size));
  close(fd);
  auto kib = [&](std::string_view name) -> uint64_t {
    size_t at = status.find(name);
    if (at == std::string::npos) return 0;
    uint64_t value = 0;
    for (at += name.size(); at < status.size() && status[at] != '\n'; ++at)
      if (status[at] >= '0' && status[at] <= '9')
        value = value * 10 + static_cast<uint64_t>(status[at] - '0');
    return value << 10;
  };
  return {kib("\nVmRSS:"), kib("\nVmHWM:"), kib("\nVmSize:"), kib("\nVmPeak:")};
}

void sleep_ns(uint64_t ns) {
  timespec time = {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  nanosleep(&time, nullptr);
}

std::string sentence_of(const Board& board) {
  std::string where =
      board.fault_op == kAtTheEnd
          ? " (seen at the end)"
          : fmt::format(" (thread {}, operation {})", board.fault_track + 1, board.fault_op + 1);
  switch (board.fault.load()) {
    case Fault::kNothing:
      break;
    case Fault::kCannotRead:
      return fmt::format("the player cannot read the workload: {}",
                         strerror(static_cast<int>(board.fault_a)));
    case Fault::kBadWorkload:
      return "the workload is damaged" + where;
    case Fault::kNoMemory:
      return "there is not enough memory for the player itself";
    case Fault::kNoThread:
      return fmt::format("no thread could be started: {}",
                         strerror(static_cast<int>(board.fault_a)));
    case Fault::kNotAllocator:
      return "it is not an allocator: malloc, calloc, realloc and free are not all in it";
    case Fault::kNoAligned:
      return "it has neither memalign nor aligned_alloc nor posix_memalign, which are called";
    case Fault::kMisaligned:
      return fmt::format("a block of {} bytes is not aligned to {}{}", board.fault_a, board.fault_b,
                         where);
    case Fault::kOverwritten:
      return fmt::format("byte {} of a live block of {} bytes was overwritten{}", board.fault_b,
                         board.fault_a, where);
    case Fault::kNotZero:
      return fmt::format("byte {} of {} bytes from calloc is not zero{}", board.fault_b,
                         board.fault_a, where);
    case Fault::kNotCopied:
      return fmt::format("byte {} was lost when a block was reallocated to {} bytes{}",
                         board.fault_b, board.fault_a, where);
  }
  return {};
}

std::string how_it_ended(const Board& board, int status) {
  if (std::string fault = sentence_of(board); !fault.empty()) return fault;
  uint64_t done = 0;
  for (uint32_t i = 0; i < board.tracks; ++i) done += board.track(i).done.load();
  std::string when = board.state.load() < State::kReady ? "before the first call"
                                                        : fmt::format("after {} operations", done);
  if (WIFSIGNALED(status))
    return fmt::format("it crashed {}: {}", when, strsignal(WTERMSIG(status)));
  return fmt::format("it ended {}, with exit code {}", when, WEXITSTATUS(status));
}

uint64_t percentile(const uint64_t (&histogram)[kCycleBuckets], uint64_t weight, double share) {
  auto wanted = static_cast<uint64_t>(static_cast<double>(weight) * share);
  uint64_t seen = 0;
  for (int i = 0; i < kCycleBuckets; ++i)
    if ((seen += histogram[i]) > wanted) return bucket_floor(i);
  return 0;
}

double ratio(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

void add_up(const Board& board, Trial* trial) {
  auto all = std::make_unique<TrackCounts>();
  auto add = [](Timed* to, const Timed& from) {
    to->weight += from.weight;
    to->cycles += from.cycles;
  };
  auto add_work = [](Work* to, const Work& from) {
    to->ops += from.ops;
    to->cpu_ns += from.cpu_ns;
  };
  for (uint32_t i = 0; i < board.tracks; ++i) {
    const TrackCounts& track = board.track(i).counts;
    for (int k = 0; k < kCallKinds; ++k) all->calls[k] += track.calls[k];
    all->failed += track.failed;
    all->interrupted += track.interrupted;
    all->slow_waits += track.slow_waits;
    all->cpu_ns += track.cpu_ns;
    all->wait_cpu_ns += track.wait_cpu_ns;
    all->ops += track.ops;
    add_work(&all->decoding, track.decoding);
    add_work(&all->rehearsing, track.rehearsing);
    add(&all->touches, track.touches);
    for (int k = 0; k < kCallGroups; ++k) {
      add(&all->groups[k], track.groups[k]);
      for (int b = 0; b < kCycleBuckets; ++b) all->histogram[k][b] += track.histogram[k][b];
      for (int s = 0; s < kSizeClasses; ++s) add(&all->sizes[k][s], track.sizes[k][s]);
    }
  }
  for (int k = 0; k < kCallKinds; ++k) {
    trial->groups[static_cast<int>(group_of(static_cast<OpKind>(k)))].calls += all->calls[k];
    trial->calls += all->calls[k];
  }
  trial->ns_per_cycle = board.cycles_per_ns > 0 ? 1 / board.cycles_per_ns : 0;
  auto ns = [&](double cycles) { return static_cast<uint64_t>(cycles * trial->ns_per_cycle); };
  auto mean = [](const Timed& timed) {
    return ratio(static_cast<uint64_t>(std::max<int64_t>(0, timed.cycles)), timed.weight);
  };
  double allocator_cycles = 0;
  for (int k = 0; k < kCallGroups; ++k) {
    CallFigures& figures = trial->groups[k];
    figures.timed = all->groups[k].weight > 0;
    figures.mean_cycles = mean(all->groups[k]);
    figures.p50_cycles = percentile(all->histogram[k], all->groups[k].weight, 0.5);
    figures.p99_cycles = percentile(all->histogram[k], all->groups[k].weight, 0.99);
    allocator_cycles += figures.mean_cycles * static_cast<double>(figures.calls);
  }
  for (int k = 0; k < kCallGroups; ++k)
    for (int s = 0; s < kSizeClasses; ++s)
      trial->sizes[k][s] = {all->sizes[k][s].weight, mean(all->sizes[k][s])};
  trial->allocator_ns = ns(allocator_cycles);
  trial->touch_ns = ns(mean(all->touches) * static_cast<double>(trial->calls));
  trial->cpu_ns = all->cpu_ns;
  trial->wait_ns = all->wait_cpu_ns;
  trial->failed = all->failed;
  trial->interrupted = all->interrupted;
  trial->slow_waits = all->slow_waits;
  trial->player_ns_per_call = (ratio(all->decoding.cpu_ns, all->decoding.ops) +
                               ratio(all->rehearsing.cpu_ns, all->rehearsing.ops)) *
                              ratio(all->ops, trial->calls);
}

}  // namespace

std::vector<Sample> thin_out(const std::vector<Sample>& samples, size_t most) {
  if (samples.size() <= most) return samples;
  std::vector<Sample> kept;
  for (size_t i = 0; i < most; ++i) {
    auto from = samples.begin() + static_cast<ptrdiff_t>(samples.size() * i / most);
    auto to = samples.begin() + static_cast<ptrdiff_t>(samples.size() * (i + 1) / most);
    kept.push_back(*std::max_element(
        from, to, [](const Sample& a, const Sample& b) { return a.rss_bytes < b.rss_bytes; }));
  }
  return kept;
}

Trial run_trial(const WorkloadReader& workload, const Setup& setup, const TrialOptions& options) {
  Trial trial;
  trial.error = setup.error;
  if (!trial.error.empty()) return trial;
  Running player(workload, setup, options);
  trial.error = player.problem();
  if (!trial.error.empty()) return trial;
  Board& board = player.board();

  // Whether it came so far; else the reason is in `error`.
  auto wait_for = [&](State state, auto&& look) {
    uint64_t progress = 0, since = clock_ns();
    for (;;) {
      if (player.reached(state)) return true;
      if (player.ended()) {
        trial.error = how_it_ended(board, player.status());
        return false;
      }
      look();
      uint64_t now = 0;
      for (uint32_t i = 0; i < board.tracks; ++i) now += board.track(i).done.load();
      if (now != progress) {
        progress = now;
        since = clock_ns();
      } else if (clock_ns() - since > options.patience_ns) {
        trial.error =
            fmt::format("it made no progress for {:.3g} s after {} operations, and was ended",
                        static_cast<double>(options.patience_ns) * 1e-9, progress);
        return false;
      }
    }
  };
  if (!wait_for(State::kReady, [] { sleep_ns(500'000); })) return trial;
  Memory before = memory_of(player.pid());
  trial.player_bytes = before.rss;
  trial.knows_memory = before.rss != 0;
  uint64_t start = clock_ns();
  auto look = [&] {
    Memory now = memory_of(player.pid());
    if (now.rss == 0) return;
    trial.samples.push_back({clock_ns() - start, now.rss > before.rss ? now.rss - before.rss : 0,
                             now.vm,
                             static_cast<uint64_t>(std::max<int64_t>(0, board.ideal.load()))});
    if (trial.samples.size() >= 16 * kMostSamples)
      trial.samples = thin_out(trial.samples, 8 * kMostSamples);
  };
  if (trial.knows_memory) trial.samples.push_back({0, 0, before.vm, 0});
  player.set(State::kGo);
  if (!wait_for(State::kDone, [&] {
        sleep_ns(options.interval_ns);
        look();
      }))
    return trial;
  look();
  Memory after = memory_of(player.pid());
  trial.library = board.library;
  trial.setup_ns = board.setup_ns;
  trial.wall_ns = board.wall_ns;
  trial.trims = board.trims.load();
  trial.can_trim = board.can_trim != 0;
  auto beyond = [&](uint64_t rss) { return rss > before.rss ? rss - before.rss : 0; };
  // The kernel brings its own highest up to date now and then only.
  trial.max_rss_bytes = std::max(after.highest_rss, after.rss);
  for (const Sample& sample : trial.samples)
    trial.max_rss_bytes = std::max(trial.max_rss_bytes, before.rss + sample.rss_bytes);
  trial.heap_max_rss_bytes = beyond(trial.max_rss_bytes);
  trial.heap_end_rss_bytes = beyond(after.rss);
  trial.max_vm_bytes = after.highest_vm;
  trial.max_ideal_bytes = static_cast<uint64_t>(std::max<int64_t>(0, board.max_ideal.load()));
  trial.end_ideal_bytes = static_cast<uint64_t>(std::max<int64_t>(0, board.ideal.load()));
  add_up(board, &trial);
  if (options.verify && trial.failed > 0)
    trial.error = fmt::format("{} of {} calls found no memory, though the recorded ones had",
                              trial.failed, trial.calls);
  player.set(State::kMayExit);
  trial.samples = thin_out(trial.samples, kMostSamples);
  return trial;
}

}  // namespace malloscope::replay
