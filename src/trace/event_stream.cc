// SPDX-License-Identifier: Apache-2.0
// The images are known before the first event (whole_chunks.h looks ahead for them), since a
// forked child must be announced before its parent changes the heap that the child has
// inherited. Then epoch by epoch: fill the tables, show the events.

#include "trace/event_stream.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "trace/cpu_stacks.h"
#include "trace/file_reader.h"
#include "trace/merge.h"
#include "trace/whole_chunks.h"
#include "wire/records.h"
#include "wire/stacks.h"

namespace malloscope::trace {
namespace {

using wire::ChunkType;

void set_clock(Header* header, uint64_t cycles_per_second) {
  header->ns_per_tick = static_cast<double>(uint64_t{1} << header->tick_shift) * 1e9 /
                        static_cast<double>(cycles_per_second);
}

bool read_header(wire::Unpacker in, Header* header) {
  wire::HeaderRecord record;
  if (!wire::unpack(&in, &record) || !record.sensible()) return false;
  header->version = static_cast<uint32_t>(record.version);
  header->tick_shift = record.tick_shift;
  header->start_tick = record.start_tick;
  header->start_unix_ns = static_cast<int64_t>(record.start_unix_ns);
  header->recorder_version = record.recorder_version;
  header->settings = record.settings;
  set_clock(header, record.cycles_per_second);
  return header->sample_setting().has_value();
}

class Stream {
 public:
  Stream(std::string path, Listener* listener, StreamOptions options)
      : path_(std::move(path)),
        listener_(listener),
        options_(std::move(options)),
        merger_(listener) {}

  Result<Tables> run() {
    Result<WholeChunks> chunks = WholeChunks::open(path_, [&](const Chunk& chunk) {
      return chunk.type != ChunkType::kImageStart ||
             take_image_start(wire::Unpacker(chunk.payload));
    });
    if (!chunks) return std::unexpected(chunks.error());
    order_announcements();
    if (!options_.events) chunks->leave_out_events();
    Chunk chunk = {};
    for (;;) {
      Result<bool> next = chunks->next(&chunk);
      if (!next) return std::unexpected(next.error());
      if (!*next) break;
      if (!take(chunk)) return chunks->nonsense(chunk);
      if (chunk.type == ChunkType::kEpochEnd) {
        if (const Chunk* wrong = show_epoch()) return chunks->nonsense(*wrong);
        if (options_.progress)
          options_.progress(static_cast<double>(chunk.offset) /
                            static_cast<double>(chunks->bytes()));
      }
    }
    if (tables_.header.version == 0) return chunks->nothing();
    tables_.file_bytes = chunks->bytes();
    for (Image& image : tables_.images) {
      image.stacks.all_defined();
      check_cpu(&image);
    }
    part_cpu_of_execs(&tables_.images);
    tables_.complete = tables_.end_tick.has_value() && tables_.incomplete_because.empty();
    if (!tables_.end_tick) tables_.incomplete_because = chunks->why_no_end();
    return std::move(tables_);
  }

 private:
  // When all images are known.
  void order_announcements() {
    decoders_.resize(tables_.images.size());
    for (Image& fresh : tables_.images) unannounced_.push_back(&fresh);
    // A fork whose time is not known is taken for early, but never for earlier than its parent.
    for (const Image& image : tables_.images) {
      uint64_t tick = image.origin == Origin::kForked ? image.forked_tick : image.start_tick;
      if (image.origin == Origin::kForked && image.parent != ImageId::kNone)
        tick = std::max(tick, announcements_[raw(image.parent) - 1]);
      announcements_.push_back(tick);
    }
    std::stable_sort(unannounced_.begin(), unannounced_.end(), [&](const Image* a, const Image* b) {
      return announcement_of(*a) < announcement_of(*b);
    });
  }

  uint64_t announcement_of(const Image& image) const { return announcements_[raw(image.id) - 1]; }

