// SPDX-License-Identifier: Apache-2.0
// From addresses to functions and source lines.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "symbols/module_names.h"
#include "symbols/name_cache.h"

namespace malloscope::symbols {

// Where to look, besides the places where the files were.
struct SymbolOptions {
  std::vector<std::string> debug_dirs;  // With separate debug files; before /usr/lib/debug.
  std::string sysroot;                  // The modules' paths are below it.
  bool debuginfod = false;              // Ask the servers of DEBUGINFOD_URLS.
  std::string cache;                    // A folder for NameCache; empty: nothing is kept.
};

// Opens files when first asked about them and keeps the answers. Never fails: a
// module that is missing, changed or damaged has frames of the form
// "libfoo.so+0x1234". Uses files on this machine only, unless debuginfod is asked for. Of very
// large modules only a few stay open, so it is best to ask about one after another.
// For one thread; several may each have their own.
class Symbolizer {
 public:
  explicit Symbolizer(SymbolOptions options = {});
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

  // Whether its files are not there any more, or tell nothing.
  bool lost(size_t module);

  // Asks for many places of many modules at once, some modules at the same time. `progress` is
  // called now and then, by this thread, with the share that is done.
  struct Request {
    ModuleFile file;
    std::vector<uint64_t> offsets;
  };
  void prepare(std::vector<Request> requests, const std::function<void(double)>& progress = {});

  // All that was asked of a module so far.
  ModuleNames names(size_t module);

  // Keeps what is new for next time.
  void save();

 private:
  struct Module;
  Module& opened(size_t module);
  const Module& examined(size_t module);
  void open(Module* module);
  void close_least_recent(const Module& keep);
  void recall(Module* module);

  SymbolOptions options_;
  NameCache cache_;
  std::vector<std::unique_ptr<Module>> modules_;
  uint64_t uses_ = 0;
};

}  // namespace malloscope::symbols
