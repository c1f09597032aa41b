// SPDX-License-Identifier: Apache-2.0
// .eh_frame_hdr and .eh_frame from anybody: the first two bytes say where the one ends and
// the other begins.

#include <initializer_list>

#include "unwind/eh_frame.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace malloscope::unwind;
  if (size < 2) return 0;
  size_t cut = static_cast<size_t>(data[0] | data[1] << 8);
  data += 2, size -= 2;
  if (cut > size) cut = size;
  Section header = {data, cut, 0x10000}, frames = {data + cut, size - cut, 0x20000};
  for (uintptr_t key : {uintptr_t{0x1000}, uintptr_t{0x10010}, uintptr_t{0x20100}})
    rule_from(header, frames, key);
  return 0;
}
