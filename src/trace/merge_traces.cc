// SPDX-License-Identifier: Apache-2.0
// Chunk by chunk, images get new numbers and ticks a new clock; threads and stacks are numbered
// by image and stay as they are.
//
// Of several clocks the finest is taken, so that no two ticks become one: a reader would otherwise
// have to guess who came first where the recording had told.
//
// Inputs that run at the same time are read epoch by epoch, one of each in memory. Of these, what
// lies before the earliest end is written as one epoch. Within an epoch a reader goes by time
// anyway, so that to divide one by time changes nothing; but no two epochs of one input become
// one, since in the second there may be events older than the last of the first. One after the
// other is the same with one input at a time.

#include "trace/merge_traces.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <set>

#include "trace/event_stream.h"
#include "trace/whole_chunks.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/records.h"
#include "wire/stacks.h"

namespace malloscope::trace {
namespace {

using wire::ChunkType;
__extension__ using Wide = unsigned __int128;

constexpr ChunkType kLastType = ChunkType::kCpu;          // That this knows how to merge.
constexpr size_t kChunkBytes = wire::kMaxChunkBytes / 4;  // When a chunk is large enough.

// No clock gets there; what a file claims beyond is cut off, so that sums of two do not overflow.
constexpr uint64_t kLatest = uint64_t{1} << 61;

// An input's time in the merged trace. Grows with every tick, since a tick there is never longer.
struct Place {
  uint64_t earliest = 0;             // The input's tick that becomes ...
  uint64_t zero = 1;                 // ... this one.
  uint64_t whole = 1, fraction = 0;  // Ticks for each of the input's, and 2^-64 ticks.
  double cycle = 1;                  // Cycles for each of the input's.

  uint64_t length(uint64_t ticks) const {
    Wide length = Wide{ticks} * whole + (Wide{ticks} * fraction >> 64);
    return static_cast<uint64_t>(std::min<Wide>(length, kLatest));
  }
  uint64_t cycles(uint64_t count) const {
    return static_cast<uint64_t>(static_cast<double>(count) * cycle);
  }
  uint64_t operator()(uint64_t tick) const {
    if (tick == 0) return 0;  // It is not known.
    return zero + length(tick > earliest ? tick - earliest : 0);
  }
};

// Writes the chunks of the merged trace.
class Output {
 public:
  explicit Output(FileWriter* file) : file_(*file) {}

  template <typename Record>
  void put(ChunkType type, const Record& record, uint64_t tick) {
    wire::Packer& records = pending_[static_cast<size_t>(type)];
    wire::pack(record, &records);
    latest_ = std::max(latest_, tick);
    if (records.result().size() > kChunkBytes) flush(type);
  }
  void put_chunk(ChunkType type, std::span<const uint8_t> payload, uint64_t tick) {
    too_large_ |= payload.size() > wire::kMaxChunkBytes;
    file_.append(type, payload, tick, tick, true);
  }
  void put_events(const wire::Event* first, const wire::Event* last) {
    while (first != last) {
      if (encoder_.events() + kMostTags > wire::kMaxChunkEvents) flush_events();
      uint64_t room = (wire::kMaxChunkEvents - encoder_.events()) / kMostTags;
      const wire::Event* stop =
          first + std::min<ptrdiff_t>(last - first, static_cast<ptrdiff_t>(room));
      if (encoder_.events() == 0) first_tick_ = first->tick;
      first_tick_ = std::min(first_tick_, first->tick);
      encoder_.start_run(first->image, first->thread, first->tick);
      for (; first != stop; ++first) {
        encoder_.put(*first);
        last_tick_ = std::max(last_tick_, first->tick);
        events_ += wire::is_call(first->kind);
      }
    }
  }
  void end_epoch(uint64_t tick) {
    for (size_t type = 0; type < kTypes; ++type) flush(static_cast<ChunkType>(type));
    flush_events();
    file_.end_epoch(tick);
    latest_ = std::max(latest_, tick);
  }