  bool take(const Chunk& chunk) {
    wire::Unpacker in(chunk.payload);
    switch (chunk.type) {
      case ChunkType::kHeader:
        return take_header(in);
      case ChunkType::kImageStart:
        return true;  // Known since the first look.
      case ChunkType::kImageEnd:
        return take_image_end(in);
      case ChunkType::kThread:
        return take_all<wire::ThreadRecord>(in);
      case ChunkType::kModule:
        return take_all<wire::ModuleRecord>(in);
      case ChunkType::kMappings:
        return take_all<wire::MappingRecord>(in);
      case ChunkType::kRss:
        return take_all<wire::RssRecord>(in);
      case ChunkType::kVm:
        return take_all<wire::VmRecord>(in);
      case ChunkType::kMarks:
        return take_all<wire::MarkRecord>(in);
      case ChunkType::kCpu:
        return take_all<wire::CpuRecord>(in);
      case ChunkType::kNote:
        return take_all<wire::NoteRecord>(in);
      case ChunkType::kRun:
        return take_all<wire::RunRecord>(in);
      case ChunkType::kStacks:
        return take_stacks(in);
      case ChunkType::kEvents:
        return take_events(chunk);
      case ChunkType::kEnd:
        return take_end(in);
      case ChunkType::kEpochEnd:
        tables_.epoch_tick = chunk.last_tick;
        return true;
      case ChunkType::kIndex:
        return true;
      case ChunkType::kNames:
        name_bytes_ += chunk.payload.size();
        if (name_bytes_ <= Tables::kMostNameBytes)
          tables_.names.emplace_back(chunk.payload.begin(), chunk.payload.end());
        return true;
    }
    return true;  // A kind of a later version: skipped.
  }

  template <typename Record>
  bool take_all(wire::Unpacker in) {
    while (!in.done()) {
      Record record;
      if (!wire::unpack(&in, &record) || !take_record(record)) return false;
    }
    return true;
  }

  Image* image(uint64_t id) {
    return id >= 1 && id <= tables_.images.size() ? &tables_.images[id - 1] : nullptr;
  }

  bool take_header(wire::Unpacker in) {
    if (!read_header(in, &tables_.header)) return false;
    for (Image& known : tables_.images) known.sample_log2 = tables_.header.sample_log2();
    return true;
  }

  bool take_image_start(wire::Unpacker in) {
    wire::ImageStartRecord record;
    if (!wire::unpack(&in, &record) || !record.sensible(tables_.images.size())) return false;
    Image fresh;
    fresh.id = ImageId{static_cast<uint32_t>(record.image)};
    fresh.parent = ImageId{static_cast<uint32_t>(record.parent)};
    fresh.pid = static_cast<int>(record.pid);
    fresh.parent_pid = static_cast<int>(record.parent_pid);
    fresh.origin = static_cast<Origin>(record.origin);
    fresh.executable = record.executable;
    fresh.command = record.command;
    fresh.start_tick = record.start_tick;
    fresh.forked_tick = record.forked_tick;
    tables_.images.push_back(std::move(fresh));
    return true;
  }

  bool take_image_end(wire::Unpacker in) {
    wire::ImageEndRecord record;
    Image* ended = wire::unpack(&in, &record) ? image(record.image) : nullptr;
    if (!ended) return false;
    if (!ended->end_tick) ends_.push_back(record.image - 1);
    ended->end_tick = record.end_tick;
    ended->ended_by_exec = record.exit_kind == wire::kExitExec;
    if (record.exit_kind == wire::kExitCode)
      ended->exit = Exit{.code = static_cast<int>(record.exit_value), .signal = {}};
    if (record.exit_kind == wire::kExitSignal)
      ended->exit = Exit{.code = {}, .signal = static_cast<int>(record.exit_value)};
    ended->peak_rss_bytes = record.peak_rss_bytes;
    ended->recorder_rss_bytes = record.recorder_rss_bytes;
    ended->lost = record.lost;
    ended->truncated_stacks = record.truncated_stacks;
    ended->unwind_failures = record.unwind_failures;
    ended->not_followed = record.not_followed;
    return true;
  }

  bool take_record(const wire::ThreadRecord& record) {
    Image* owner = image(record.image);
    if (!owner || record.thread == 0 || record.thread > owner->threads.size() + 1) return false;
    if (record.thread > owner->threads.size()) owner->threads.emplace_back();
    Thread& thread = owner->threads[record.thread - 1];
    thread.id = ThreadId{static_cast<uint32_t>(record.thread)};
    thread.tid = static_cast<int>(record.tid);
    thread.start_tick = record.start_tick;
    if (!record.name.empty()) thread.name = record.name;
    return true;
  }

  bool take_record(const wire::ModuleRecord& record) {
    Image* owner = image(record.image);
    if (!owner || !record.sensible()) return false;
    Module module;
    module.start = record.start;
    module.end = record.end;
    module.bias = record.bias;
    module.generation = static_cast<uint32_t>(record.generation);
    module.path = record.path;
    for (char byte : record.build_id)
      module.build_id += fmt::format("{:02x}", static_cast<uint8_t>(byte));
    owner->modules.push_back(std::move(module));
    return true;
  }

