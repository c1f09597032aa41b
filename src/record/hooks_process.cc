// SPDX-License-Identifier: Apache-2.0
// Calls that change the process under us: fork and exec, unloading code, giving
// up system calls, naming threads.

#include <errno.h>
#include <link.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "base/attributes.h"
#include "base/syscall.h"
#include "record/cpu_timer.h"
#include "record/exec_check.h"
#include "record/exec_environment.h"
#include "record/process.h"
#include "record/real.h"
#include "record/recorder.h"
#include "record/sandbox.h"
#include "unwind/modules.h"
#include "unwind/stack_reader.h"

// The headers promise that no pointer is null; programs do not keep that promise.
#pragma GCC diagnostic ignored "-Wnonnull-compare"

using namespace malloscope;
using namespace malloscope::record;

MSCOPE_EXPORT pid_t fork() {
  // The child learns from its wiped memory that it is one; here it only learns when.
  if (inherited.shared && !inherited.clock_forbidden.load())
    inherited.fork_tick = cycles() >> inherited.tick_shift;
  pid_t child = real.fork();
  // A later fork that does not come by here must not find this time.
  if (child != 0) inherited.fork_tick = 0;
  // What we free from here on is still the child's, so it must not carry an older time.
  if (child > 0) thread->untimed = thread->most_untimed;
  if (child == 0 && thread->outer == 0) wake_thread();
  return child;
}

MSCOPE_EXPORT int dlclose(void* handle) {
  unwind::begin_unload();
  int result = real.dlclose(handle);
  unwind::end_unload();
  forget_operators();
  return result;
}

MSCOPE_EXPORT int prctl(int option, ...) {
  va_list list;
  va_start(list, option);
  unsigned long a = va_arg(list, unsigned long), b = va_arg(list, unsigned long),
                c = va_arg(list, unsigned long), d = va_arg(list, unsigned long);
  va_end(list);
  return in_sandbox(sandbox_of_prctl(option, a), [=] { return real.prctl(option, a, b, c, d); });
}

// Whether the collector means the same processes by our pids. Where nobody can tell, mostly yes.
static bool collector_shares_our_pids() {
  uint64_t theirs = inherited.shared.control().settings.pid_namespace;
  struct stat ours;
  return theirs == 0 ||
         sys::failed(sys::call(SYS_newfstatat, AT_FDCWD, sys::arg("/proc/self/ns/pid"),
                               sys::arg(&ours), 0)) ||
         ours.st_ino == theirs;
}

// Says that this process, or the one that posix_spawn makes, is about to become a program that will
// meet the collector. The place it is said in, or nullptr. In another pid namespace nothing is
// said: the collector would wait for the end of whoever has that number in its own.
static std::atomic<int32_t>* announce_exec(int pid) {
  if (!collector_shares_our_pids()) return nullptr;
  for (std::atomic<int32_t>& place : inherited.shared.control().execs) {
    int32_t nobody = 0;
    if (place.load(std::memory_order_relaxed) == 0 && place.compare_exchange_strong(nobody, pid))
      return &place;
  }
  return nullptr;
}

// A pointer that leads nowhere is the kernel's to refuse.
static bool leads_somewhere(const void* pointer) {
  uintptr_t word = reinterpret_cast<uintptr_t>(pointer) & ~uintptr_t{7};
  return word == 0 || unwind::ask_readable(word) != unwind::Answer::kNo;
}

template <typename Exec>
static int exec_in(const ExecEnvironment& environment, Exec exec) {
  size_t bytes = environment.bytes();
  char* const* changed =
      bytes == 0 ? environment.original() : environment.copy_to(__builtin_alloca(bytes));
  return out_of_childs_sandbox([&] { return exec(changed); });
}

// Every exec: decides whether the program can take the recorder, and gives it the
// environment for that.
template <typename Exec>
static int exec_with_recorder(const char* name, ExecCheck check, char* const* environment,
                              Exec exec, const pid_t* spawned = nullptr) {
  if (!leads_somewhere(name) || !leads_somewhere(environment)) return exec(environment);
  if (sys::is_sandboxed()) {
    if (inherited.shared && inherited.follow) record_not_followed(name, wire::kSandboxed);
    return exec_in(ExecEnvironment(environment, false), exec);
  }
  if (!inherited.shared) return exec(environment);
  if (samples_cpu() && !spawned && sys::pid() == process().pid) tell_last_cpu(thread, MSCOPE_FRAME);
  if (check.obstacle != Obstacle::kNone || check.gains_rights)
    record_not_followed(
        name, check.gains_rights ? wire::kGainsRights : static_cast<uint64_t>(check.obstacle));
  bool with_recorder = check.obstacle == Obstacle::kNone && recorder_is_reachable();
  if (check.obstacle == Obstacle::kNone && !with_recorder && inherited.follow)
    record_not_followed(name, wire::kUnreachable);
  // One that was started with --no-follow leaves the variable as it is.
  if (with_recorder && !inherited.follow) return exec(environment);
  bool will_join = with_recorder && !check.gains_rights;
  // Of a process that is spawned the pid is known afterwards; until then ours stands for it.
  std::atomic<int32_t>* place = will_join ? announce_exec(sys::pid()) : nullptr;
  int result = exec_in(ExecEnvironment(environment, with_recorder), exec);
  if (place) place->store(result == 0 && spawned ? *spawned : 0, std::memory_order_relaxed);
  return result;
}

