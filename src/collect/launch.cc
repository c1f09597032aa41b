// SPDX-License-Identifier: Apache-2.0
// Three processes take part: the program, this launcher, which is its parent, and
// the collector, which outlives both if it must.
//
// Program and launcher share a process group, so the terminal treats them as one
// job. What the terminal sends (Ctrl-C, Ctrl-\, Ctrl-Z) reaches the program by
// itself; the launcher lets it pass. What somebody sends to the launcher alone it
// hands on. When the program stops the launcher stops too, so that the shell gets
// its prompt back, and both continue together.

#include "collect/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "collect/collector.h"
#include "collect/limits.h"
#include "collect/process_info.h"
#include "collect/program_check.h"
#include "collect/session.h"
#include "wire/chunk.h"

extern char** environ;

namespace malloscope::collect {
namespace {

// The signals of the launcher's own, kept while it has them blocked.
struct Signals {
  sigset_t all, before;
  struct sigaction children_before;
  Signals() {
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    // Where it is ignored the kernel tells nobody of a child's end, and keeps no status.
    struct sigaction tell = {};
    tell.sa_handler = SIG_DFL;
    sigaction(SIGCHLD, &tell, &children_before);
  }
  ~Signals() { restore(); }
  void restore() const {
    sigaction(SIGCHLD, &children_before, nullptr);
    sigprocmask(SIG_SETMASK, &before, nullptr);
  }
};

// Not blocking: a pipe without a reader is no place to wait. An old file makes way for a new one
// and is not emptied: another collector may still be writing to it.
int open_output(const std::string& path, bool overwrite) {
  struct stat info;
  if (overwrite && lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
      access(path.c_str(), W_OK) == 0 && unlink(path.c_str()) == 0)
    overwrite = false;
  return open(path.c_str(),
              O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | (overwrite ? O_TRUNC : O_EXCL), 0600);
}

// Whether nothing but a trace is lost with a file: it is one, at least its beginning, or empty.
bool holds_a_trace(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  char head[sizeof wire::kFileMagic] = {};
  ssize_t n = read(fd, head, sizeof head);
  close(fd);
  return n >= 0 && memcmp(head, wire::kFileMagic, static_cast<size_t>(n)) == 0;
}

// Why no trace of `program` can be written there; empty if one can, as far as is known.
std::string refusal(const std::string& path, const std::string& program, bool overwrite) {
  struct stat info, of_program;
  if (path.empty() || stat(path.c_str(), &info) != 0) return {};
  if (stat(program.c_str(), &of_program) == 0 && info.st_dev == of_program.st_dev &&
      info.st_ino == of_program.st_ino)
    return fmt::format("{} is the program itself; name another file for its trace", path);
  if (S_ISDIR(info.st_mode)) return fmt::format("{} is a folder; name a file in it", path);
  if (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode))
    return fmt::format("{} is not a file; a trace cannot go through a pipe", path);
  if (!overwrite)
    return fmt::format("{} exists already; name another file, or say --force to replace it", path);
  if (S_ISREG(info.st_mode) && !holds_a_trace(path))
    return fmt::format("{} is not a trace, and --force replaces nothing else; name another file",
                       path);
  return {};
}

std::string default_name(const std::string& program, int pid, int number) {
  std::string name = program.substr(program.rfind('/') + 1).substr(0, 200);
  return fmt::format("malloscope.{}.{}.mscope{}", name, pid,
                     number ? fmt::format(".{}", number) : "");
}

// A new file of the default name; the first number that is free.
int open_default_output(const std::string& program, int pid, std::string* name) {
  for (int number = 0;; ++number) {
    *name = default_name(program, pid, number);
    int fd = open_output(*name, false);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
}

// Of a trace that is not to be. What is no file of ours (/dev/null) stays.
void drop_output(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) unlink(path.c_str());
}

// LD_PRELOAD with the recorder first.
void preload(const std::string& recorder) {
  const char* old = getenv("LD_PRELOAD");
  std::string list = recorder + (old && *old ? std::string(":") + old : "");
  setenv("LD_PRELOAD", list.c_str(), 1);
}

struct Child {
  pid_t pid = -1;
  int go = -1;       // Writing a byte lets it exec.
  int failure = -1;  // Holds errno if exec failed; closed by a successful exec.
};

// The program, waiting to be let go.
Result<Child> fork_program(const std::string& path, const std::vector<std::string>& command,
                           const std::string& recorder, const Signals& signals,
                           const RaisedLimits& limits) {
  int go[2], failure[2];
  if (pipe2(go, O_CLOEXEC) != 0 || pipe2(failure, O_CLOEXEC) != 0)
    return fail(with_reason("cannot make a pipe"));
  std::vector<char*> argv;
  for (const std::string& argument : command) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  pid_t pid = fork();
  if (pid < 0) return fail(with_reason("cannot start a process"));
  if (pid == 0) {
    char byte;
    close(go[1]);
    if (read(go[0], &byte, 1) != 1) _exit(127);
    if (!recorder.empty()) preload(recorder);
    signals.restore();
    limits.restore();
    execve(path.c_str(), argv.data(), environ);
    int error = errno;
    // A text file without #! is a shell script, by old custom.
    if (error == ENOEXEC) {
      argv[0] = const_cast<char*>(path.c_str());
      argv.insert(argv.begin(), const_cast<char*>("/bin/sh"));
      execve("/bin/sh", argv.data(), environ);
    }
    [[maybe_unused]] ssize_t n = write(failure[1], &error, sizeof error);
    _exit(127);
  }
  close(go[0]);
  close(failure[1]);
  return Child{pid, go[1], failure[0]};
}

// 0, or the errno of the exec that failed.
int let_go(const Child& child) {
  int error = 0;
  if (write(child.go, "!", 1) != 1) error = errno;
  close(child.go);
  if (read(child.failure, &error, sizeof error) != sizeof error) error = 0;
  close(child.failure);
  return error;
}

// Stands in for the program until it ends. Returns the status, as from wait().
int attend(pid_t program, rusage* usage) {
  sigset_t all, passed_on;
  sigfillset(&all);
  sigemptyset(&passed_on);
  for (;;) {
    siginfo_t info;
    if (sigwaitinfo(&all, &info) < 0) continue;
    if (info.si_signo != SIGCHLD) {
      // From the kernel: the terminal's, and the program has it too.
      if (info.si_code <= 0 && info.si_pid != program) {
        kill(program, info.si_signo);
        sigaddset(&passed_on, info.si_signo);
      }
      continue;
    }
    int status;
    while (wait4(program, &status, WNOHANG | WUNTRACED, usage) == program) {
      if (!WIFSTOPPED(status)) {
        // What was meant for the program must not end us now.
        timespec at_once = {};
        while (sigtimedwait(&all, &info, &at_once) > 0) {
        }
        // Some send it twice (timeout does), and the second may be late.
        for (int number = 1; number < NSIG; ++number)
          if (sigismember(&passed_on, number) == 1) signal(number, SIG_IGN);
        return status;
      }
      // A stop by the terminal is the whole job's; one by anybody else is the program's alone,
      // and whoever stopped it will continue it.
      int by = WSTOPSIG(status);
      if (by != SIGTSTP && by != SIGTTIN && by != SIGTTOU) continue;
      raise(SIGSTOP);
      // Continued; perhaps without the program.
      kill(program, SIGCONT);
    }
  }
}

int exit_code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Runs the program without recording it.
Result<LaunchResult> run_plain(const ProgramCheck& check, const LaunchOptions& options,
                               const RaisedLimits& limits) {
  Signals signals;
  auto child = fork_program(check.path, options.command, "", signals, limits);
  if (!child) return std::unexpected(child.error());
  LaunchResult result;
  result.obstacle = check.obstacle;
  int error = let_go(*child);
  rusage usage = {};
  result.exit_code = exit_code_of(attend(child->pid, &usage));
  if (error) {
    result.cannot_run = fmt::format("cannot run {}: {}", check.path, strerror(error));
    result.exit_code = error == ENOENT ? 127 : 126;
  }
  return result;
}

// What the collector has to say; `stopped` if it cannot, because somebody has stopped it.
ssize_t hear(int fd, pid_t collector, LauncherMessage* message, bool* stopped) {
  for (;;) {
    pollfd ready = {fd, POLLIN, 0};
    constexpr int kLookEveryMs = 200;
    if (poll(&ready, 1, kLookEveryMs) != 0) return recv(fd, message, sizeof *message, 0);
    int status;
    if (waitpid(collector, &status, WNOHANG | WUNTRACED) == collector && WIFSTOPPED(status)) {
      *stopped = true;
      return 0;
    }
  }
}

// The collector's side of the fork; does not return.
[[noreturn]] void become_collector(Session session, int fd, const std::string& trace, int launcher,
                                   const CollectorOptions& options) {
  setsid();
  // Whoever waits for our output to end must not have to wait for the collector.
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int i = 0; i < 3; ++i) dup2(null, i);
  {
    trace::FileWriter file(fd, trace);
    collect(&session, &file, launcher, options);
  }
  _exit(0);
}

}  // namespace

