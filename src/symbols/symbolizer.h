// SPDX-License-Identifier: Apache-2.0
// From addresses to functions and source lines.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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

// Opens files when first asked about them and keeps the answers. Never fails: a
// module that is missing, changed or damaged has frames of the form
// "libfoo.so+0x1234". Uses files on this machine only, never the network. Of very
// large modules only a few stay open, so it is best to ask about one after another.
// For one thread; several may each have their own.
class Symbolizer {
 public:
  // `debug_dirs` are searched for separate debug files before /usr/lib/debug.
  explicit Symbolizer(std::vector<std::string> debug_dirs = {});
  ~Symbolizer();
  Symbolizer(Symbolizer&&) noexcept;
  Symbolizer& operator=(Symbolizer&&) noexcept;

  // The same file twice gives the same number.
  size_t add_module(ModuleFile file);

  // The frames at `offset`, the innermost inlined first, at least one, each with a
  // function ("libfoo.so+0x1234" if there is nothing better). `offset` is
  // the instruction's address in memory minus the module's bias; of a return
  // address, the caller must have subtracted 1. The result stays valid and unchanged.
  const std::vector<SymbolFrame>& frames(size_t module, uint64_t offset);

  Detail detail(size_t module);

  // Why a module has no or few names, as a sentence for the user ("libfoo.so has
  // been rebuilt since the recording; its functions are shown as addresses.").
  // Empty if its functions and lines are known, and for code that has no file.
  const std::string& remark(size_t module);

 private:
  struct Module;
  Module& opened(size_t module);
  const Module& examined(size_t module);
  void open(Module* module);
  void close_least_recent(const Module& keep);

  std::vector<std::string> debug_dirs_;
  std::vector<std::unique_ptr<Module>> modules_;
  uint64_t uses_ = 0;
};

}  // namespace malloscope::symbols