  FileWriter& file() { return file_; }
  uint64_t events() const { return events_; }
  void reach(uint64_t tick) { latest_ = std::max(latest_, tick); }
  uint64_t latest() const { return latest_; }  // Of all ticks written.
  bool failed() const { return too_large_ || !file_.error().empty(); }
  std::unexpected<Error> error() const {
    if (!file_.error().empty()) return fail(file_.error());
    return fail("a record is too large for a chunk; no recorder writes such");
  }

 private:
  static constexpr uint32_t kMostTags = 2;  // A free may have a stack, an allocation an alignment.
  static constexpr size_t kTypes = static_cast<size_t>(kLastType) + 1;

  void flush(ChunkType type) {
    std::vector<uint8_t>& bytes = pending_[static_cast<size_t>(type)].result();
    if (!bytes.empty()) put_chunk(type, bytes, latest_);
    bytes.clear();
  }
  void flush_events() {
    if (encoder_.events() == 0) return;
    file_.append(ChunkType::kEvents, encoder_.finish(), first_tick_, last_tick_);
    reach(last_tick_);
    last_tick_ = 0;
  }

  FileWriter& file_;
  wire::EventEncoder encoder_;
  wire::Packer pending_[kTypes];
  uint64_t first_tick_ = 0, last_tick_ = 0;  // Of the events in the encoder.
  uint64_t events_ = 0, latest_ = 0;
  bool too_large_ = false;
};

class Input {
 public:
  static Result<std::unique_ptr<Input>> open(const std::string& path) {
    Result<Overview> overview = trace::overview(path);
    if (!overview) return std::unexpected(overview.error());
    auto input = std::unique_ptr<Input>(new Input);
    input->path_ = path;
    input->header = overview->header;
    if (input->header.version > wire::kFormatVersion)
      return fail(fmt::format("{} was written by a newer Malloscope ({}); merge with that one",
                              path, input->header.recorder_version));
    input->place.earliest = std::max<uint64_t>(1, input->header.start_tick);
    Result<WholeChunks> chunks = WholeChunks::open(path, [&](const Chunk& chunk) {
      if (chunk.type == ChunkType::kImageStart) return input->take_start(chunk);
      if (chunk.type == ChunkType::kEvents) input->begins(chunk.first_tick);
      return true;
    });
    if (!chunks) return std::unexpected(chunks.error());
    input->chunks_ = std::make_unique<WholeChunks>(std::move(*chunks));
    return input;
  }

  Header header;
  Place place;

  uint64_t images() const { return starts_.size(); }
  uint64_t start_tick() const { return place(std::max<uint64_t>(1, header.start_tick)); }
  const std::string& path() const { return path_; }
  uint64_t runs() const { return runs_.size(); }
  const std::string& incomplete_because() const { return incomplete_because_; }
  uint64_t bytes() const { return chunks_->bytes(); }
  uint64_t position() const { return finished_ ? bytes() : chunks_->position(); }

  // Its images have numbers from there on. Writes how they started.
  void begin(uint64_t images_before, Output* out) {
    before_ = images_before;
    decoder_ = std::make_unique<wire::EventDecoder>();
    stacks_.resize(starts_.size());
    seen_.resize(starts_.size());
    for (wire::ImageStartRecord start : starts_) {
      start.image += before_;
      if (start.parent > 0) start.parent += before_;
      start.start_tick = place(start.start_tick);
      start.forked_tick = place(start.forked_tick);
      wire::Packer payload;
      wire::pack(start, &payload);
      out->put_chunk(ChunkType::kImageStart, payload.result(), start.start_tick);
    }
  }

