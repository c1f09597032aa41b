// SPDX-License-Identifier: Apache-2.0
// The payload of an event chunk, and of a stack chunk, from anybody.

#include "wire/decode.h"
#include "wire/stacks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace malloscope::wire;
  static EventDecoder decoder;
  DecodedChunk chunk;
  decoder.decode({data, size}, &chunk);
  if (chunk.events.size() > kMaxChunkEvents) __builtin_trap();
  StackDecoder().decode(Unpacker({data, size}), [](const StackDefinition&) { return true; });
  return 0;
}
