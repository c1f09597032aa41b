// SPDX-License-Identifier: Apache-2.0
// A pprof profile (github.com/google/pprof, proto/profile.proto), gzip'ed. Sample types are
// those of a heap profile of Go or C++ and one more, the share of the peak. A location is a call
// in a mapping, with the functions that are inlined there as its lines; it is shared by the images
// that have it at the same place. Samples are written while the rows are read; tables, which
// only grow with the program, at the end.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <unordered_map>

#include "analyze/row_selector.h"
#include "output/exports.h"
#include "output/gzip_sink.h"
#include "output/words.h"

namespace malloscope::output {
namespace {

using analyze::FrameId;
using analyze::FrameTable;
using analyze::Metric;
using protozero::pbf_writer;

// Numbers of fields.
enum Profile : uint32_t {
  kSampleType = 1,
  kSample = 2,
  kMapping = 3,
  kLocation = 4,
  kFunction = 5,
  kStringTable = 6,
  kTimeNanos = 9,
  kDurationNanos = 10,
  kPeriodType = 11,
  kPeriod = 12,
  kComment = 13,
  kDefaultSampleType = 14,
};

struct SampleType {
  const char* name;
  const char* unit;
  uint64_t analyze::Amounts::* member;
};
constexpr SampleType kSampleTypes[] = {
    {"alloc_objects", "count", &analyze::Amounts::allocations},
    {"alloc_space", "bytes", &analyze::Amounts::allocated_bytes},
    {"inuse_objects", "count", &analyze::Amounts::live_blocks},
    {"inuse_space", "bytes", &analyze::Amounts::live_bytes},
    {"peak_space", "bytes", &analyze::Amounts::peak_bytes},
};
// As Go's CPU profiles have them.
constexpr SampleType kCpuTypes[] = {
    {"samples", "count", &analyze::Amounts::cpu_samples},
    {"cpu", "nanoseconds", &analyze::Amounts::cpu_ns},
};

const char* sample_type_of(Metric metric) {
  switch (metric) {
    case Metric::kAllocations:
    case Metric::kCalls:
    case Metric::kTemporary:
    case Metric::kLifetime:
    case Metric::kAllocatorTime:
      return "alloc_objects";
    case Metric::kAllocated:
    case Metric::kOverhead:
      return "alloc_space";
    case Metric::kLive:
      return "inuse_space";
    case Metric::kPeak:
      return "peak_space";
    case Metric::kCpu:
      return "cpu";
  }
  return "";
}

class Writer {
 public:
  Writer(const Export& what, Sink* sink)
      : reading_(*what.reading),
        selector_(what.reading, *what.query, what.fold),
        metric_(what.metric),
        types_(metric_ == Metric::kCpu ? std::span<const SampleType>(kCpuTypes)
                                       : std::span<const SampleType>(kSampleTypes)),
        whole_outside_(what.query->frames.only_under.empty()),
        sink_(*sink) {
    string("");  // The first is always empty.
  }

  void write() {
    for (const SampleType& type : types_) write_type(kSampleType, type.name, type.unit);
    flush();
    name_program();
    const analyze::Tally& tally = reading_.accounts().tally();
    tally.for_each_row([&](const analyze::Row& row) { write_sample(row, tally.options()); });
    write_mappings();
    write_tail();
  }

 private:
  pbf_writer profile() { return pbf_writer(buffer_); }

  // Text of the proto must be UTF-8.
  uint64_t string(std::string_view text) {
    auto [found, fresh] = string_ids_.try_emplace(valid_utf8(text), strings_.size());
    if (fresh) strings_.push_back(&found->first);
    return found->second;
  }

  void flush() {
    sink_.write(buffer_);
    buffer_.clear();
  }

  void write_type(uint32_t field, const char* name, const char* unit) {
    uint64_t name_id = string(name), unit_id = string(unit);
    pbf_writer top = profile(), type(top, field);
    type.add_int64(1, static_cast<int64_t>(name_id));
    type.add_int64(2, static_cast<int64_t>(unit_id));
  }

  // pprof takes the first mapping for the program.
  void name_program() {
    for (const trace::Image* image : reading_.selected())
      for (const trace::Module& module : image->modules)
        if (module.path == image->executable) {
          mapping(&module);
          return;
        }
  }

  uint64_t mapping(const trace::Module* module) {
    if (!module) return 0;
    auto [known, fresh] = mapping_of_.try_emplace(module, 0);
    if (fresh) {
      auto [found, unknown] = mapping_ids_.try_emplace(
          std::tuple(module->path, module->build_id, module->start, module->end),
          mapping_ids_.size() + 1);
      if (unknown) mappings_.push_back(module);
      known->second = found->second;
    }
    return known->second;
  }

