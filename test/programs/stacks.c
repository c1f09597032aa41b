// SPDX-License-Identifier: Apache-2.0
// Every kind of frame that a walk must get across, each on the way to an
// allocation of its own; whoever called it is known.
//
// build: -O2 -fno-optimize-sibling-calls -lgcc_s
// stack: in_plain by_plain main
// stack: in_alloca by_alloca main
// stack: in_realigned by_realigned main
// stack: in_handler on_signal ... by_signal main
// stack: in_noreturn leaves by_noreturn main
// stack: in_asm by_asm main
// stack: in_compare compare ... by_qsort main
// stack: in_thread run_thread ...
// stack: in_jit ... by_jit main
// stack: in_nested_signal on_second ... on_first ... by_two_signals main
// expect: recorder unwind_failures=0 truncated_stacks=0

#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/mman.h>

#include "known.h"

#define ALLOCATES(name)            \
  OPAQUE static void name(void) {  \
    volatile char *p = malloc(40); \
    p[0] = 1;                      \
  }
ALLOCATES(in_plain)
ALLOCATES(in_alloca)
ALLOCATES(in_realigned)
ALLOCATES(in_handler)
ALLOCATES(in_noreturn)
ALLOCATES(in_compare)
ALLOCATES(in_thread)
ALLOCATES(in_jit)
ALLOCATES(in_nested_signal)
ALLOCATES(in_asm)

static volatile int many = 1000;
void (*volatile keep_in_asm)(void) = in_asm;

OPAQUE static void by_plain(void) {
  in_plain();
  __asm__ volatile("");
}

OPAQUE static void by_alloca(void) {
  volatile char *room = alloca((size_t)many);
  room[0] = 1;
  in_alloca();
  room[1] = 1;
}

OPAQUE static void by_realigned(void) {
  volatile char room[256] __attribute__((aligned(128), unused));
  volatile char *more = alloca((size_t)many);
  room[0] = more[0] = 1;
  in_realigned();
  room[1] = 1;
}

static void on_signal(int unused) {
  (void)unused;
  in_handler();
  __asm__ volatile("");
}

OPAQUE static void by_signal(void) {
  signal(SIGUSR1, on_signal);
  raise(SIGUSR1);
  __asm__ volatile("");
}

static void on_second(int unused) {
  (void)unused;
  in_nested_signal();
  __asm__ volatile("");
}

static void on_first(int unused) {
  (void)unused;
  raise(SIGSEGV);
  __asm__ volatile("");
}

// The second on an alternate stack.
OPAQUE static void by_two_signals(void) {
  static char room[65536];
  stack_t alternate = {.ss_sp = room, .ss_size = sizeof room};
  sigaltstack(&alternate, NULL);
  struct sigaction second = {.sa_handler = on_second, .sa_flags = SA_ONSTACK};
  sigaction(SIGSEGV, &second, NULL);
  signal(SIGUSR2, on_first);
  raise(SIGUSR2);
  __asm__ volatile("");
}

static jmp_buf back;
__attribute__((noreturn, noinline, noclone)) static void leaves(void) {
  in_noreturn();
  longjmp(back, 1);
}

// The call is its last instruction: the return address is in the next function.
__attribute__((noreturn, noinline, noclone)) static void by_noreturn(void) { leaves(); }

void by_asm(void);
__asm__(
    ".text\n.type by_asm,@function\nby_asm:\n.cfi_startproc\n"
    "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rbx, 0\n"
    "mov %rsp, %rbx\n.cfi_def_cfa_register %rbx\n"
    "sub $72, %rsp\nand $-64, %rsp\n"
    "call in_asm\n"
    "mov %rbx, %rsp\n.cfi_def_cfa_register %rsp\n"
    "pop %rbx\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n.size by_asm, . - by_asm\n");

static int compare(const void *a, const void *b) {
  static int once;
  if (!once++) in_compare();
  return *(const int *)a - *(const int *)b;
}

OPAQUE static void by_qsort(void) {
  int numbers[8] = {5, 3, 8, 1, 9, 2, 7, 4};
  qsort(numbers, 8, sizeof *numbers, compare);
  tell("smallest", numbers[0]);
}

static void *run_thread(void *unused) {
  in_thread();
  __asm__ volatile("");
  return unused;
}

// push rbp; mov rbp, rsp; call rdi; pop rbp; ret: with unwind data registered
// at run time, as a JIT compiler does.
OPAQUE static void by_jit(void) {
  extern void __register_frame(void *);
  static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
  unsigned char *page =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(page != MAP_FAILED);
  memcpy(page, code, sizeof code);
  static struct __attribute__((packed, aligned(8))) {
    uint32_t cie_length, cie_id;
    unsigned char cie[16];
    uint32_t fde_length, cie_pointer;
    uint64_t begin, range;
    unsigned char fde[12];
    uint32_t end;
  } frames = {20, 0,           {1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1}, 32, 28,
              0,  sizeof code, {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6}, 0};
  frames.begin = (uint64_t)page;
  __register_frame(&frames);
  void (*compiled)(void (*)(void));
  *(void **)&compiled = page;
  compiled(in_jit);
  __asm__ volatile("");
}

int main(void) {
  by_plain();
  by_alloca();
  by_realigned();
  by_signal();
  if (setjmp(back) == 0) by_noreturn();
  by_asm();
  by_qsort();
  pthread_t thread;
  pthread_create(&thread, NULL, run_thread, NULL);
  pthread_join(thread, NULL);
  by_jit();
  by_two_signals();
  say("done\n");
  return 0;
}
