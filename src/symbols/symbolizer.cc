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
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include "symbols/debug_files.h"
#include "symbols/debuginfod.h"
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
  Answers answers;
  bool recalled = false;           // The cache was asked.
  bool fresh = false;              // There are answers that the cache does not have.
  std::vector<Witness> witnesses;  // Set once the files were opened or the cache had it.
  // What the cache has from days when more was known than its files tell now.
  std::optional<ModuleNames> memory;
  bool beyond_memory = false;  // Something else was asked for, too.
};

// What else the answers depend on.
static std::string kind_of(const SymbolOptions& options) {
  std::string kind = options.sysroot + '\0' + (options.debuginfod ? "debuginfod" : "");
  for (const std::string& dir : options.debug_dirs) kind += '\0' + dir;
  return kind;
}

Symbolizer::Symbolizer(SymbolOptions options)
    : options_(std::move(options)), cache_(options_.cache, kind_of(options_)) {
  while (options_.sysroot.ends_with('/')) options_.sysroot.pop_back();
  if (!options_.sysroot.empty()) options_.debug_dirs.push_back(options_.sysroot + "/usr/lib/debug");
  options_.debug_dirs.push_back("/usr/lib/debug");
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
  recall(modules_[module].get());
  auto known = modules_[module]->answers.find(offset);
  if (known != modules_[module]->answers.end()) return known->second;

  Module& m = opened(module);
  if (m.memory) {
    if (auto once = m.memory->answers.find(offset); once != m.memory->answers.end())
      return m.answers.emplace(offset, once->second).first->second;
  }
  std::vector<SymbolFrame> frames;
  if (m.files->dwarf) frames = m.files->dwarf->frames(offset);
  if (frames.empty()) frames.emplace_back();
  if (const auto* symbol = m.files->symbols.find(offset))
    frames.back().function = display_name(symbol->name) + (symbol->stub ? "@plt" : "");
  for (SymbolFrame& frame : frames)
    if (frame.function.empty()) frame.function = fmt::format("{}+{:#x}", m.name, offset);
  m.beyond_memory |= m.memory && is_unnamed(frames);
  m.fresh = true;
  return m.answers.emplace(offset, std::move(frames)).first->second;
}

void Symbolizer::recall(Module* m) {
  if (std::exchange(m->recalled, true)) return;
  std::optional<NameCache::Entry> entry = cache_.load(m->file);
  if (!entry) return;
  // Files that tell less than was once known are opened as if new.
  if (entry->names.detail != Detail::kLines && cache_.once_known(m->file, entry->names.detail))
    return;
  m->examined = true;
  m->detail = entry->names.detail;
  m->remark = std::move(entry->names.remark);
  m->answers = std::move(entry->names.answers);
  m->witnesses = std::move(entry->witnesses);
}

void Symbolizer::save() {
  for (const auto& m : modules_) {
    // What is kept of it is better than what its files would tell now.
    if (!m->fresh || !m->examined || m->memory) continue;
    cache_.store({{m->file, m->detail, m->remark, m->answers}, m->witnesses});
    m->fresh = false;
  }
}

ModuleNames Symbolizer::names(size_t module) {
  ModuleNames names = {modules_[module]->file, detail(module), remark(module),
                       modules_[module]->answers};
  std::erase_if(names.answers, [](const auto& answer) { return is_unnamed(answer.second); });
  return names;
}

void Symbolizer::prepare(std::vector<Request> requests,
                         const std::function<void(double)>& progress) {
  std::vector<Request> open;
  uint64_t all = 0;
  for (Request& request : requests) {
    Module& m = *modules_[add_module(request.file)];
    recall(&m);
    std::erase_if(request.offsets, [&](uint64_t offset) { return m.answers.contains(offset); });
    all += request.offsets.size();
    if (!request.offsets.empty()) open.push_back(std::move(request));
  }
  if (open.empty()) return;
  // The longest first, so that no thread begins one when the others are done.
  std::ranges::sort(open, std::greater(), [](const Request& r) { return r.offsets.size(); });
  std::atomic<size_t> next = 0;
  std::atomic<uint64_t> done = 0;
  std::mutex lock;
  std::condition_variable finished;
  size_t working =
      std::min<size_t>({std::max(1U, std::thread::hardware_concurrency()), 8, open.size()});
  auto work = [&] {
    for (size_t i; (i = next++) < open.size();) {
      Symbolizer own(options_);
      size_t module = own.add_module(open[i].file);
      own.modules_[module]->recalled = true;  // By us, above.
      std::ranges::sort(open[i].offsets);
      for (uint64_t offset : open[i].offsets) {
        own.frames(module, offset);
        ++done;
      }
      std::lock_guard guard(lock);
      Module &here = *modules_[add_module(open[i].file)], &there = *own.modules_[module];
      here.answers.merge(there.answers);
      here.detail = there.detail;
      here.remark = there.remark;
      here.witnesses = there.witnesses;
      here.memory = std::move(there.memory);
      here.beyond_memory = there.beyond_memory;
      here.examined = here.fresh = true;
    }
    std::lock_guard guard(lock);
    if (--working == 0) finished.notify_one();
  };
  std::vector<std::jthread> threads;
  for (size_t i = working; i > 0; --i) threads.emplace_back(work);
  std::unique_lock guard(lock);
  while (!finished.wait_for(guard, std::chrono::milliseconds(100), [&] { return working == 0; }))
    if (progress) progress(static_cast<double>(done) / static_cast<double>(all));
}