  uint64_t function(FrameId id) {
    const analyze::Frame& frame = reading_.frames().frame(id);
    auto [found, fresh] =
        functions_.try_emplace(std::pair(frame.function, frame.file), functions_.size() + 1);
    if (fresh) {
      uint64_t name = string(frame.function), file = string(frame.file);
      pbf_writer top = profile(), function(top, kFunction);
      function.add_uint64(1, found->second);
      function.add_int64(2, static_cast<int64_t>(name));
      function.add_int64(3, static_cast<int64_t>(name));  // pprof demangles or shortens it.
      function.add_int64(4, static_cast<int64_t>(file));
    }
    return found->second;
  }

  // `frames` are those of the call that are shown, innermost first.
  uint64_t location(uint64_t pc, uint64_t mapping_id, std::vector<FrameId> frames) {
    auto [found, fresh] = locations_.try_emplace(std::tuple(pc, mapping_id, std::move(frames)),
                                                 locations_.size() + 1);
    if (!fresh) return found->second;
    const std::vector<FrameId>& lines = std::get<2>(found->first);
    std::vector<uint64_t> ids;
    for (FrameId id : lines) ids.push_back(function(id));
    pbf_writer top = profile(), location(top, kLocation);
    location.add_uint64(1, found->second);
    location.add_uint64(2, mapping_id);
    location.add_uint64(3, pc);
    for (size_t i = 0; i < lines.size(); ++i) {
      pbf_writer line(location, 4);
      line.add_uint64(1, ids[i]);
      line.add_int64(2, reading_.frames().frame(lines[i]).line);
    }
    return found->second;
  }

  // The shown frames sorted into the calls that they are inlined in. Which frames are shown is
  // decided frame by frame, so going along both from the innermost on finds them again.
  void locate(const analyze::Row& row) {
    FrameTable& table = reading_.frames();
    table.calls(row.image, row.stack, &calls_);
    table.stack(row.image, row.stack, &stack_);
    location_ids_.clear();
    size_t next = 0, at = 0;
    for (const FrameTable::Call& call : calls_) {
      std::vector<FrameId> lines;
      for (uint32_t i = 0; i < call.frames && at < stack_.size(); ++i, ++at)
        if (next < shown_.size() && stack_[at] == shown_[next]) lines.push_back(shown_[next++]);
      if (!lines.empty())
        location_ids_.push_back(location(call.pc, mapping(call.module), std::move(lines)));
    }
    for (; next < shown_.size(); ++next) location_ids_.push_back(location(0, 0, {shown_[next]}));
    if (location_ids_.empty()) location_ids_.push_back(marker("[hidden]"));
    if (!whole_outside_) return;
    FrameTable::Root root = table.root(row.image, row.stack);
    if (root == FrameTable::Root::kCut) location_ids_.push_back(marker("[cut]"));
    // A stack that was not had at all is [unknown] already.
    if (root == FrameTable::Root::kStopped && calls_[0].pc != 0)
      location_ids_.push_back(marker("[unknown]"));
  }

  // A location that is no place in the program.
  uint64_t marker(const char* name) {
    auto [found, fresh] = markers_.try_emplace(name, 0);
    if (!fresh) return found->second;
    uint64_t name_id = string(name);
    auto function_id =
        functions_
            .try_emplace(std::pair(std::string(name), std::string("\n")), functions_.size() + 1)
            .first->second;
    found->second = locations_
                        .try_emplace(std::tuple(name_id, ~uint64_t{0}, std::vector<FrameId>{}),
                                     locations_.size() + 1)
                        .first->second;
    {
      pbf_writer top = profile(), function(top, kFunction);
      function.add_uint64(1, function_id);
      function.add_int64(2, static_cast<int64_t>(name_id));
    }
    pbf_writer top = profile(), location(top, kLocation);
    location.add_uint64(1, found->second);
    pbf_writer line(location, 4);
    line.add_uint64(1, function_id);
    return found->second;
  }

  struct Label {
    uint64_t key, text;
    int64_t number;
    uint64_t unit;
  };

