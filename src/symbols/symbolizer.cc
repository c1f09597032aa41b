// SPDX-License-Identifier: Apache-2.0
// A module is one or two files: what was mapped into the program, and the debug
// file that was stripped from it. A frame's name comes from
//
//     inlined functions        the debug information, the only one to know them
//     the function itself      the symbol table, so that a function has the same
//                              name with and without debug information
//                              else the debug information
//                              else the module's name and the offset
//
// Files are opened when first needed. Answers are kept for good; open files only
// up to a budget, since libdw keeps inflated sections and everything it has read.

#include "symbols/symbolizer.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <unordered_map>

#include "symbols/debug_files.h"
#include "symbols/demangle.h"
#include "symbols/dwarf_index.h"
#include "symbols/elf_file.h"
#include "symbols/symbol_table.h"

namespace malloscope::symbols {

namespace {

constexpr uint64_t kMaxOpenBytes = uint64_t{1} << 30;
constexpr size_t kMaxOpenFiles = 256;
constexpr std::string_view kDeleted = " (deleted)";

// What is open of a module. Members are destroyed last to first: each refers to those above.
struct OpenFiles {
  std::optional<ElfFile> mapped;
  std::optional<ElfFile> debug;
  SymbolTable symbols;
  std::unique_ptr<DwarfIndex> dwarf;

  uint64_t bytes() const { return (mapped ? mapped->bytes() : 0) + (debug ? debug->bytes() : 0); }
};

// The second is what compressed sections were called before ELF had a flag for it.
bool has_debug_info(const ElfFile& file) {
  return file.has_section(".debug_info") || file.has_section(".zdebug_info");
}

}  // namespace

struct Symbolizer::Module {
  ModuleFile file;
  std::string name;  // For addresses without a function.
  bool examined = false;
  Detail detail = Detail::kNone;
  std::string remark;
  std::unique_ptr<OpenFiles> files;
  uint64_t last_use = 0;
  std::unordered_map<uint64_t, std::vector<SymbolFrame>> answers;
};

Symbolizer::Symbolizer(std::vector<std::string> debug_dirs) : debug_dirs_(std::move(debug_dirs)) {
  debug_dirs_.push_back("/usr/lib/debug");
}

Symbolizer::~Symbolizer() = default;
Symbolizer::Symbolizer(Symbolizer&&) noexcept = default;
Symbolizer& Symbolizer::operator=(Symbolizer&&) noexcept = default;

size_t Symbolizer::add_module(ModuleFile file) {
  for (size_t i = 0; i < modules_.size(); ++i)
    if (modules_[i]->file == file) return i;
  auto module = std::make_unique<Module>();
  std::string_view name = file.path;
  if (name.ends_with(kDeleted)) name.remove_suffix(kDeleted.size());
  if (size_t slash = name.rfind('/'); slash != name.npos) name.remove_prefix(slash + 1);
  module->name = name.empty() ? "[unknown]" : name;
  module->file = std::move(file);
  modules_.push_back(std::move(module));
  return modules_.size() - 1;
}

const std::vector<SymbolFrame>& Symbolizer::frames(size_t module, uint64_t offset) {
  auto known = modules_[module]->answers.find(offset);
  if (known != modules_[module]->answers.end()) return known->second;

  Module& m = opened(module);
  std::vector<SymbolFrame> frames;
  if (m.files->dwarf) frames = m.files->dwarf->frames(offset);
  if (frames.empty()) frames.emplace_back();
  if (const auto* symbol = m.files->symbols.find(offset))
    frames.back().function = display_name(symbol->name) + (symbol->stub ? "@plt" : "");
  for (SymbolFrame& frame : frames)
    if (frame.function.empty()) frame.function = fmt::format("{}+{:#x}", m.name, offset);
  return m.answers.emplace(offset, std::move(frames)).first->second;
}

Detail Symbolizer::detail(size_t module) { return examined(module).detail; }

const std::string& Symbolizer::remark(size_t module) { return examined(module).remark; }

const Symbolizer::Module& Symbolizer::examined(size_t module) {
  return modules_[module]->examined ? *modules_[module] : opened(module);
}

Symbolizer::Module& Symbolizer::opened(size_t module) {
  Module& m = *modules_[module];
  m.last_use = ++uses_;
  if (!m.files) {
    open(&m);
    close_least_recent(m);
  }
  return m;
}

void Symbolizer::open(Module* m) {
  m->examined = true;
  m->files = std::make_unique<OpenFiles>();
  OpenFiles& files = *m->files;
  std::string path = m->file.path;
  bool deleted = path.ends_with(kDeleted);
  if (deleted) path.resize(path.size() - kDeleted.size());
  if (path.starts_with('[') || path.find('/') == path.npos) return;  // [vdso], linux-vdso.so.1

  // A deleted file's path may hold another file by now, which only a build-id can tell.
  std::string trouble;
  if (auto file = deleted && m->file.build_id.empty() ? fail("deleted") : ElfFile::open(path)) {
    if (m->file.build_id.empty() || file->build_id() == m->file.build_id)
      files.mapped = std::move(*file);
    else
      trouble = fmt::format("{} has been rebuilt since the recording", m->name);
  } else if (deleted) {
    trouble = fmt::format("{} was deleted while the program ran", m->name);
  } else {
    trouble = fmt::format("{} cannot be read ({})", path, file.error().sentence);
  }

  std::vector<const ElfFile*> sources;
  if (files.mapped) {
    sources.push_back(&*files.mapped);
    if (!has_debug_info(*files.mapped)) files.debug = find_debug_file(*files.mapped, debug_dirs_);
  } else {
    files.debug = find_by_build_id(m->file.build_id, debug_dirs_);
  }
  if (files.debug) sources.push_back(&*files.debug);

  files.symbols = SymbolTable(sources);
  const ElfFile* source = files.debug ? &*files.debug : files.mapped ? &*files.mapped : nullptr;
  if (source && has_debug_info(*source))
    files.dwarf = DwarfIndex::open(*source, sources.front()->code_ranges(), files.symbols);
  m->detail = files.dwarf                ? Detail::kLines
              : files.symbols.complete() ? Detail::kFunctions
              : files.symbols.empty()    ? Detail::kNone
                                         : Detail::kExports;
  if (m->detail == Detail::kNone) {
    if (trouble.empty()) trouble = fmt::format("{} has no symbols", m->name);
    m->remark = trouble + "; its functions are shown as addresses.";
  } else if (m->detail == Detail::kExports) {
    m->remark = fmt::format(
        "{} is stripped: only the functions it exports have names. Install its debug symbols to "
        "see all.",
        m->name);
  } else if (m->detail == Detail::kFunctions) {
    m->remark = fmt::format(
        "{} has no debug information: source lines and inlined functions are not known. Build it "
        "with -g to see them.",
        m->name);
  }
}

void Symbolizer::close_least_recent(const Module& keep) {
  for (;;) {
    uint64_t bytes = 0;
    size_t open = 0;
    Module* oldest = nullptr;
    for (const auto& m : modules_) {
      if (!m->files) continue;
      bytes += m->files->bytes();
      ++open;
      if (m.get() != &keep && (!oldest || m->last_use < oldest->last_use)) oldest = m.get();
    }
    if (!oldest || (bytes <= kMaxOpenBytes && open <= kMaxOpenFiles)) return;
    oldest->files.reset();
  }
}

}  // namespace malloscope::symbols
