/* SPDX-License-Identifier: Apache-2.0 */
/* Names for moments and phases of a program, for malloscope to tell about: which phase leaks, what
 * a phase allocates, where in time something was. Of C and C++; nothing has to be linked.
 *
 *     malloscope_mark("configuration read");
 *     malloscope_phase_begin("load");
 *     ...
 *     malloscope_phase_end("load");
 *
 *     { malloscope::Phase phase("load"); ... }                 in C++, to the end of the scope
 *
 * A phase is of the whole process: whatever any thread allocates while it is open was allocated in
 * it. A thread's phase (malloscope_thread_phase_begin, malloscope::ThreadPhase) is of the thread
 * that began it alone; use it where several threads work at different things at once. Phases may
 * lie inside each other, overlap and come again under the same name as often as you like: an event
 * loop has one phase "event", not a name for each event.
 *
 * Without malloscope each of these is a load and a branch. (In a program that is not position-
 * independent, -no-pie, the first call in each source file asks the dynamic loader, and what
 * dlerror() would say is lost.) To leave them out altogether, define MALLOSCOPE_OFF. Names are
 * copied, and cut after 256 bytes; what has none is not said. */

#ifndef MALLOSCOPE_H
#define MALLOSCOPE_H
#pragma GCC system_header /* No warnings about this in programs that want many. */

#if !defined(MALLOSCOPE_OFF) && defined(__linux__) && !defined(__PIC__) && !defined(__PIE__)
#include <dlfcn.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(MALLOSCOPE_OFF) || !defined(__linux__)

static inline void malloscope_say(unsigned kind, const char* name) { (void)kind, (void)name; }

#else

/* Of the recorder, if it is there. */
extern void malloscope_record_mark(unsigned kind, const char* name) __attribute__((weak));

#if defined(__PIC__) || defined(__PIE__)

static inline void malloscope_say(unsigned kind, const char* name) {
  if (malloscope_record_mark) malloscope_record_mark(kind, name);
}

#else /* Where addresses are fixed when a program is linked, only the loader knows. */

typedef void (*malloscope_sayer)(unsigned kind, const char* name);

static inline void malloscope_say_nothing(unsigned kind, const char* name) {
  (void)kind, (void)name;
}

static inline void malloscope_say(unsigned kind, const char* name) {
  static malloscope_sayer known;
  malloscope_sayer say = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (!say) {
    *(void**)&say = dlsym((void*)0 /* RTLD_DEFAULT */, "malloscope_record_mark");
    if (!say) say = malloscope_say_nothing;
    __atomic_store_n(&known, say, __ATOMIC_RELAXED);
  }
  say(kind, name);
}

#endif

#endif

/* The numbers are those of wire::MarkKind. */
static inline void malloscope_mark(const char* name) { malloscope_say(1, name); }
static inline void malloscope_phase_begin(const char* name) { malloscope_say(2, name); }
static inline void malloscope_phase_end(const char* name) { malloscope_say(3, name); }
static inline void malloscope_thread_phase_begin(const char* name) { malloscope_say(4, name); }
static inline void malloscope_thread_phase_end(const char* name) { malloscope_say(5, name); }

#ifdef __cplusplus
} /* extern "C" */

namespace malloscope {

/* `name` must live as long as the phase. */
class Phase {
 public:
  explicit Phase(const char* name) : name_(name) { malloscope_phase_begin(name_); }
  ~Phase() { malloscope_phase_end(name_); }
  Phase(const Phase&) = delete;
  Phase& operator=(const Phase&) = delete;

 private:
  const char* name_;
};

class ThreadPhase {
 public:
  explicit ThreadPhase(const char* name) : name_(name) { malloscope_thread_phase_begin(name_); }
  ~ThreadPhase() { malloscope_thread_phase_end(name_); }
  ThreadPhase(const ThreadPhase&) = delete;
  ThreadPhase& operator=(const ThreadPhase&) = delete;

 private:
  const char* name_;
};

} /* namespace malloscope */
#endif

#endif