  void write_sample(const analyze::Row& row, const analyze::TallyOptions& options) {
    values_.clear();
    for (const SampleType& type : types_)
      values_.push_back(static_cast<int64_t>(row.amounts.*type.member));
    bool any = std::ranges::any_of(values_, [](int64_t value) { return value != 0; });
    if (!any || !selector_.select(row, &shown_)) return;
    locate(row);
    const trace::Image& image = reading_.tables().image(row.image);
    labels_.clear();
    labels_.push_back({string("process"), 0, image.pid, 0});
    uint32_t thread_number = raw(thread_of(row.strand));
    if (options.by_thread && thread_number > 0 && thread_number <= image.threads.size()) {
      const trace::Thread& thread = image.threads[thread_number - 1];
      labels_.push_back({string("thread"),
                         string(thread.name.empty() ? std::to_string(thread.tid) : thread.name), 0,
                         0});
      labels_.push_back({string("tid"), 0, thread.tid, 0});
    }
    if (options.by_size)  // The smallest block of the class.
      labels_.push_back({string("bytes"), 0,
                         row.size_class == 0 ? 0 : int64_t{1} << (row.size_class - 1),
                         string("bytes")});
    {
      pbf_writer top = profile(), sample(top, kSample);
      sample.add_packed_uint64(1, location_ids_.begin(), location_ids_.end());
      sample.add_packed_int64(2, values_.begin(), values_.end());
      for (const Label& label : labels_) {
        pbf_writer pair(sample, 3);
        pair.add_int64(1, static_cast<int64_t>(label.key));
        if (label.text) pair.add_int64(2, static_cast<int64_t>(label.text));
        if (!label.text) pair.add_int64(3, label.number);
        if (label.unit) pair.add_int64(4, static_cast<int64_t>(label.unit));
      }
    }
    if (buffer_.size() > 64 << 10) flush();
  }

  void write_mappings() {
    for (size_t i = 0; i < mappings_.size(); ++i) {
      uint64_t path = string(mappings_[i]->path), build_id = string(mappings_[i]->build_id);
      pbf_writer top = profile(), mapping(top, kMapping);
      mapping.add_uint64(1, i + 1);
      mapping.add_uint64(2, mappings_[i]->start);
      mapping.add_uint64(3, mappings_[i]->end);
      mapping.add_int64(5, static_cast<int64_t>(path));
      mapping.add_int64(6, static_cast<int64_t>(build_id));
      // pprof need not look for symbols: functions, files, lines, inlined functions.
      for (uint32_t has = 7; has <= 10; ++has) mapping.add_bool(has, true);
    }
    flush();
  }

  void write_tail() {
    const trace::Tables& tables = reading_.tables();
    const analyze::Window& window = reading_.accounts().window();
    uint64_t from = tables.time_ns(window.from_tick);
    uint64_t to = tables.time_ns(std::min(reading_.end_tick(), window.to_tick));
    bool cpu = metric_ == Metric::kCpu;
    write_type(kPeriodType, cpu ? "cpu" : "space", cpu ? "nanoseconds" : "bytes");
    uint64_t shown = string(sample_type_of(metric_));
    uint64_t comment =
        string(fmt::format("malloscope {}: {}", MSCOPE_VERSION, command_of(reading_)));
    profile().add_int64(kTimeNanos, tables.header.start_unix_ns + static_cast<int64_t>(from));
    profile().add_int64(kDurationNanos, static_cast<int64_t>(to > from ? to - from : 0));
    profile().add_int64(kPeriod, 1);
    profile().add_int64(kComment, static_cast<int64_t>(comment));
    profile().add_int64(kDefaultSampleType, static_cast<int64_t>(shown));
    for (const std::string* text : strings_) {
      profile().add_string(kStringTable, *text);
      if (buffer_.size() > 64 << 10) flush();
    }
    flush();
  }

  analyze::Reading& reading_;
  analyze::RowSelector selector_;
  Metric metric_;
  std::span<const SampleType> types_;
  bool whole_outside_;  // The query cuts no outer frames off.
  Sink& sink_;
  std::string buffer_;

  std::unordered_map<std::string, uint64_t> string_ids_;
  std::vector<const std::string*> strings_;  // Keys of string_ids_, which do not move.
  std::unordered_map<const trace::Module*, uint64_t> mapping_of_;
  std::map<std::tuple<std::string, std::string, uint64_t, uint64_t>, uint64_t> mapping_ids_;
  std::vector<const trace::Module*> mappings_;
  std::map<std::pair<std::string, std::string>, uint64_t> functions_;
  std::map<std::tuple<uint64_t, uint64_t, std::vector<FrameId>>, uint64_t> locations_;
  std::map<std::string, uint64_t> markers_;

  std::vector<FrameId> shown_, stack_;  // Scratch.
  std::vector<FrameTable::Call> calls_;
  std::vector<uint64_t> location_ids_;
  std::vector<Label> labels_;
  std::vector<int64_t> values_;
};

}  // namespace

Result<void> write_pprof(const Export& what, Sink* sink) {
  GzipSink packed(sink);
  Writer(what, &packed).write();
  return packed.finish();
}

}  // namespace malloscope::output