  bool take_record(const wire::MappingRecord& record) {
    if (!image(record.image) || !record.sensible()) return false;
    wire::Event event;
    event.kind = wire::Kind::kMapping;
    event.op = static_cast<wire::Op>(record.op);
    event.flags = static_cast<uint8_t>(record.flags);
    event.tick = record.tick;
    event.address = record.address;
    event.size = record.size;
    event.other = record.other;
    event.image = ImageId{static_cast<uint32_t>(record.image)};
    event.thread = ThreadId{static_cast<uint32_t>(record.thread)};
    event.stack = StackId{static_cast<uint32_t>(record.stack)};
    mappings_.push_back(event);
    return mappings_.size() <= wire::kMaxEpochEvents;
  }

  bool take_record(const wire::RssRecord& record) {
    Image* owner = image(record.image);
    if (!owner) return false;
    owner->rss.push_back({record.tick, record.bytes});
    owner->peak_rss_bytes = std::max(owner->peak_rss_bytes, record.bytes);
    return true;
  }

  bool take_record(const wire::VmRecord& record) {
    Image* owner = image(record.image);
    if (!owner) return false;
    owner->vm.push_back({record.tick, record.bytes});
    return true;
  }

  bool take_record(const wire::MarkRecord& record) {
    Image* owner = image(record.image);
    if (!owner || !record.sensible()) return false;
    auto [name, fresh] =
        mark_names_.try_emplace(record.name, static_cast<uint32_t>(tables_.mark_names.size()));
    if (fresh) tables_.mark_names.push_back(record.name);
    owner->marks.push_back({record.tick, ThreadId{static_cast<uint32_t>(record.thread)},
                            static_cast<wire::MarkKind>(record.kind), name->second});
    return true;
  }

  bool take_record(const wire::CpuRecord& record) {
    Image* owner = image(record.image);
    if (!owner || !record.sensible() || cpu_ns_ + record.nanoseconds < cpu_ns_) return false;
    cpu_ns_ += record.nanoseconds;
    owner->cpu.push_back(
        {record.tick, record.nanoseconds, ThreadId{static_cast<uint32_t>(record.thread)},
         StackId{static_cast<uint32_t>(record.stack)}, (record.flags & wire::kCpuOfRecorder) != 0});
    return true;
  }

  bool take_record(const wire::NoteRecord& record) {
    tables_.notes.push_back({record.text});
    return true;
  }

  bool take_record(const wire::RunRecord& record) {
    if (!record.sensible(tables_.images.size())) return false;
    tables_.runs.push_back({ImageId{static_cast<uint32_t>(record.first_image)},
                            static_cast<uint32_t>(record.images), record.start_tick,
                            record.end_tick, static_cast<int64_t>(record.start_unix_ns),
                            record.file, record.incomplete_because});
    return true;
  }

  bool take_stacks(wire::Unpacker in) {
    if (!options_.stacks) return true;
    uint64_t id = in.number();
    Image* owner = in.ok() ? image(id) : nullptr;
    if (!owner) return false;
    // Within an epoch one thread's definition may stand before that of the older stack it
    // builds on, which another thread made; so they are kept until the epoch is whole.
    return decoders_[id - 1].decode(in, [&](const wire::StackDefinition& d) {
      definitions_.push_back({id - 1, d.id, d.owner, d.kept, d.generation, d.flags,
                              static_cast<uint32_t>(d.fresh.size()), fresh_.size()});
      fresh_.insert(fresh_.end(), d.fresh.begin(), d.fresh.end());
      return true;
    });
  }

  // One that builds on a stack of the next epoch waits for it (collect/drain.cc); nothing in this
  // epoch names it. In a merged trace there are epochs of others between the two.
  void define_stacks() {
    std::sort(definitions_.begin(), definitions_.end(), [](const auto& a, const auto& b) {
      return a.image != b.image ? a.image < b.image : a.id < b.id;
    });
    std::vector<Pending> waiting;
    std::vector<uint64_t> waiting_frames;
    for (Pending d : definitions_) {
      StackTable& stacks = tables_.images[d.image].stacks;
      const uint64_t* frames = fresh_.data() + d.first;
      if (stacks.define(d.id, d.owner, d.kept, d.generation, d.flags, frames, d.count)) continue;
      if (d.kept == 0 || d.waited == kMostEpochs || stacks.defined(d.owner)) continue;
      ++d.waited;
      d.first = waiting_frames.size();
      waiting_frames.insert(waiting_frames.end(), frames, frames + d.count);
      waiting.push_back(d);
    }
    definitions_ = std::move(waiting);  // Most come early, and then the memory is for others.
    fresh_ = std::move(waiting_frames);
  }