  // Goes on to its next epoch, having written all of it but what has its place in time. False if
  // there is none; then its end is written too.
  Result<bool> load(Output* out) {
    epoch_ = {};
    Chunk chunk = {};
    for (;;) {
      Result<bool> next = chunks_->next(&chunk);
      if (!next) return std::unexpected(next.error());
      if (!*next) break;
      if (chunk.type < ChunkType::kHeader || chunk.type > kLastType)
        return fail(
            fmt::format("{} holds what only a newer Malloscope knows; merge with that one", path_));
      if (!take(chunk, out)) return chunks_->nonsense(chunk);
      if (chunk.type == ChunkType::kEpochEnd) return begin_epoch(), true;
    }
    if (!has_header_) return chunks_->nothing();
    finish(out);
    return false;
  }
  bool loaded() const { return epoch_.whole; }

  // Of the epoch it is at:
  uint64_t declared_end() const { return epoch_.declared_end; }
  uint64_t end() const { return epoch_.end; }  // After the last event.
  uint64_t next_tick() const {
    uint64_t next = epoch_.end;
    for (const Rest& rest : epoch_.rests) next = std::min(next, rest.first->tick);
    for (const wire::MappingRecord& mapping : epoch_.mappings) next = std::min(next, mapping.tick);
    return next;
  }
  uint64_t events_before(uint64_t tick) const {
    uint64_t count = epoch_.mappings.size();
    for (const Rest& rest : epoch_.rests)
      count += static_cast<uint64_t>(cut(rest, tick) - rest.first);
    return count;
  }
  // Writes what lies before `tick`, and has no epoch any more if that was all of it.
  void emit(uint64_t tick, Output* out) {
    bool all = tick >= epoch_.end;
    for (Rest& rest : epoch_.rests) {
      const wire::Event* stop = all ? rest.last : cut(rest, tick);
      out->put_events(rest.first, stop);
      rest.first = stop;
    }
    std::erase_if(epoch_.rests, [](const Rest& rest) { return rest.first == rest.last; });
    std::erase_if(epoch_.mappings, [&](const wire::MappingRecord& mapping) {
      if (!all && mapping.tick >= tick) return false;
      out->put(ChunkType::kMappings, mapping, mapping.tick);
      return true;
    });
    std::erase_if(epoch_.ends, [&](const wire::ImageEndRecord& end) {
      if (!all && end.end_tick >= tick) return false;
      wire::Packer payload;
      wire::pack(end, &payload);
      out->put_chunk(ChunkType::kImageEnd, payload.result(), end.end_tick);
      out->reach(end.end_tick);
      return true;
    });
    if (all) epoch_.whole = false;
  }

 private:
  // What is left of a run of events.
  struct Rest {
    const wire::Event* first;
    const wire::Event* last;
  };
  struct Epoch {
    bool whole = false;
    wire::DecodedChunk events;
    std::vector<Rest> rests;
    std::vector<wire::MappingRecord> mappings;
    std::vector<wire::ImageEndRecord> ends;
    uint64_t declared_end = 0, end = 0;
  };
  struct Seen {
    bool ended = false;
    uint64_t peak_rss_bytes = 0;
    uint64_t threads = 0;
  };

  static const wire::Event* cut(const Rest& rest, uint64_t tick) {
    return std::partition_point(rest.first, rest.last,
                                [&](const wire::Event& event) { return event.tick < tick; });
  }

  void begins(uint64_t tick) {
    if (tick > 0) place.earliest = std::min(place.earliest, tick);
  }

  bool take_start(const Chunk& chunk) {
    wire::Unpacker in(chunk.payload);
    wire::ImageStartRecord record;
    if (!wire::unpack(&in, &record) || !record.sensible(starts_.size())) return false;
    begins(record.start_tick);
    starts_.push_back(std::move(record));
    return true;
  }

