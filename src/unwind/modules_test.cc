// SPDX-License-Identifier: Apache-2.0
// Code that comes and goes: libraries unloaded and replaced at the same address,
// functions made at run time, a forked child.

#include "unwind/modules.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <barrier>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "unwind/oracle_for_test.h"

extern "C" void __register_frame(void*);
extern "C" void __deregister_frame(void*);

namespace malloscope::unwind {
namespace {

Witness* witness = nullptr;

[[gnu::noinline]] void testify() {
  auto* frame = static_cast<uintptr_t*>(__builtin_frame_address(0));
  witness->testify({reinterpret_cast<uintptr_t>(frame + 1), frame[0]});
  asm volatile("" ::: "memory");
}

class ModulesTest : public testing::Test {
 protected:
  void SetUp() override {
    start(test_arena());
    own_ = std::make_unique<Witness>(own_stack_bounds());
    witness = own_.get();
  }
  std::unique_ptr<Witness> own_;
};

const Module* module_named(const char* part) {
  for (size_t i = 0; i < module_count(); ++i)
    if (strstr(module_at(i)->name, part)) return module_at(i);
  return nullptr;
}

TEST_F(ModulesTest, DescribesTheModulesThatStacksMeet) {
  EXPECT_EQ(module_count(), 0u);
  testify();
  size_t met = module_count();
  ASSERT_GE(met, 2u) << "this program and libc, at least";
  EXPECT_STREQ(module_at(0)->name, "") << "this program, as the loader names it";
  const Module* libc = module_named("libc.so");
  ASSERT_NE(libc, nullptr);
  Dl_info info;
  dladdr(reinterpret_cast<void*>(&gnu_get_libc_version), &info);
  EXPECT_EQ(libc->bias, reinterpret_cast<uintptr_t>(info.dli_fbase));
  EXPECT_STREQ(libc->name, info.dli_fname);
  EXPECT_EQ(libc->name_size, strlen(info.dli_fname));
  EXPECT_EQ(libc->generation, epoch().generation());
  EXPECT_EQ(libc->build_id_size, 20u);
  // The note as the file has it.
  std::ifstream file(info.dli_fname, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(file), {});
  EXPECT_NE(bytes.find(std::string(reinterpret_cast<const char*>(libc->build_id), 20)),
            std::string::npos);
  testify();
  EXPECT_EQ(module_count(), met) << "a module is described once";
  EXPECT_EQ(module_at(met), nullptr);
  EXPECT_EQ(module_at(SIZE_MAX), nullptr);
}

TEST_F(ModulesTest, MeetsAModuleOnceThoughManyThreadsMeetIt) {
  std::vector<std::thread> threads;
  auto pc = reinterpret_cast<uintptr_t>(&qsort);
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([pc] {
      for (uintptr_t j = 0; j < 50; ++j) find_rule(pc + j);
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(module_count(), 1u);
}

// --- Libraries.

// Two libraries with the same layout but for the size of a frame.
struct Libraries {
  std::string folder;
  bool good = false;

  Libraries() {
    char name[] = "/tmp/malloscope_unwind_XXXXXX";
    folder = mkdtemp(name);
    good = make("one", 40) && make("two", 200);
  }
  ~Libraries() { std::system(("rm -r " + folder).c_str()); }

  bool make(const std::string& name, int bytes) {
    std::ofstream(folder + "/" + name + ".s")
        << "  .globl enter\n  .type enter, @function\nenter:\n  .cfi_startproc\n  sub $" << bytes
        << ", %rsp\n  .cfi_def_cfa_offset " << bytes + 8 << "\n  call *%rdi\n  add $" << bytes
        << ", %rsp\n  .cfi_def_cfa_offset 8\n  ret\n  .cfi_endproc\n  .size enter, .-enter\n"
        << "  .section .note.GNU-stack,\"\",@progbits\n";
    return std::system(("cd " + folder + " && cc -shared -nostdlib -o " + name + ".so " + name +
                        ".s 2>/dev/null")
                           .c_str()) == 0;
  }
  std::string path(bool second) const { return folder + (second ? "/two.so" : "/one.so"); }
};

TEST_F(ModulesTest, UnwindsRightThroughALibraryThatTookAnothersPlace) {
  Libraries libraries;
  if (!libraries.good) GTEST_SKIP() << "no compiler here";
  uintptr_t last = 0;
  int replaced = 0;
  for (int i = 0; i < 200; ++i) {
    void* library = dlopen(libraries.path(i % 2).c_str(), RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    auto enter = reinterpret_cast<void (*)(void (*)())>(dlsym(library, "enter"));
    for (int j = 0; j < 3; ++j) enter(testify);
    replaced += reinterpret_cast<uintptr_t>(enter) == last;
    last = reinterpret_cast<uintptr_t>(enter);
    uint32_t generation = epoch().generation();
    begin_unload();
    dlclose(library);
    end_unload();
    EXPECT_NE(epoch().generation(), generation);
  }
  EXPECT_GT(replaced, 100) << "the loader should have used the same address";
  EXPECT_EQ(own_->mismatches(), 0u) << own_->first_mismatch();
  EXPECT_EQ(own_->compared(), 600u);

  // The table tells which was where when: each generation has the other library.
  const Module* before = nullptr;
  int alternations = 0;
  for (size_t i = 0; i < module_count(); ++i) {
    const Module* module = module_at(i);
    if (!strstr(module->name, libraries.folder.c_str())) continue;
    if (before) {
      EXPECT_STRNE(module->name, before->name);
      EXPECT_GT(module->generation, before->generation);
      ++alternations;
    }
    before = module;
  }
  EXPECT_GT(alternations, 100);
}

TEST_F(ModulesTest, LosesNothingWhenNothingIsUnloaded) {
  Libraries libraries;
  if (!libraries.good) GTEST_SKIP() << "no compiler here";
  testify();
  uint32_t generation = epoch().generation();
  void* library = dlopen(libraries.path(false).c_str(), RTLD_NOW);
  void* again = dlopen(libraries.path(false).c_str(), RTLD_NOW);
  auto enter = reinterpret_cast<void (*)(void (*)())>(dlsym(library, "enter"));
  enter(testify);
  begin_unload();
  EXPECT_TRUE(epoch().unloading());
  dlclose(again);
  end_unload();
  EXPECT_FALSE(epoch().unloading());
  EXPECT_EQ(epoch().generation(), generation) << "it was only a reference";
  begin_unload();
  dlclose(library);
  end_unload();
  EXPECT_NE(epoch().generation(), generation);
}

TEST_F(ModulesTest, UsesOneRecordForALibraryThatComesBack) {
  Libraries libraries;
  if (!libraries.good) GTEST_SKIP() << "no compiler here";
  size_t met = 0;
  uintptr_t first = 0;
  for (int i = 0; i < 20; ++i) {
    void* library = dlopen(libraries.path(false).c_str(), RTLD_NOW);
    auto enter = reinterpret_cast<void (*)(void (*)())>(dlsym(library, "enter"));
    enter(testify);
    if (i == 0) first = reinterpret_cast<uintptr_t>(enter), met = module_count();
    if (first != reinterpret_cast<uintptr_t>(enter)) GTEST_SKIP() << "loaded elsewhere";
    begin_unload();
    dlclose(library);
    end_unload();
  }
  EXPECT_EQ(module_count(), met);
  EXPECT_EQ(own_->mismatches(), 0u);
}

// An unload that cannot tell what is gone (there are too many at once) takes all modules for gone,
// though we run one of them. When that is unloaded, nobody looks at it any more.
TEST_F(ModulesTest, GivesNoGenerationTwiceThatWasUsedWhileModulesWereNotTrusted) {
  Libraries libraries;
  if (!libraries.good) GTEST_SKIP() << "no compiler here";
  void* library = dlopen(libraries.path(false).c_str(), RTLD_NOW);
  auto enter = reinterpret_cast<void (*)(void (*)())>(dlsym(library, "enter"));
  constexpr int kMany = 100;
  std::barrier together(kMany + 1);
  std::vector<std::jthread> threads;
  for (int i = 0; i < kMany; ++i)
    threads.emplace_back([&] {
      begin_unload();
      together.arrive_and_wait();
      together.arrive_and_wait();
      end_unload();
    });
  together.arrive_and_wait();
  begin_unload();
  enter(testify);
  uint32_t generation = epoch().generation();
  end_unload();
  together.arrive_and_wait();
  threads.clear();
  begin_unload();
  dlclose(library);
  end_unload();
  EXPECT_FALSE(epoch().unloading());
  EXPECT_GT(epoch().generation(), generation);
}

// --- Frames registered at run time.

// A function made at run time: push rbp; mov rsp, rbp; call *rdi; pop rbp; ret
struct Jit {
  static constexpr uint8_t kCode[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
  uint8_t* memory = static_cast<uint8_t*>(
      mmap(nullptr, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  uint8_t* section = memory + 4096;

  Jit() {
    memcpy(memory, kCode, sizeof kCode);
    uint8_t* out = section;
    auto put = [&](std::initializer_list<int> bytes) {
      for (int b : bytes) *out++ = static_cast<uint8_t>(b);
    };
    auto put32 = [&](int32_t value) {
      memcpy(out, &value, 4);
      out += 4;
    };
    // CIE: version 1, "zR", code 1, data -8, ra 16; pcrel sdata4; cfa = rsp + 8, ra at -8.
    put32(20);
    put32(0);
    put({1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0});
    // FDE: after push: cfa + 16, rbp at -16; after mov: cfa = rbp + 16; after pop: rsp + 8.
    put32(28);
    put32(static_cast<int32_t>(out - section));
    put32(static_cast<int32_t>(memory - out));
    put32(sizeof kCode);
    put({0, 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x43, 0x0c, 7, 8, 0, 0, 0});
    put32(0);
  }
  ~Jit() { munmap(memory, 8192); }
  void run(void (*next)()) { reinterpret_cast<void (*)(void (*)())>(memory)(next); }
};

size_t frames_found;
bool stopped;
void look() {
  auto* frame = static_cast<uintptr_t*>(__builtin_frame_address(0));
  witness->memo().clear();  // A stack that is known comes without its frames.
  Captured captured = witness->memo().capture({reinterpret_cast<uintptr_t>(frame + 1), frame[0]});
  frames_found = captured.kept + captured.fresh.size();
  stopped = captured.stopped;
  asm volatile("" ::: "memory");
}

// libgcc takes a lock for every unwinding once frames have been registered with
// it, which would make it useless as an oracle in signal handlers.
template <typename Body>
bool succeeds_in_child(Body body) {
  pid_t child = fork();
  if (child == 0) {
    start(test_arena());
    Witness own(own_stack_bounds());
    witness = &own;
    body();
    EXPECT_EQ(own.mismatches(), 0u) << own.first_mismatch();
    _exit(testing::Test::HasFailure());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0;
}

void use_registered_frames() {
  Jit jit;
  for (int round = 0; round < 2; ++round) {
    jit.run(testify);
    jit.run(testify);
    jit.run(look);
    EXPECT_TRUE(stopped);
    EXPECT_EQ(frames_found, 1u);

    __register_frame(jit.section);
    ASSERT_TRUE(add_frames(jit.section));
    jit.run(testify);
    jit.run(testify);
    jit.run(look);
    EXPECT_FALSE(stopped);
    EXPECT_GT(frames_found, 5u);

    __deregister_frame(jit.section);
    uint32_t generation = epoch().generation();
    EXPECT_TRUE(remove_frames(jit.section));
    EXPECT_NE(epoch().generation(), generation);
    EXPECT_FALSE(remove_frames(jit.section));
  }
}

TEST_F(ModulesTest, UnwindsRegisteredFramesAsLongAsTheyAreRegistered) {
  EXPECT_TRUE(succeeds_in_child(use_registered_frames));
}

TEST_F(ModulesTest, HasRoomForManyRegisteredSections) {
  std::vector<std::unique_ptr<Jit>> all;
  for (int i = 0; i < 300; ++i) {
    all.push_back(std::make_unique<Jit>());
    ASSERT_TRUE(add_frames(all.back()->section));
  }
  for (auto& jit : all) {
    jit->run(look);
    ASSERT_FALSE(stopped);
  }
  for (auto& jit : all) ASSERT_TRUE(remove_frames(jit->section));
  all[299]->run(look);
  EXPECT_TRUE(stopped);
}

TEST_F(ModulesTest, RefusesASectionThatMakesNoSense) {
  EXPECT_FALSE(add_frames(nullptr));
  EXPECT_FALSE(add_frames(reinterpret_cast<void*>(4096)));
  static const uint8_t empty[8] = {}, garbage[64] = {17, 3, 1, 200, 255, 255, 255, 255};
  EXPECT_FALSE(add_frames(empty));
  EXPECT_FALSE(add_frames(garbage));
  // One that runs into memory that is not there.
  auto* pages = static_cast<uint8_t*>(
      mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  munmap(pages + 4096, 4096);
  memset(pages, 1, 4096);
  EXPECT_FALSE(add_frames(pages));
  EXPECT_FALSE(add_frames(pages + 4090));
  munmap(pages, 4096);
}

// --- Fork.

TEST_F(ModulesTest, StartsAfreshInAForkedChild) {
  testify();
  EXPECT_TRUE(succeeds_in_child([] {
    EXPECT_EQ(module_count(), 0u);
    testify();
    EXPECT_EQ(witness->recognised(), 0u);
    testify();
    EXPECT_GE(module_count(), 2u);
  }));
  testify();
  EXPECT_EQ(own_->mismatches(), 0u);
}

}  // namespace
}  // namespace malloscope::unwind