Result<LaunchResult> launch(const LaunchOptions& options) {
  RaisedLimits limits;
  LaunchResult result;
  auto check = check_program(options.command[0]);
  if (!check) {
    result.cannot_run = check.error().sentence;
    result.exit_code = check.error().not_found ? 127 : 126;
    return result;
  }
  if (std::string why = refusal(options.output, check->path, options.overwrite); !why.empty())
    return fail(std::move(why));
  if (!check->obstacle.empty()) return run_plain(*check, options, limits);
  result.warning = check->warning;
  if (std::string why = hopeless_limit(); !why.empty()) return fail("cannot record: " + why);

  auto session = Session::create(options.recorder, {.follow = options.follow,
                                                    .drop_when_full = options.drop_when_full,
                                                    .free_stacks = options.free_stacks,
                                                    .time_calls = options.time_calls,
                                                    .sample_log2 = options.sample_log2,
                                                    .cpu = options.cpu});
  if (!session) return std::unexpected(session.error());

  Signals signals;
  auto child = fork_program(check->path, options.command, session->preload_path(), signals, limits);
  if (!child) return std::unexpected(child.error());
  int fd = -1;
  auto give_up = [&](std::string sentence) -> Result<LaunchResult> {
    drop_output(result.trace);
    close(child->go);
    waitpid(child->pid, nullptr, 0);
    return fail(std::move(sentence));
  };

  // The trace's default name holds the program's pid, so it comes after the fork.
  result.trace = options.output;
  if (result.trace.empty())
    fd = open_default_output(check->path, child->pid, &result.trace);
  else
    fd = open_output(result.trace, options.overwrite);
  if (fd < 0) {
    result.cannot_write = with_reason("cannot write " + result.trace);
    close(child->go);
    waitpid(child->pid, nullptr, 0);
    return result;
  }

  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
    return give_up(with_reason("cannot make a socket"));
  CollectorOptions collector_options;
  collector_options.launched_pid = child->pid;
  collector_options.command = options.command;
  collector_options.only = options.only;
  collector_options.follow = options.follow;
  collector_options.settings = {
      fmt::format("follow={}", options.follow),
      fmt::format("on-full={}", options.drop_when_full ? "drop" : "wait")};
  if (options.free_stacks) collector_options.settings.push_back("free-stacks=true");
  if (options.time_calls) collector_options.settings.push_back("time-calls=true");
  if (options.cpu) collector_options.settings.push_back("cpu=true");
  if (options.sample_log2 > 0)
    collector_options.settings.push_back(
        fmt::format("sample={}", uint64_t{1} << options.sample_log2));
  if (!options.only.empty()) collector_options.settings.push_back("only=" + options.only);

  pid_t collector = fork();
  if (collector < 0) return give_up(with_reason("cannot start the collector"));
  if (collector == 0) {
    close(pair[0]);
    close(child->go);
    close(child->failure);
    sigprocmask(SIG_SETMASK, &signals.before, nullptr);
    become_collector(std::move(*session), fd, result.trace, pair[1], collector_options);
  }
  session->disown();
  close(pair[1]);
  close(fd);
  LauncherMessage message;
  if (recv(pair[0], &message, sizeof message, 0) != sizeof message) {
    std::string limit = limit_behind(ENOMEM);  // It ends without a word for want of memory only.
    return give_up(
        fmt::format("the collector did not start{}{}", limit.empty() ? "" : ": ", limit));
  }

  int error = let_go(*child);
  LauncherMessage exited = {.kind = LauncherMessage::kExited};
  rusage usage = {};
  exited.status = attend(child->pid, &usage);
  exited.max_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  result.exit_code = exit_code_of(exited.status);
  if (error) {
    result.cannot_run = fmt::format("cannot run {}: {}", check->path, strerror(error));
    result.exit_code = error == ENOENT ? 127 : 126;
  }
  send(pair[0], &exited, sizeof exited, MSG_NOSIGNAL);
  bool stopped = false;
  ssize_t heard = hear(pair[0], collector, &message, &stopped);
  if (stopped) {
    result.problem =
        fmt::format("the collector (pid {}) was stopped; `kill -CONT {}` lets it write the rest",
                    collector, collector);
  } else if (heard != sizeof message) {
    result.problem = "the collector was killed; the trace ends where it was";
    session->remove_folder();
  } else if (message.kind == LauncherMessage::kStillRunning) {
    result.still_running = message.number;
  } else {
    message.text[sizeof message.text - 1] = 0;
    result.problem = message.text;
    waitpid(collector, nullptr, 0);
  }
  close(pair[0]);
  if (error) {
    drop_output(result.trace);
    result.trace.clear();
  }
  return result;
}

Result<bool> collect_for(int fd, int pid, const std::string& recorder) {
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  setsid();
  RaisedLimits limits;
  auto session = Session::create(recorder, {});
  if (!session) return std::unexpected(session.error());
  std::string trace;
  int output = open_default_output(executable_of(pid), pid, &trace);
  if (output < 0) return fail(with_reason("cannot write " + trace));
  trace::FileWriter file(output, trace);
  CollectorOptions options;
  options.launched_pid = pid;
  options.settings = {"preloaded=true"};
  collect(&*session, &file, -1, options, fd);
  return true;
}

}  // namespace malloscope::collect