  bool take(const Chunk& chunk, Output* out) {
    wire::Unpacker in(chunk.payload);
    switch (chunk.type) {
      case ChunkType::kImageEnd:
        return take_all<wire::ImageEndRecord>(in, [&](wire::ImageEndRecord& end) {
          seen_[end.image - before_ - 1].ended = true;
          end.end_tick = place(end.end_tick);
          epoch_.ends.push_back(end);
          return true;
        });
      case ChunkType::kThread:
        return take_all<wire::ThreadRecord>(in, [&](wire::ThreadRecord& thread) {
          uint64_t& threads = seen_[thread.image - before_ - 1].threads;
          if (thread.thread == 0 || thread.thread > threads + 1) return false;
          threads = std::max(threads, thread.thread);
          thread.start_tick = place(thread.start_tick);
          out->put(chunk.type, thread, 0);
          return true;
        });
      case ChunkType::kModule:
        return take_all<wire::ModuleRecord>(in, [&](wire::ModuleRecord& module) {
          out->put(chunk.type, module, 0);
          return module.sensible();
        });
      case ChunkType::kMappings:
        return take_all<wire::MappingRecord>(in, [&](wire::MappingRecord& mapping) {
          mapping.tick = place(mapping.tick);
          epoch_.mappings.push_back(mapping);
          return mapping.sensible() && epoch_.mappings.size() <= wire::kMaxEpochEvents;
        });
      case ChunkType::kRss:
        return take_all<wire::RssRecord>(in, [&](wire::RssRecord& rss) {
          Seen& seen = seen_[rss.image - before_ - 1];
          seen.peak_rss_bytes = std::max(seen.peak_rss_bytes, rss.bytes);
          rss.tick = place(rss.tick);
          out->put(chunk.type, rss, rss.tick);
          return true;
        });
      case ChunkType::kVm:
        return take_all<wire::VmRecord>(in, [&](wire::VmRecord& vm) {
          vm.tick = place(vm.tick);
          out->put(chunk.type, vm, vm.tick);
          return true;
        });
      case ChunkType::kMarks:
        return take_all<wire::MarkRecord>(in, [&](wire::MarkRecord& mark) {
          mark.tick = place(mark.tick);
          out->put(chunk.type, mark, mark.tick);
          return mark.sensible();
        });
      case ChunkType::kCpu:
        return take_all<wire::CpuRecord>(in, [&](wire::CpuRecord& sample) {
          sample.tick = place(sample.tick);
          out->put(chunk.type, sample, sample.tick);
          return sample.sensible();
        });
      case ChunkType::kNote: {
        wire::NoteRecord note;
        while (!in.done()) {
          if (!wire::unpack(&in, &note)) return false;
          out->put(chunk.type, note, 0);
        }
        return true;
      }
      case ChunkType::kRun: {
        wire::RunRecord run;
        while (!in.done()) {
          if (!wire::unpack(&in, &run) || !run.sensible(starts_.size())) return false;
          run.first_image += before_;
          run.start_tick = place(run.start_tick);
          run.end_tick = place(run.end_tick);
          runs_.push_back(run);
        }
        return true;
      }
      case ChunkType::kStacks:
        return take_stacks(in, out);
      case ChunkType::kEvents:
        return decoder_->decode(chunk.payload, &epoch_.events) &&
               epoch_.events.events.size() <= wire::kMaxEpochEvents;
      case ChunkType::kEpochEnd:
        epoch_.declared_end = place(chunk.last_tick);
        return true;
      case ChunkType::kEnd: {
        wire::EndRecord end;
        if (!wire::unpack(&in, &end) || !end.sensible()) return false;
        end_tick_ = place(end.tick);
        incomplete_because_ = end.incomplete_because;
        return true;
      }
      case ChunkType::kHeader: {
        wire::HeaderRecord again;
        has_header_ = true;
        return wire::unpack(&in, &again) && again.sensible();
      }
      case ChunkType::kImageStart:
      case ChunkType::kIndex:
      case ChunkType::kNames:
        return true;  // Known since the first look; made anew; copied at the very end.
    }
    return false;
  }

  template <typename Record, typename Use>
  bool take_all(wire::Unpacker in, Use&& use) {
    while (!in.done()) {
      Record record;
      if (!wire::unpack(&in, &record) || record.image == 0 || record.image > starts_.size())
        return false;
      record.image += before_;
      if (!use(record)) return false;
    }
    return true;
  }

