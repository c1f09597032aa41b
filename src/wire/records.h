// SPDX-License-Identifier: Apache-2.0
// The small chunks of a trace: what each holds, and its bytes. Writing and
// reading stand side by side, so that they cannot drift apart: visit() names the
// fields once, in file order, for both. sensible() is what every reader asks of a record, besides
// that its image, if it has one, is known.

#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "wire/chunk.h"
#include "wire/event.h"

namespace malloscope::wire {

inline constexpr uint64_t kMostImages = 1 << 20;

struct HeaderRecord {
  uint64_t version = kFormatVersion;
  uint64_t tick_shift = 0;
  uint64_t start_tick = 0;
  uint64_t start_unix_ns = 0;
  uint64_t cycles_per_second = 0;  // As first measured; the kEnd chunk has it better.
  std::string recorder_version;
  std::vector<std::string> settings;  // "key=value"
  template <typename V>
  void visit(V& v) {
    v(version), v(tick_shift), v(start_tick), v(start_unix_ns), v(cycles_per_second);
    v(recorder_version), v(settings);
  }
  bool sensible() const { return version != 0 && tick_shift <= 40 && cycles_per_second != 0; }
};

struct ImageStartRecord {
  uint64_t image = 0, parent = 0, pid = 0, parent_pid = 0, origin = 0;
  uint64_t start_tick = 0, forked_tick = 0;
  std::string executable;
  std::vector<std::string> command;
  template <typename V>
  void visit(V& v) {
    v(image), v(parent), v(pid), v(parent_pid), v(origin), v(start_tick), v(forked_tick);
    v(executable), v(command);
  }
  // As the first of so many images and one.
  bool sensible(uint64_t images_before) const {
    return image == images_before + 1 && image <= kMostImages && parent < image && origin <= 3;
  }
};

enum ExitKind : uint64_t { kExitUnknown = 0, kExitCode = 1, kExitSignal = 2, kExitExec = 3 };

struct ImageEndRecord {
  uint64_t image = 0, end_tick = 0, exit_kind = 0, exit_value = 0;
  uint64_t peak_rss_bytes = 0, recorder_rss_bytes = 0;
  uint64_t lost = 0, truncated_stacks = 0, unwind_failures = 0, not_followed = 0;
  template <typename V>
  void visit(V& v) {
    v(image), v(end_tick), v(exit_kind), v(exit_value);
    v(peak_rss_bytes), v(recorder_rss_bytes);
    v(lost), v(truncated_stacks), v(unwind_failures), v(not_followed);
  }
};

struct ThreadRecord {
  uint64_t image = 0, thread = 0, tid = 0, start_tick = 0;
  std::string name;
  template <typename V>
  void visit(V& v) {
    v(image), v(thread), v(tid), v(start_tick), v(name);
  }
};

struct ModuleRecord {
  uint64_t image = 0, start = 0, end = 0, bias = 0, generation = 0;
  std::string build_id;  // Raw bytes.
  std::string path;
  template <typename V>
  void visit(V& v) {
    v(image), v(start), v(end), v(bias), v(generation), v(build_id), v(path);
  }
  bool sensible() const { return start < end; }
};

struct MappingRecord {
  uint64_t image = 0, thread = 0, tick = 0, op = 0, flags = 0;
  uint64_t address = 0, size = 0, other = 0, stack = 0;
  template <typename V>
  void visit(V& v) {
    v(image), v(thread), v(tick), v(op), v(flags), v(address), v(size), v(other), v(stack);
  }
  bool sensible() const {
    return op >= static_cast<uint64_t>(Op::kMmap) && op < kOps && stack <= UINT32_MAX &&
           thread <= UINT32_MAX;
  }
};

struct RssRecord {
  uint64_t image = 0, tick = 0, bytes = 0;
  template <typename V>
  void visit(V& v) {
    v(image), v(tick), v(bytes);
  }
};

// The size of an image's address space; told only when it is another than before.
struct VmRecord {
  uint64_t image = 0, tick = 0, bytes = 0;
  template <typename V>
  void visit(V& v) {
    v(image), v(tick), v(bytes);
  }
};

// An image's marks are numbered from 1, in the order of their records.
struct MarkRecord {
  uint64_t image = 0, thread = 0, tick = 0, kind = 0;
  std::string name;
  template <typename V>
  void visit(V& v) {
    v(image), v(thread), v(tick), v(kind), v(name);
  }
  bool sensible() const {
    return kind > 0 && kind < kMarkKinds && name.size() <= kMostMarkBytes && thread <= UINT32_MAX;
  }
};

// A moment at which a thread was computing, and the CPU time that it stands for: all that the
// thread has used since the one before. Stack 0: nobody knows where that was spent.
struct CpuRecord {
  uint64_t image = 0, thread = 0, tick = 0, stack = 0, nanoseconds = 0, flags = 0;
  template <typename V>
  void visit(V& v) {
    v(image), v(thread), v(tick), v(stack), v(nanoseconds), v(flags);
  }
  bool sensible() const {
    return stack <= UINT32_MAX && thread <= UINT32_MAX && nanoseconds <= kMostCpuNanoseconds;
  }
};

struct NoteRecord {
  std::string text;
  template <typename V>
  void visit(V& v) {
    v(text);
  }
};

struct RunRecord {
  uint64_t first_image = 0, images = 0, start_tick = 0, end_tick = 0, start_unix_ns = 0;
  std::string file;                // As it was called when it was merged.
  std::string incomplete_because;  // Empty if nothing is missing.
  template <typename V>
  void visit(V& v) {
    v(first_image), v(images), v(start_tick), v(end_tick), v(start_unix_ns);
    v(file), v(incomplete_because);
  }
  bool sensible(uint64_t images_in_all) const {
    return first_image <= images_in_all + 1 && images <= images_in_all;
  }
};

struct EndRecord {
  uint64_t tick = 0, cycles_per_second = 0, events = 0;
  std::string incomplete_because;  // Empty if nothing is missing.
  template <typename V>
  void visit(V& v) {
    v(tick), v(cycles_per_second), v(events), v(incomplete_because);
  }
  bool sensible() const { return cycles_per_second != 0; }
};

// kThread, kModule, kMappings, kRss, kVm, kMarks, kCpu, kNote and kRun chunks hold several of
// their records.

struct RecordWriter {
  Packer& out;
  void operator()(uint64_t& value) { out.number(value); }
  void operator()(std::string& value) { out.text(value); }
  void operator()(std::vector<std::string>& values) {
    out.number(values.size());
    for (std::string& value : values) out.text(value);
  }
};

struct RecordReader {
  Unpacker& in;
  void operator()(uint64_t& value) { value = in.number(); }
  void operator()(std::string& value) { value = in.text(); }
  void operator()(std::vector<std::string>& values) {
    uint64_t count = in.number();
    if (count > in.remaining()) in.refuse();
    values.clear();
    for (uint64_t i = 0; i < count && in.ok(); ++i) values.emplace_back(in.text());
  }
};

template <typename Record>
void pack(Record record, Packer* out) {
  RecordWriter writer{*out};
  record.visit(writer);
}

// False if the bytes end too early.
template <typename Record>
bool unpack(Unpacker* in, Record* record) {
  RecordReader reader{*in};
  record->visit(reader);
  return in->ok();
}

}  // namespace malloscope::wire