static ExecCheck check(const char* file, bool search) {
  return inherited.shared && !sys::is_sandboxed() ? check_exec(file, search) : ExecCheck{};
}

// What execveat is to run; where it is not a path of its own it is taken to be fine.
static ExecCheck check_at(int folder, const char* path) {
  bool plain =
      path && leads_somewhere(path) && (path[0] == '/' || (folder == AT_FDCWD && path[0] != 0));
  return plain ? check(path, false) : ExecCheck{};
}

MSCOPE_EXPORT int execve(const char* path, char* const* argv, char* const* env) {
  return exec_with_recorder(path, check(path, false), env,
                            [=](char* const* e) { return real.execve(path, argv, e); });
}
MSCOPE_EXPORT int execv(const char* path, char* const* argv) {
  return exec_with_recorder(path, check(path, false), environ,
                            [=](char* const* e) { return real.execve(path, argv, e); });
}
MSCOPE_EXPORT int execvp(const char* file, char* const* argv) {
  return exec_with_recorder(file, check(file, true), environ,
                            [=](char* const* e) { return real.execvpe(file, argv, e); });
}
MSCOPE_EXPORT int execvpe(const char* file, char* const* argv, char* const* env) {
  return exec_with_recorder(file, check(file, true), env,
                            [=](char* const* e) { return real.execvpe(file, argv, e); });
}
MSCOPE_EXPORT int fexecve(int fd, char* const* argv, char* const* env) {
  return exec_with_recorder("(a descriptor)",
                            inherited.shared && !sys::is_sandboxed() ? check_exec(fd) : ExecCheck{},
                            env, [=](char* const* e) { return real.fexecve(fd, argv, e); });
}
MSCOPE_EXPORT int execveat(int fd, const char* path, char* const* argv, char* const* env,
                           int flags) {
  return exec_with_recorder(path, check_at(fd, path), env, [=](char* const* e) {
    return real.execveat(fd, path, argv, e, flags);
  });
}

// By the function `syscall`; see hooks_syscall.cc.
extern "C" [[gnu::visibility("hidden"), gnu::used]] long mscope_exec_syscall(long number, long a,
                                                                             long b, long c, long d,
                                                                             long e) {
  bool at = number == SYS_execveat;
  auto* path = reinterpret_cast<const char*>(at ? b : a);
  auto* environment = reinterpret_cast<char* const*>(at ? d : c);
  return exec_with_recorder(
      path, at ? check_at(static_cast<int>(a), path) : check(path, false), environment,
      [=](char* const* changed) {
        return static_cast<int>(at ? mscope_next_syscall(number, a, b, c, sys::arg(changed), e, 0)
                                   : mscope_next_syscall(number, a, b, sys::arg(changed), 0, 0, 0));
      });
}

// The forms with their arguments in a list: collected on the stack, as libc does.
#define COLLECT_ARGUMENTS(first)                                         \
  va_list list;                                                          \
  va_start(list, first);                                                 \
  size_t count = 1;                                                      \
  for (const char* a = first; a; a = va_arg(list, const char*)) ++count; \
  va_end(list);                                                          \
  char* argv[count + 1];                                                 \
  va_start(list, first);                                                 \
  argv[0] = const_cast<char*>(first);                                    \
  for (size_t i = 1; i < count; ++i) argv[i] = va_arg(list, char*);      \
  if (!first) argv[0] = nullptr

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wvla"
MSCOPE_EXPORT int execl(const char* path, const char* first, ...) {
  COLLECT_ARGUMENTS(first);
  va_end(list);
  char* const* arguments = argv;
  return exec_with_recorder(path, check(path, false), environ,
                            [=](char* const* e) { return real.execve(path, arguments, e); });
}
MSCOPE_EXPORT int execlp(const char* file, const char* first, ...) {
  COLLECT_ARGUMENTS(first);
  va_end(list);
  char* const* arguments = argv;
  return exec_with_recorder(file, check(file, true), environ,
                            [=](char* const* e) { return real.execvpe(file, arguments, e); });
}
MSCOPE_EXPORT int execle(const char* path, const char* first, ...) {
  COLLECT_ARGUMENTS(first);
  char* const* env = va_arg(list, char* const*);
  va_end(list);
  char* const* arguments = argv;
  return exec_with_recorder(path, check(path, false), env,
                            [=](char* const* e) { return real.execve(path, arguments, e); });
}
#pragma GCC diagnostic pop