  // They are decoded when their time has come: an epoch may hold millions of events.
  bool take_events(const Chunk& chunk) {
    undecoded_.push_back({chunk, {chunk.payload.begin(), chunk.payload.end()}, undecoded_.size()});
    return true;
  }

  bool take_end(wire::Unpacker in) {
    wire::EndRecord record;
    if (!wire::unpack(&in, &record) || !record.sensible()) return false;
    tables_.end_tick = record.tick;
    tables_.incomplete_because = record.incomplete_because;
    set_clock(&tables_.header, record.cycles_per_second);
    return true;
  }

  // Listeners index by image, thread and stack: what is not in the tables becomes "unknown".
  void check(wire::Event* event) {
    const Image& owner = tables_.images[raw(event->image) - 1];
    if (!owner.stacks.defined(event->stack)) event->stack = StackId::kNone;
    if (raw(event->thread) > owner.threads.size()) event->thread = ThreadId::kNone;
    if (event->kind == wire::Kind::kMark) [[unlikely]]
      name_mark(owner, event);
  }
  static void check_cpu(Image* owner) {
    for (CpuSample& sample : owner->cpu) {
      if (!owner->stacks.defined(sample.stack)) sample.stack = StackId::kNone;
      if (raw(sample.thread) > owner->threads.size()) sample.thread = ThreadId::kNone;
    }
    std::ranges::stable_sort(owner->cpu, {}, &CpuSample::tick);
    name_cpu_stacks(owner);
  }
  static void name_mark(const Image& owner, wire::Event* event) {
    uint64_t number = std::exchange(event->size, 0);
    if (number == 0 || number > owner.marks.size()) return;
    const Mark& mark = owner.marks[number - 1];
    event->flags = static_cast<uint8_t>(mark.kind);
    event->size = mark.name;
  }

  // Returns the chunk that made no sense, or nullptr.
  const Chunk* show_epoch() {
    define_stacks();
    for (; announced_ < unannounced_.size() &&
           announcement_of(*unannounced_[announced_]) <= tables_.epoch_tick;
         ++announced_)
      listener_->image_started(*unannounced_[announced_]);
    std::stable_sort(mappings_.begin(), mappings_.end(),
                     [](const auto& a, const auto& b) { return a.tick < b.tick; });
    for (wire::Event& event : mappings_) check(&event);
    merger_.add(mappings_, UINT64_MAX);
    for (uint64_t ended : ends_)
      merger_.add_end(*tables_.images[ended].end_tick, &tables_.images[ended]);
    std::ranges::stable_sort(undecoded_, {}, [](const auto& c) { return c.chunk.first_tick; });
    for (size_t i = 0; i < undecoded_.size(); ++i) {
      const Undecoded& next = undecoded_[i];
      merger_.merge_before(next.chunk.first_tick);
      uint64_t until = i + 1 < undecoded_.size() ? undecoded_[i + 1].chunk.first_tick : UINT64_MAX;
      if (!decode(next, until)) return &next.chunk;
    }
    merger_.merge();
    epoch_events_ = 0;
    undecoded_.clear();
    mappings_.clear();
    ends_.clear();
    return nullptr;
  }

  struct Undecoded {
    Chunk chunk;
    std::vector<uint8_t> payload;
    uint64_t order;  // In the file.
  };
  struct Decoded {
    wire::DecodedChunk events;
    uint32_t left = 0;  // Runs that are not yet shown.
  };

  // No later chunk has anything before `until`. Where there is but one run until then, its events
  // are shown while they are in the cache. Two may be mixed, even if both are of one thread: what a
  // signal handler did while the thread was recording has a lane of its own.
  bool decode(const Undecoded& chunk, uint64_t until) {
    constexpr uint32_t kSome = 1024;
    if (!decoder_.begin(chunk.payload)) return false;
    if (chunk.chunk.last_tick > until || !decoder_.of_one_run()) {
      Decoded& to = unused();
      while (decoder_.more())
        if (!decoder_.part(UINT32_MAX, &to.events)) return false;
      return add(&to, chunk.order << 32);
    }
    for (uint64_t part = 0; decoder_.more(); ++part) {
      Decoded& to = unused();
      if (!decoder_.part(kSome, &to.events) || !add(&to, chunk.order << 32 | part)) return false;
      if (!to.events.events.empty())
        merger_.merge_before(std::min(to.events.events.back().tick + 1, until));
    }
    return true;
  }

