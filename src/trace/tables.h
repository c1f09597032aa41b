// SPDX-License-Identifier: Apache-2.0
// What a trace knows besides its events: the process images, their threads,
// modules and stacks, and what the recording lost.

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/pieces.h"
#include "wire/event.h"

namespace malloscope::trace {

// A file mapped into an image: a library, or the program itself.
struct Module {
  uint64_t start = 0;  // [start, end) in the image's memory.
  uint64_t end = 0;
  uint64_t bias = 0;        // Address in memory minus address in the file's symbol table.
  uint32_t generation = 0;  // Counts the image's dlclose calls at the time it was first met.
  std::string path;
  std::string build_id;  // Lower-case hexadecimal, or empty.
};

// Whether it is the recorder's own library.
bool is_recorder(std::string_view module_path);

// A place in the tree of an image's stacks: a return address reached by the way that its
// outer nodes tell. 0 is the root, above the outermost frames.
enum class StackNode : uint32_t { kRoot = 0 };

// A return address in the stacks of an image, as it was in one generation. The top bit is
// wire::kInterrupted.
struct CodeAddress {
  uint64_t address = 0;
  uint32_t generation = 0;
  bool operator==(const CodeAddress&) const = default;
};

// The stacks of one image, as a tree: each is defined as the outer frames it shares with an older
// one and the frames it adds, and so is a node and all that is outside of it.
class StackTable {
 public:
  StackTable() {
    nodes_.grow_to(1);
    codes_.grow_to(1);
  }

  // Ids may come in any order inside an epoch but refer only to smaller ones.
  // False if the definition is impossible.
  bool define(StackId id, StackId owner, uint32_t kept, uint32_t generation, uint32_t flags,
              const uint64_t* frames_outermost_first, size_t count);

  bool defined(StackId id) const { return raw(id) < defined_.size() && defined_[raw(id)]; }
  uint32_t depth(StackId id) const { return depth(node(id)); }
  uint32_t flags(StackId id) const { return defined(id) ? flags_[raw(id)] : 0; }
  uint32_t generation(StackId id) const { return generation(node(id)); }

  // Return addresses, innermost first; the top bit is wire::kInterrupted. Empty if not defined.
  void frames(StackId id, std::vector<uint64_t>* innermost_first) const;

  // A stack that samples of CPU time have, with an id of its own behind all that were defined: it
  // begins at `innermost`. To be called when all are. See cpu_stacks.h.
  StackId add_of_cpu(StackNode innermost, uint32_t flags);
  bool is_of_cpu(StackId id) const { return raw(id) >= first_of_cpu_; }

  // Defined ids are among 1 ... bound() - 1.
  uint32_t bound() const { return static_cast<uint32_t>(tops_.size()); }
  uint64_t count() const { return count_; }

  // The innermost frame's; kRoot if it is not defined.
  StackNode node(StackId id) const {
    return raw(id) < tops_.size() ? tops_[raw(id)] : StackNode::kRoot;
  }
  // An outer node has a smaller number.
  StackNode outer(StackNode node) const { return nodes_[index(node)].outer; }
  uint64_t address(StackNode node) const { return codes_[code(node)].address; }
  uint32_t generation(StackNode node) const { return codes_[code(node)].generation; }
  size_t node_count() const { return nodes_.size(); }

  // There are far fewer addresses than nodes; they have numbers. The root's is 0.
  uint32_t code(StackNode node) const { return nodes_[index(node)].code; }
  const CodeAddress& code_address(uint32_t code) const { return codes_[code]; }
  uint32_t code_count() const { return static_cast<uint32_t>(codes_.size()); }

  // Gives back what only define() needs; another define() is slow.
  void all_defined() {
    places_ = std::vector<StackNode>();  // `= {}` would keep the memory.
    code_places_ = std::vector<uint32_t>();
    hashes_.clear();
  }

 private:
  struct Node {
    uint32_t code = 0;
    StackNode outer = StackNode::kRoot;
    StackNode far = StackNode::kRoot;  // Further out; see ancestor().
    uint32_t depth = 0;
  };
  static size_t index(StackNode node) { return static_cast<size_t>(node); }
  uint32_t depth(StackNode node) const { return nodes_[index(node)].depth; }
  StackNode ancestor(StackNode node, uint32_t depth) const;
  // The node below `outer`, which may be there already: stacks that share their outer frames share
  // the nodes, whichever of them was named as the owner. `hash` is that of the way to it.
  StackNode add(StackNode outer, uint32_t code, uint32_t hash);
  uint32_t code_of(const CodeAddress& address);
  void make_places(size_t nodes);
  // Where to look first. There may be any number of places, not only a power of two: with millions
  // of nodes that is megabytes less.
  size_t home(uint32_t hash) const { return uint64_t{hash} * places_.size() >> 32; }
  size_t next(size_t place) const { return place + 1 < places_.size() ? place + 1 : 0; }