MSCOPE_EXPORT int posix_spawn(pid_t* pid, const char* path,
                              const posix_spawn_file_actions_t* actions,
                              const posix_spawnattr_t* attributes, char* const* argv,
                              char* const* env) {
  pid_t spawned = 0;
  int result = exec_with_recorder(
      path, check(path, false), env,
      [&](char* const* e) {
        return real.posix_spawn(&spawned, path, actions, attributes, argv, e);
      },
      &spawned);
  if (pid && result == 0) *pid = spawned;
  return result;
}
MSCOPE_EXPORT int posix_spawnp(pid_t* pid, const char* file,
                               const posix_spawn_file_actions_t* actions,
                               const posix_spawnattr_t* attributes, char* const* argv,
                               char* const* env) {
  pid_t spawned = 0;
  int result = exec_with_recorder(
      file, check(file, true), env,
      [&](char* const* e) {
        return real.posix_spawnp(&spawned, file, actions, attributes, argv, e);
      },
      &spawned);
  if (pid && result == 0) *pid = spawned;
  return result;
}

MSCOPE_EXPORT int pthread_setname_np(unsigned long which, const char* name) {
  int result = real.pthread_setname_np(which, name);
  if (result == 0 && name && which == reinterpret_cast<unsigned long>(__builtin_thread_pointer()))
    record_thread_name(name);
  return result;
}

// Code made at run time tells the C++ runtime how to unwind it; we listen. The real functions
// are looked up at every call: they are rare, and libgcc may come and go with a plug-in.
template <typename... Args>
static void* call_next(const char* name, Args... args) {
  auto next = reinterpret_cast<void* (*)(Args...)>(next_definition(name));
  return next ? next(args...) : nullptr;
}

MSCOPE_EXPORT void __register_frame(void* section) {
  call_next("__register_frame", section);
  if (inherited.shared) unwind::add_frames(section);
}
MSCOPE_EXPORT void __deregister_frame(void* section) {
  if (inherited.shared) unwind::remove_frames(section);
  call_next("__deregister_frame", section);
}
MSCOPE_EXPORT void __register_frame_info(const void* section, void* object) {
  call_next("__register_frame_info", section, object);
  if (inherited.shared) unwind::add_frames(section);
}
MSCOPE_EXPORT void* __deregister_frame_info(const void* section) {
  if (inherited.shared) unwind::remove_frames(section);
  return call_next("__deregister_frame_info", section);
}

// How a forked child ends is told to nobody but its parent, unless the kernel is new enough; so
// it is noted here. What the kernel tells later goes before this.
static void note_exit(int code) {
  if (!inherited.shared || !inherited.process || inherited.clock_forbidden.load() ||
      process().phase.load(std::memory_order_relaxed) != Phase::kRecording)
    return;
  // In a vfork child all this is its parent's.
  if (sys::pid() != process().pid) return;
  rusage usage = {};
  if (sys::call(SYS_getrusage, RUSAGE_SELF, sys::arg(&usage)) == 0)
    image().peak_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  image().exit_code = code & 0xff;
  image().exit_known = 1;
}

[[noreturn]] static void leave_by(const char* name, int code) {
  if (void* next = next_definition(name)) reinterpret_cast<void (*)(int)>(next)(code);
  for (;;) sys::call(SYS_exit_group, code);
}

// Where the program still has something to do before the end.
[[noreturn]] static void begin_to_exit(const char* name, int code) {
  note_exit(code);
  leave_by(name, code);
}
MSCOPE_EXPORT void exit(int code) { begin_to_exit("exit", code); }
MSCOPE_EXPORT void quick_exit(int code) {
  tell_cpu_at_exit(MSCOPE_FRAME);
  begin_to_exit("quick_exit", code);
}

[[noreturn]] static void exit_at_once(const char* name, int code) {
  note_exit(code);
  tell_cpu_at_exit(MSCOPE_FRAME);
  out_of_childs_sandbox([=]() -> int { leave_by(name, code); });
  __builtin_unreachable();
}
MSCOPE_EXPORT void _exit(int code) { exit_at_once("_exit", code); }
MSCOPE_EXPORT void _Exit(int code) { exit_at_once("_Exit", code); }