  bool add(Decoded* to, uint64_t first_order) {
    epoch_events_ += to->events.events.size();
    if (epoch_events_ > wire::kMaxEpochEvents) return false;
    for (size_t i = 0; i < to->events.runs.size(); ++i) {
      const wire::DecodedRun& run = to->events.runs[i];
      if (!image(raw(run.image))) continue;
      auto events = std::span(to->events.events).subspan(run.first, run.count);
      for (wire::Event& event : events) {
        check(&event);
        tables_.events += wire::is_call(event.kind);
      }
      merger_.add(events, first_order + i, &to->left);
    }
    return true;
  }

  Decoded& unused() {
    auto found = std::ranges::find(decoded_, 0U, [](const auto& d) { return d->left; });
    if (found == decoded_.end())
      found = decoded_.insert(decoded_.end(), std::make_unique<Decoded>());
    (*found)->events.events.clear();
    (*found)->events.runs.clear();
    return **found;
  }

  static constexpr uint32_t kMostEpochs = 16;
  struct Pending {  // A StackDefinition, its frames in `fresh_`.
    uint64_t image;
    StackId id, owner;
    uint32_t kept, generation, flags, count;
    size_t first;
    uint32_t waited = 0;  // Epochs.
  };

  std::string path_;
  Listener* listener_;
  StreamOptions options_;
  EpochMerger merger_;
  Tables tables_;
  std::vector<uint64_t> announcements_;    // When to tell of an image; by id - 1.
  std::vector<const Image*> unannounced_;  // All images, in order of announcement.
  size_t announced_ = 0;
  std::vector<uint64_t> ends_;
  std::vector<wire::StackDecoder> decoders_;
  std::unordered_map<std::string, uint32_t> mark_names_;
  std::vector<Pending> definitions_;
  std::vector<uint64_t> fresh_;
  wire::EventDecoder decoder_;
  std::vector<Undecoded> undecoded_;  // Of this epoch.
  std::vector<std::unique_ptr<Decoded>> decoded_;
  uint64_t epoch_events_ = 0;
  std::vector<wire::Event> mappings_;
  uint64_t cpu_ns_ = 0;  // Of all samples.
  uint64_t name_bytes_ = 0;
};

}  // namespace

Result<Overview> overview(const std::string& path) {
  auto reader = FileReader::open(path);
  if (!reader) return std::unexpected(reader.error());
  Overview found;
  found.bytes = reader->bytes();
  Chunk chunk = {};
  uint64_t events_tick = 0;  // They are shown once their epoch has ended.
  for (;;) {
    auto next = reader->skip(&chunk);
    if (!next) return std::unexpected(next.error());
    if (*next != Next::kChunk) break;
    if (chunk.type == ChunkType::kEvents)
      events_tick = std::max(events_tick, chunk.last_tick);
    else
      found.end_tick = std::max(found.end_tick, chunk.last_tick);
    if (chunk.type == ChunkType::kEpochEnd) found.end_tick = std::max(found.end_tick, events_tick);
    const uint64_t witness[] = {found.fingerprint, static_cast<uint64_t>(chunk.type),
                                chunk.offset,      chunk.first_tick,
                                chunk.last_tick,   chunk.checksum};
    found.fingerprint = XXH3_64bits(witness, sizeof witness);
    found.images += chunk.type == ChunkType::kImageStart;
    if (chunk.type != ChunkType::kHeader && chunk.type != ChunkType::kEnd) continue;
    reader->step_back();
    next = reader->next(&chunk);
    if (!next) return std::unexpected(next.error());
    bool good = true;
    if (chunk.type == ChunkType::kHeader) {
      good = read_header(wire::Unpacker(chunk.payload), &found.header);
    } else {
      wire::Unpacker in(chunk.payload);
      wire::EndRecord record;
      good = wire::unpack(&in, &record) && record.sensible();
      if (good) set_clock(&found.header, record.cycles_per_second);
      if (good) found.end_tick = record.tick;
      if (good) found.events = record.events;
    }
    if (!good)
      return fail(
          fmt::format("{} is damaged at byte {}: the chunk makes no sense", path, chunk.offset));
  }
  if (found.header.version == 0)
    return fail(fmt::format("{} ends before its first whole chunk; nothing was recorded", path));
  return found;
}

Result<Tables> stream(const std::string& path, Listener* listener, StreamOptions options) {
  return Stream(path, listener, std::move(options)).run();
}

}  // namespace malloscope::trace