Detail Symbolizer::detail(size_t module) {
  const Module& m = examined(module);
  if (!m.memory) return m.detail;
  return m.beyond_memory ? std::min(m.memory->detail, Detail::kFunctions) : m.memory->detail;
}

bool Symbolizer::lost(size_t module) { return examined(module).detail == Detail::kNone; }

const std::string& Symbolizer::remark(size_t module) {
  const Module& m = examined(module);
  return m.memory && !m.beyond_memory ? m.memory->remark : m.remark;
}

const Symbolizer::Module& Symbolizer::examined(size_t module) {
  recall(modules_[module].get());
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
  m->examined = m->recalled = true;
  m->files = std::make_unique<OpenFiles>();
  OpenFiles& files = *m->files;
  std::string path = m->file.path;
  bool deleted = path.ends_with(kDeleted);
  if (deleted) path.resize(path.size() - kDeleted.size());
  if (path.starts_with('[') || path.find('/') == path.npos) return;  // [vdso], linux-vdso.so.1

  // A deleted file's path may hold another file by now, which only a build-id can tell.
  std::string trouble;
  Looked looked;
  if (!options_.sysroot.empty()) {
    std::string below = options_.sysroot + (path.starts_with('/') ? "" : "/") + path;
    looked.push_back(below);
    // Files of this machine count only if they are known to be the same.
    if (access(below.c_str(), F_OK) == 0 || m->file.build_id.empty()) path = below;
  }
  looked.push_back(path);
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
  if (!files.mapped) {
    if (auto file = find_by_name(path, m->file.build_id, options_.debug_dirs, &looked))
      files.mapped = std::move(*file);
  }

  std::vector<const ElfFile*> sources;
  if (files.mapped) {
    sources.push_back(&*files.mapped);
    if (!has_debug_info(*files.mapped)) {
      files.debug = find_debug_file(*files.mapped, options_.debug_dirs, &looked);
      if (!files.debug)  // Or the file as it was before it was stripped.
        files.debug = find_by_name(path, m->file.build_id, options_.debug_dirs, &looked);
    }
  } else {
    files.debug = find_by_build_id(m->file.build_id, options_.debug_dirs, &looked);
  }
  std::string not_fetched;
  if (options_.debuginfod && !files.debug && !m->file.build_id.empty() &&
      (!files.mapped || !has_debug_info(*files.mapped))) {
    if (Result<std::string> fetched = fetch_debug_file(m->file.build_id); !fetched) {
      not_fetched = " " + fetched.error().sentence + ".";
      not_fetched[1] = static_cast<char>(std::toupper(static_cast<unsigned char>(not_fetched[1])));
    } else if (auto file = ElfFile::open(*fetched); file && file->build_id() == m->file.build_id) {
      looked.push_back(*fetched);
      files.debug = std::move(*file);
    }
  }
  m->witnesses.clear();
  for (std::string& place : looked) m->witnesses.push_back(Witness::of(std::move(place)));
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
    bool lost = !trouble.empty();
    if (!lost) trouble = fmt::format("{} has no symbols", m->name);
    m->remark = trouble + "; its functions are shown as addresses.";
    if (lost && !m->file.build_id.empty())
      m->remark += " With the file of then in DIR, --debug-dir DIR names them.";
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
  if (!m->remark.empty()) m->remark += not_fetched;
  if (m->detail != Detail::kLines) m->memory = cache_.once_known(m->file, m->detail);
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
