// SPDX-License-Identifier: Apache-2.0
// The frames of recorded stacks, with names. Equal frames are one: a FrameId
// stands for function, file, line and module, whatever image they were met in.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "symbols/symbolizer.h"
#include "trace/module_finder.h"
#include "trace/tables.h"

namespace malloscope::analyze {

// Whether it is the recorder's own library.
inline bool is_ours(std::string_view module_path) { return trace::is_recorder(module_path); }

enum class FrameId : uint32_t {};

struct Frame {
  std::string function;  // Never empty.
  std::string file;      // Empty if not known.
  int line = 0;          // 0 if not known.
  std::string module;    // Path; empty if not known.
  bool plumbing = false;
  int column = 0;  // 0 if not known, or if the line was met at several.

  // A line is one frame, whatever its columns.
  bool operator==(const Frame& other) const {
    return line == other.line && function == other.function && file == other.file &&
           module == other.module && plumbing == other.plumbing;
  }
};

// What we ask of the symbols.
class Naming {
 public:
  virtual ~Naming() = default;
  // The frames at an instruction, innermost inlined first, at least one.
  virtual std::vector<symbols::SymbolFrame> frames(const symbols::ModuleFile& module,
                                                   uint64_t offset) = 0;
  // Called once, with all places that may be asked for.
  virtual void prepare(std::vector<symbols::Symbolizer::Request> places) { (void)places; }
  // Whether the frame belongs to the allocator or the standard library.
  virtual bool is_plumbing(const std::string& function, const std::string& module) = 0;
  // Why a module has few names or none, as a sentence; empty if all is known.
  virtual std::string remark(const symbols::ModuleFile& module) { return (void)module, ""; }
  // Whether places of a module have no names that its own file, or any, would have given.
  virtual bool nameless(const symbols::ModuleFile& module) { return (void)module, false; }
  // The same, and a file of its own is missing that would have.
  virtual bool lost(const symbols::ModuleFile& module) { return (void)module, false; }
};

class FrameTable {
 public:
  // Both must outlive the table; the tables must not change any more.
  FrameTable(const trace::Tables& tables, Naming& naming) : tables_(tables), naming_(naming) {}

  size_t size() const { return frames_.size(); }
  const Frame& frame(FrameId id) const { return frames_[static_cast<uint32_t>(id)]; }

  // The frames at a node of an image's stacks, innermost inlined first. None for a call that the
  // recorder makes in the program's name (exit, fork, dlclose); but the outermost node has at least
  // one, so every stack has. Valid until the next call of anything here.
  std::span<const FrameId> at(ImageId image, trace::StackNode node);
  // What stands for a stack that was not recorded.
  FrameId unknown() { return intern({"[unknown]", "", 0, "", false}); }

  // The frames of a stack, innermost first, at least one.
  void stack(ImageId image, StackId id, std::vector<FrameId>* frames);

  // The same, by the calls that they are inlined in: the frames of each call follow each other.
  struct Call {
    uint64_t pc = 0;  // Of the call, or a byte behind its beginning.
    const trace::Module* module = nullptr;
    uint32_t frames = 0;
  };
  void calls(ImageId image, StackId id, std::vector<Call>* calls);

  // The frame to blame for a stack's allocations: the innermost that is no plumbing, or,
  // if all are, the innermost. For CPU time the innermost: whoever computes has used it.
  FrameId site(ImageId image, StackId id);

  // Where a stack ends on the outside.
  enum class Root { kReached, kCut, kStopped };
  Root root(ImageId image, StackId id) const;

 private:
  struct Place {  // An offset in a module.
    uint64_t where;
    uint64_t whose;
    bool operator==(const Place&) const = default;
  };
  struct PlaceHash {
    size_t operator()(const Place& p) const {
      uint64_t h = (p.where ^ p.whose * 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93;
      return h ^ h >> 32;
    }
  };
  struct FrameHash {
    size_t operator()(const Frame& frame) const;
  };
  struct Run {  // In runs_.
    uint32_t first;
    uint32_t count;
  };

  const trace::Module* module_at(const trace::Image& image, uint64_t pc, uint32_t generation);
  Run resolve(const trace::Module* module, uint64_t pc);
  Run resolve_in(uint64_t module, uint64_t offset);
  Run add_run(std::span<const Frame> frames);
  FrameId intern(const Frame& frame);

  const trace::Tables& tables_;
  Naming& naming_;
  std::vector<Frame> frames_;
  std::unordered_map<Frame, FrameId, FrameHash> ids_;
  std::vector<FrameId> runs_;
  std::unordered_map<Place, Run, PlaceHash> by_offset_;
  std::vector<symbols::ModuleFile> modules_;
  std::unordered_map<std::string, uint64_t> module_ids_;
  std::unordered_map<const trace::Module*, uint64_t> module_of_;
  std::unordered_map<ImageId, trace::ModuleFinder> finders_;
  FrameId ours_ = {};                      // What at() has last shown for the recorder's own.
  std::vector<std::vector<Run>> by_code_;  // By image and its StackTable::code; 0: not known yet.
};

}  // namespace malloscope::analyze