  // But for the image's number the payload stays as it is.
  bool take_stacks(wire::Unpacker in, Output* out) {
    uint64_t image = in.number();
    if (!in.ok() || image == 0 || image > starts_.size()) return false;
    wire::Unpacker rest = in;
    if (!stacks_[image - 1].decode(in, [](const wire::StackDefinition&) { return true; }))
      return false;
    wire::Packer payload;
    payload.number(image + before_).bytes(rest.bytes(rest.remaining()));
    out->put_chunk(ChunkType::kStacks, payload.result(), 0);
    return true;
  }

  void begin_epoch() {
    epoch_.whole = true;
    epoch_.end = epoch_.declared_end;
    for (const wire::DecodedRun& run : epoch_.events.runs) {
      if (raw(run.image) == 0 || raw(run.image) > starts_.size()) continue;
      wire::Event* first = epoch_.events.events.data() + run.first;
      for (wire::Event* event = first; event != first + run.count; ++event) {
        event->tick = place(event->tick);
        if (event->kind == wire::Kind::kCallTime) event->size = place.cycles(event->size);
        event->image = ImageId{static_cast<uint32_t>(raw(event->image) + before_)};
        epoch_.end = std::max(epoch_.end, event->tick + 1);
      }
      epoch_.rests.push_back({first, first + run.count});
    }
    for (const wire::MappingRecord& mapping : epoch_.mappings)
      epoch_.end = std::max(epoch_.end, mapping.tick + 1);
    latest_ = std::max(latest_, epoch_.end);
  }

  // An image that was still running where the recording was cut ends there: what it held must not
  // be taken for memory that is in use while later recordings run.
  void finish(Output* out) {
    finished_ = true;
    if (!end_tick_) incomplete_because_ = chunks_->why_no_end();
    uint64_t last = std::max(latest_, end_tick_.value_or(0));
    for (size_t i = 0; i < seen_.size(); ++i) {
      if (seen_[i].ended) continue;
      wire::ImageEndRecord end;
      end.image = i + 1 + before_;
      end.end_tick = last;
      end.peak_rss_bytes = seen_[i].peak_rss_bytes;
      epoch_.ends.push_back(end);
    }
    if (runs_.empty()) {
      bool named = !incomplete_because_.empty();
      runs_.push_back({before_ + 1, starts_.size(), start_tick(), last,
                       static_cast<uint64_t>(header.start_unix_ns), path_, incomplete_because_});
      if (named) incomplete_because_ = path_ + ": " + incomplete_because_;
    }
    epoch_.end = 0;
    emit(0, out);
    for (const wire::RunRecord& run : runs_) out->put(ChunkType::kRun, run, run.end_tick);
    out->reach(last);
    decoder_.reset();
    stacks_ = {};
  }

