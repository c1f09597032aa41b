// SPDX-License-Identifier: Apache-2.0
// What is known of a module, apart from its files: the frames at the addresses that
// somebody asked for. Kept in the cache (name_cache.h) and in traces that
// were made readable anywhere (`malloscope symbolize`).

#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/packing.h"
#include "symbols/symbol_frame.h"

namespace malloscope::symbols {

struct ModuleFile {
  std::string path;
  std::string
      build_id;  // Lower-case hexadecimal; empty if not known, then any file at path will do.

  bool operator==(const ModuleFile&) const = default;
};

// How much is known of a module.
enum class Detail {
  kNone,       // Addresses only.
  kExports,    // The functions it exports.
  kFunctions,  // All functions.
  kLines,      // Also source lines and inlined functions.
};

using Answers = std::unordered_map<uint64_t, std::vector<SymbolFrame>>;  // By offset.

struct ModuleNames {
  ModuleFile file;
  Detail detail = Detail::kNone;
  std::string remark;
  Answers answers;
};

// Bytes: docs/trace_format.md, type 14. `offsets` are those to write, in rising order.
void pack(const ModuleNames& names, const std::vector<uint64_t>& offsets, Packer* out);
// False if the bytes are none that pack() writes.
bool unpack(Unpacker* in, ModuleNames* names);

}  // namespace malloscope::symbols
