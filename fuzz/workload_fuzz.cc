// SPDX-License-Identifier: Apache-2.0
// A track's columns as anybody may have written them. The player trusts what comes out: a slot or a
// track that is not there would be memory that is not there.

#include <cstdint>
#include <cstdlib>
#include <vector>

#include "replay/codec.h"

using malloscope::replay::kColumns;
using malloscope::replay::Op;
using malloscope::replay::OpKind;
using malloscope::replay::TrackDecoder;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 8) return 0;
  uint32_t slots = 1 + data[0], tracks = 1 + data[1] % 8;
  std::vector<uint32_t> free_slots(1 + data[2] % 64);
  std::vector<uint32_t> births(data[4] % 2 ? size_t{1} << data[4] % 8 : 0);
  TrackDecoder decoder(free_slots, births, {slots, tracks});
  // Two chunks: what is remembered lives on.
  for (int chunk = 0; chunk < 2 && !decoder.bad(); ++chunk) {
    const uint8_t* from = data + 8 + (size - 8) * static_cast<size_t>(chunk) / 2;
    const uint8_t* to = data + 8 + (size - 8) * (static_cast<size_t>(chunk) + 1) / 2;
    auto bytes = static_cast<size_t>(to - from);
    std::span<const uint8_t> columns[kColumns];
    for (size_t i = 0; i < kColumns; ++i)
      columns[i] = {from + bytes * i / kColumns, bytes * (i + 1) / kColumns - bytes * i / kColumns};
    decoder.open(columns, 1 + data[3] * 16u);
    Op ops[32];
    while (decoder.left() > 0 && !decoder.bad()) {
      size_t count = decoder.read(ops);
      for (size_t i = 0; i < count; ++i) {
        const Op& op = ops[i];
        if (is_call(op.kind) && op.kind != OpKind::kFreeNull && op.slot >= slots) abort();
        if (op.kind == OpKind::kWait && op.track >= tracks) abort();
      }
    }
  }
  return 0;
}