  std::string path_;
  std::unique_ptr<WholeChunks> chunks_;
  std::vector<wire::ImageStartRecord> starts_;
  bool has_header_ = false, finished_ = false;
  uint64_t before_ = 0;  // Images of the inputs before it.
  std::unique_ptr<wire::EventDecoder> decoder_;
  std::vector<wire::StackDecoder> stacks_;  // By image, as all that follow.
  std::vector<Seen> seen_;
  std::vector<wire::RunRecord> runs_;
  Epoch epoch_;
  uint64_t latest_ = 0;
  std::optional<uint64_t> end_tick_;
  std::string incomplete_because_;
};

using Inputs = std::vector<std::unique_ptr<Input>>;

// Sets the clock of every input; returns that of the merged trace, which has the shortest tick.
const Header& choose_clock(const Inputs& inputs) {
  const Header* finest = &inputs[0]->header;
  for (const auto& input : inputs)
    if (input->header.ns_per_tick < finest->ns_per_tick) finest = &input->header;
  for (const auto& input : inputs) {
    // More than that, and its ticks would not be a clock's.
    long double ratio = std::min<long double>(
        static_cast<long double>(input->header.ns_per_tick) / finest->ns_per_tick, 1e9L);
    input->place.whole = static_cast<uint64_t>(ratio);
    input->place.fraction = static_cast<uint64_t>(
        std::min((ratio - static_cast<long double>(input->place.whole)) * 0x1p64L, 0x1p64L - 1));
    if (&input->header != finest)
      input->place.cycle = input->header.ns_per_cycle() / finest->ns_per_cycle();
  }
  return *finest;
}

uint64_t cycles_per_second(const Header& header) {
  double cycles =
      static_cast<double>(uint64_t{1} << header.tick_shift) * 1e9 / header.ns_per_tick + 0.5;
  return cycles < 0x1p63 ? static_cast<uint64_t>(cycles) : uint64_t{1} << 63;
}

// A header that fits all inputs.
wire::HeaderRecord common_header(const Inputs& inputs, const Header& clock) {
  wire::HeaderRecord common;
  common.tick_shift = clock.tick_shift;
  common.cycles_per_second = cycles_per_second(clock);
  common.start_unix_ns = std::numeric_limits<uint64_t>::max();
  std::vector<std::string> versions;
  auto add = [](std::vector<std::string>* list, const std::string& text) {
    if (std::find(list->begin(), list->end(), text) == list->end()) list->push_back(text);
  };
  for (const auto& input : inputs) {
    common.start_unix_ns =
        std::min(common.start_unix_ns, static_cast<uint64_t>(input->header.start_unix_ns));
    add(&versions, input->header.recorder_version);
    for (const std::string& setting : input->header.settings) add(&common.settings, setting);
  }
  for (const std::string& version : versions)
    common.recorder_version += (common.recorder_version.empty() ? "" : ", ") + version;
  return common;
}

// Behind everything else, as `symbolize` puts them. Traces of one program bring the same names;
// `known` are those written already, by their checksums.
Result<void> copy_names(const std::string& path, uint64_t tick, std::set<uint64_t>* known,
                        FileWriter* file) {
  auto reader = FileReader::open(path);
  if (!reader) return std::unexpected(reader.error());
  Chunk chunk = {};
  for (;;) {
    auto next = reader->skip(&chunk);
    if (!next) return std::unexpected(next.error());
    if (*next != Next::kChunk) return {};
    if (chunk.type != ChunkType::kNames) continue;
    reader->step_back();
    next = reader->next(&chunk);
    if (!next) return std::unexpected(next.error());
    if (known->insert(wire::checksum({}, chunk.payload)).second)
      file->append(ChunkType::kNames, chunk.payload, tick, tick, true);
  }
}

class Merge {
 public:
  Merge(Inputs inputs, const MergeOptions& options, FileWriter* file)
      : inputs_(std::move(inputs)), options_(options), out_(file) {
    for (const auto& input : inputs_) bytes_ += static_cast<double>(input->bytes());
  }

  Result<Merged> run() {
    const Header& clock = choose_clock(inputs_);
    wire::HeaderRecord header = common_header(inputs_, clock);
    if (options_.together) {
      uint64_t lead = 0;  // Of the earliest event before the recording's beginning.
      auto lead_of = [](const Input& input) {
        return input.place.length(input.header.start_tick -
                                  std::min(input.header.start_tick, input.place.earliest));
      };
      for (const auto& input : inputs_) lead = std::max(lead, lead_of(*input));
      for (const auto& input : inputs_) input->place.zero = 1 + lead - lead_of(*input);
    }
    header.start_tick = inputs_[0]->start_tick();
    wire::Packer payload;
    wire::pack(header, &payload);
    out_.put_chunk(ChunkType::kHeader, payload.result(), header.start_tick);
    out_.end_epoch(header.start_tick);

    if (options_.together) {
      if (auto done = run_group(inputs_); !done) return std::unexpected(done.error());
    } else {
      for (auto& input : inputs_) {
        if (&input != &inputs_[0]) input->place.zero = out_.latest() + 1;
        if (input->place.zero > kLatest)
          return fail(fmt::format("there is no time left for {}: the traces before it claim it all",
                                  input->path()));
        if (auto done = run_group({&input, 1}); !done) return std::unexpected(done.error());
      }
    }
    merged_.events = out_.events();
    merged_.incomplete_because = incomplete_because();
    wire::EndRecord end = {out_.latest(), header.cycles_per_second, out_.events(),
                           merged_.incomplete_because};
    payload.result().clear();
    wire::pack(end, &payload);
    out_.file().finish(payload.result(), end.tick);
    std::set<uint64_t> known;
    for (const auto& input : inputs_)
      if (auto copied = copy_names(input->path(), end.tick, &known, &out_.file()); !copied)
        return std::unexpected(copied.error());
    if (out_.failed()) return out_.error();
    return merged_;
  }