  Pieces<StackNode> tops_;  // The innermost frame, by StackId; kRoot: not defined.
  Pieces<uint8_t> flags_;   // Beside it.
  // Likewise: whether it is. All bits stay in a cache, and every event asks for its stack's.
  std::vector<bool> defined_;
  Pieces<Node> nodes_;
  Pieces<CodeAddress> codes_;
  std::vector<uint32_t> code_places_;  // Open addressing.
  std::vector<StackNode> places_;      // Open addressing, by the hash of the way to a node ...
  Pieces<uint32_t> hashes_;            // ... which is kept for every node.
  uint64_t count_ = 0;
  uint32_t first_of_cpu_ = UINT32_MAX;
};

struct Thread {
  ThreadId id = ThreadId::kNone;
  int tid = 0;
  std::string name;
  uint64_t start_tick = 0;
};

// How a process ended. At most one of the two is set; neither if nobody told.
struct Exit {
  std::optional<int> code;
  std::optional<int> signal;
};

enum class Origin : uint8_t { kLaunched, kForked, kExeced, kPreloaded };

struct MemorySample {
  uint64_t tick = 0;
  uint64_t bytes = 0;
};

// What the program said at one moment; see wire::MarkKind.
struct Mark {
  uint64_t tick = 0;
  ThreadId thread = ThreadId::kNone;
  wire::MarkKind kind = wire::MarkKind::kUnknown;
  uint32_t name = 0;  // In Tables::mark_names.
};

// A moment at which a thread was computing; see wire::CpuRecord.
struct CpuSample {
  uint64_t tick = 0;
  uint64_t nanoseconds = 0;
  ThreadId thread = ThreadId::kNone;
  StackId stack = StackId::kNone;  // StackTable::is_of_cpu, or kNone: nobody knows where.
  bool of_recorder = false;        // The recorder was at work, for a call from there.
};

struct Image {
  ImageId id = ImageId::kNone;
  ImageId parent = ImageId::kNone;
  int pid = 0;
  int parent_pid = 0;  // 0 if it is not known.
  Origin origin = Origin::kLaunched;
  std::string executable;            // Path of the program file.
  std::vector<std::string> command;  // Its arguments, the program's name first.
  unsigned sample_log2 = 0;          // As Header::sample_log2().
  uint64_t start_tick = 0;
  uint64_t forked_tick = 0;  // Forked images: when the parent's heap was inherited.
  std::optional<uint64_t> end_tick;
  bool ended_by_exec = false;
  std::optional<Exit> exit;

  std::vector<Thread> threads;  // threads[i] has id i + 1.
  std::vector<Module> modules;
  StackTable stacks;
  std::vector<Mark> marks;
  std::vector<CpuSample> cpu;  // In order of time; with --cpu only.
  std::vector<MemorySample> rss;
  std::vector<MemorySample> vm;  // The address space, where it changes.

  uint64_t peak_rss_bytes = 0;      // As the kernel saw it.
  uint64_t recorder_rss_bytes = 0;  // Of which the recorder's own, at its highest.
  uint64_t lost = 0;                // Events dropped, each counted.
  uint64_t truncated_stacks = 0;
  uint64_t unwind_failures = 0;
  uint64_t not_followed = 0;

  // What the program was called as, without folders: its file may have another name.
  std::string program() const {
    const std::string& path = command.empty() || command[0].empty() ? executable : command[0];
    return path.substr(path.rfind('/') + 1);
  }
};

// Something the user should know about the recording itself ("pid 12 (foo) is statically linked").
struct Note {
  std::string text;
};

// One of the recordings that a merged trace was made of.
struct Run {
  ImageId first_image = ImageId::kNone;
  uint32_t images = 0;
  uint64_t start_tick = 0, end_tick = 0;
  int64_t start_unix_ns = 0;
  std::string file;                // As it was called when it was merged.
  std::string incomplete_because;  // Empty if nothing is missing.
};

struct Header {
  uint32_t version = 0;
  uint64_t tick_shift = 0;
  double ns_per_tick = 0;
  uint64_t start_tick = 0;
  int64_t start_unix_ns = 0;
  std::string recorder_version;
  std::vector<std::string> settings;  // "key=value"

  bool has_free_stacks() const { return has_setting("free-stacks=true"); }
  bool has_call_times() const { return has_setting("time-calls=true"); }
  bool has_cpu() const { return has_setting("cpu=true"); }
  // Of wire/sampling.h; 0: every call is in it. Nothing: what the settings say of it makes no
  // sense.
  std::optional<unsigned> sample_setting() const;
  unsigned sample_log2() const { return sample_setting().value_or(0); }
  bool is_sampled() const { return sample_log2() > 0; }
  double ns_per_cycle() const {
    return ns_per_tick / static_cast<double>(uint64_t{1} << tick_shift);
  }
  uint64_t cycles_ns(uint64_t cycles) const {
    return static_cast<uint64_t>(static_cast<double>(cycles) * ns_per_cycle());
  }

 private:
  bool has_setting(std::string_view setting) const {
    return std::find(settings.begin(), settings.end(), setting) != settings.end();
  }
};

struct Tables {
  // Of all kNames chunks that are kept; more than that nobody has asked for.
  static constexpr uint64_t kMostNameBytes = uint64_t{512} << 20;

  Header header;
  std::vector<Image> images;            // images[i] has id i + 1.
  std::vector<std::string> mark_names;  // Each once.
  std::vector<Note> notes;
  std::vector<Run> runs;                    // Empty unless the trace was merged.
  std::vector<std::vector<uint8_t>> names;  // kNames chunks, as they are in the file.
  std::optional<uint64_t> end_tick;         // Set if the recording was finished properly.
  uint64_t epoch_tick = 0;                  // When the last epoch that is there ended.
  uint64_t file_bytes = 0;
  uint64_t events = 0;  // Calls: a realloc counts once.
  bool complete = false;
  std::string incomplete_because;  // A sentence, if not complete.

  // Nanoseconds since the recording began.
  uint64_t time_ns(uint64_t tick) const {
    return tick <= header.start_tick
               ? 0
               : static_cast<uint64_t>(static_cast<double>(tick - header.start_tick) *
                                       header.ns_per_tick);
  }
  const Image& image(ImageId id) const { return images[raw(id) - 1]; }
};

}  // namespace malloscope::trace
