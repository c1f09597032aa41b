// SPDX-License-Identifier: Apache-2.0
// An ELF file, as the launcher and the recorder judge it and as the symbolizer reads it.

#include <stdlib.h>
#include <unistd.h>

#include "base/elf.h"
#include "symbols/symbolizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // ElfFile reads aligned words, as in a mapped file.
  static char* copy = static_cast<char*>(aligned_alloc(4096, 1 << 20));
  if (size > 1 << 20) return 0;
  memcpy(copy, data, size);
  std::span<const char> bytes(copy, size);
  if (malloscope::obstacle_in(bytes) == malloscope::Obstacle::kNone) {
    malloscope::ElfFile file(bytes);
    file.defines("malloc");
    file.needs("libc.so.6");
  }

  static char path[] = "/tmp/malloscope-fuzz-XXXXXX";
  static int fd = mkstemp(path);
  if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != static_cast<ssize_t>(size)) abort();
  malloscope::symbols::Symbolizer symbolizer;
  size_t module = symbolizer.add_module({path, ""});
  for (uint64_t offset : {0x0, 0x1000, 0x1010, 0x1130, 0x400000})
    if (symbolizer.frames(module, offset).empty()) abort();
  return 0;
}