 private:
  // Inputs that run at the same time.
  Result<void> run_group(std::span<std::unique_ptr<Input>> group) {
    std::vector<Input*> running;
    for (auto& input : group) {
      input->begin(merged_.images, &out_);
      merged_.images += input->images();
      running.push_back(input.get());
    }
    for (;;) {
      std::vector<Input*> left;
      for (Input* input : running) {
        Result<bool> more = input->loaded() ? true : input->load(&out_);
        if (!more) return std::unexpected(more.error());
        if (*more) left.push_back(input);
        if (!*more) merged_.runs += input->runs();
      }
      running = std::move(left);
      if (running.empty()) break;
      uint64_t end = earliest_end(running), declared = 0;
      for (Input* input : running) {
        declared = std::max(declared, input->declared_end());
        input->emit(end, &out_);
      }
      // Images are announced by it, and must not be later than in their own trace.
      out_.end_epoch(declared);
      if (out_.failed()) return out_.error();
      if (options_.progress) show_progress();
    }
    out_.end_epoch(out_.latest());
    if (out_.failed()) return out_.error();
    return {};
  }

  // Up to where all inputs are in memory, and not more than an epoch may hold.
  static uint64_t earliest_end(const std::vector<Input*>& running) {
    uint64_t end = std::numeric_limits<uint64_t>::max(), first = end;
    for (const Input* input : running) {
      end = std::min(end, input->end());
      first = std::min(first, input->next_tick());
    }
    auto events = [&] {
      uint64_t count = 0;
      for (const Input* input : running) count += input->events_before(end);
      return count;
    };
    while (running.size() > 1 && end > first + 1 && events() > wire::kMaxEpochEvents)
      end = first + (end - first) / 2;
    return end;
  }

  std::string incomplete_because() const {
    constexpr size_t kMost = 3;
    std::string reasons;
    size_t count = 0;
    for (const auto& input : inputs_)
      if (!input->incomplete_because().empty() && ++count <= kMost)
        reasons += (reasons.empty() ? "" : "; ") + input->incomplete_because();
    if (count > kMost) reasons += fmt::format("; and {} more are not complete", count - kMost);
    return reasons;
  }

  void show_progress() {
    double read = 0;
    for (const auto& input : inputs_) read += static_cast<double>(input->position());
    options_.progress(read / bytes_);
  }

  Inputs inputs_;
  const MergeOptions& options_;
  Output out_;
  Merged merged_;
  double bytes_ = 0;
};

}  // namespace

Result<Merged> merge_traces(const std::vector<std::string>& paths, const MergeOptions& options,
                            FileWriter* output) {
  Inputs inputs;
  uint64_t images = 0;
  for (const std::string& path : paths) {
    Result<std::unique_ptr<Input>> input = Input::open(path);
    if (!input) return std::unexpected(input.error());
    if (!inputs.empty() && (*input)->header.sample_log2() != inputs.front()->header.sample_log2())
      return fail_usage(fmt::format(
          "{} and {} were not recorded with the same --sample, so their figures do not add up",
          inputs.front()->path(), path));
    images += (*input)->images();
    inputs.push_back(std::move(*input));
  }
  if (images > wire::kMostImages)
    return fail_usage(fmt::format("together they have {} processes; a trace can hold {}", images,
                                  wire::kMostImages));
  return Merge(std::move(inputs), options, output).run();
}

}  // namespace malloscope::trace
