// SPDX-License-Identifier: Apache-2.0
// Names of frames live in the files of the machine that recorded. This verb looks them up there
// and puts them behind the recording, so that the trace can be read anywhere.

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

#include "analyze/numbers.h"
#include "analyze/symbol_naming.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/output_file.h"
#include "output/json_writer.h"
#include "output/sink.h"
#include "output/words.h"
#include "trace/append.h"
#include "trace/event_stream.h"

namespace malloscope::cli {
namespace {

// The tables are all that is wanted.
class NobodyListens : public trace::Listener {
 public:
  void image_started(const trace::Image&) override {}
  void events(std::span<const wire::Event>) override {}
  void image_ended(const trace::Image&) override {}
  bool is_live(ImageId, uint64_t) override { return false; }
};

struct SymbolizeOptions {
  std::string trace, output;
  bool force = false, json = false, no_cache = false;
  symbols::SymbolOptions symbols;
};

struct Count {
  uint64_t modules = 0, places = 0, with_function = 0, with_line = 0;
  uint64_t added = 0;  // Places of which the trace did not know as much.
};

// Chunks with the names of a module; large modules have several.
void add_chunks(const symbols::ModuleNames& names, std::vector<std::vector<uint8_t>>* chunks) {
  constexpr size_t kPlaces = 10'000, kMostBytes = wire::kMaxChunkBytes / 2;
  std::vector<uint64_t> offsets;
  for (const auto& [offset, frames] : names.answers) offsets.push_back(offset);
  std::sort(offsets.begin(), offsets.end());
  for (size_t i = 0, count = kPlaces; i < offsets.size();) {
    size_t end = std::min(offsets.size(), i + count);
    Packer out;
    pack(names,
         {offsets.begin() + static_cast<ptrdiff_t>(i),
          offsets.begin() + static_cast<ptrdiff_t>(end)},
         &out);
    if (out.result().size() > kMostBytes && count > 1) {
      count /= 2;  // Names of many kilobytes.
      continue;
    }
    if (out.result().size() <= kMostBytes) chunks->push_back(std::move(out.result()));
    i = end;
  }
}

// The first `bytes` of a trace, as a file of its own.
Result<void> copy_bytes(const std::string& trace, uint64_t bytes, PartialFile* copy) {
  int fd = copy->create();
  if (fd < 0) return fail(fmt::format("cannot write to {}: {}", copy->name(), strerror(errno)));
  output::FileSink sink(fd, copy->name());
  std::ifstream in(trace, std::ios::binary);
  std::string some(1 << 20, '\0');
  while (bytes > 0 && in) {
    in.read(some.data(), static_cast<std::streamsize>(std::min<uint64_t>(bytes, some.size())));
    sink.write(std::string_view(some).substr(0, static_cast<size_t>(in.gcount())));
    bytes -= static_cast<uint64_t>(in.gcount());
  }
  Result<void> done = sink.finish();
  if (close(fd) != 0 && done)
    done = fail(fmt::format("cannot write to {}: {}", copy->name(), strerror(errno)));
  if (done && bytes > 0) done = fail(fmt::format("{} could not be read to its end", trace));
  return done;
}

int symbolize(const SymbolizeOptions& options) {
  bool in_place = options.output.empty();
  if (std::string wrong =
          in_place ? "" : obstacle(options.output, {options.trace}, options.force, kTraces);
      !wrong.empty())
    return complain(kUsage, wrong);
  Result<trace::Tail> tail = trace::tail_of(options.trace);
  if (!tail) return complain(kUnreadable, tail.error().sentence);
  NobodyListens nobody;
  Result<trace::Tables> tables = trace::stream(options.trace, &nobody);
  if (!tables) return complain(kUnreadable, tables.error().sentence);
  if (in_place && !tail->finished)
    return complain(
        kUsage,
        fmt::format("{} is still being written, or was cut; -o FILE makes a copy with names",
                    options.trace));

  std::vector<const trace::Image*> images;
  for (const trace::Image& image : tables->images) images.push_back(&image);
  auto requests = analyze::places_of(images);
  analyze::ToldNames told = analyze::names_in(tables->names);
  bool named_before = !told.empty();
  symbols::SymbolOptions found_in = options.symbols;
  found_in.cache = options.no_cache ? "" : symbols::NameCache::default_folder();
  symbols::Symbolizer symbolizer(found_in);
  auto progress = progress_of("looking up names:");
  symbolizer.prepare(requests, progress);
  if (progress) progress(1);
  symbolizer.save();

  Count count;
  std::vector<std::vector<uint8_t>> chunks;
  std::vector<std::string> remarks;
  for (const auto& request : requests) {
    symbols::ModuleNames known = symbolizer.names(symbolizer.add_module(request.file));
    symbols::ModuleNames& before = told[analyze::key_of(request.file)];
    // As a reader of the trace will judge.
    if (known.detail < before.detail) known = before;
    if (known.detail > before.detail) before.answers.clear();
    if (!known.remark.empty()) remarks.push_back(known.remark);
    symbols::ModuleNames fresh = {known.file, known.detail, known.remark, {}};
    for (uint64_t offset : request.offsets) {
      auto answer = known.answers.find(offset);
      if (!before.answers.contains(offset) && answer != known.answers.end())
        fresh.answers.insert(*answer);
      if (answer == known.answers.end()) continue;
      count.with_function += answer->second.back().function.find("+0x") == std::string::npos;
      count.with_line += answer->second.front().line > 0;
    }
    ++count.modules;
    count.places += request.offsets.size();
    if (known.detail == symbols::Detail::kNone) continue;
    count.added += fresh.answers.size();
    add_chunks(fresh, &chunks);
  }

  std::string target = in_place ? options.trace : options.output;
  PartialFile copy(target);
  Result<void> done = in_place ? Result<void>() : copy_bytes(options.trace, tail->bytes, &copy);
  if (done)
    done = append_chunks(in_place ? target : copy.name(), *tail, wire::ChunkType::kNames, chunks);
  if (done && !in_place && !copy.keep())
    done = fail(fmt::format("cannot write to {}: {}", target, strerror(errno)));
  if (!done) return complain(kUnreadable, done.error().sentence);
  output::FileSink sink(fileno(stdout), "stdout");
  if (options.json) {
    output::JsonWriter json(&sink);
    json.begin_object();
    json.member("file", target);
    json.member("modules", count.modules);
    json.member("places", count.places);
    json.member("with_function", count.with_function);
    json.member("with_line", count.with_line);
    json.member("added", count.added);
    json.key("remarks").begin_array();
    for (const std::string& remark : remarks) json.value(remark);
    json.end();
    json.end();
  } else if (named_before && count.added == 0) {
    sink.write(fmt::format("{} had the names of {} already; nothing was added.\n",
                           output::printable(target),
                           analyze::count_text(count.places, "place", "places")));
  } else {
    sink.write(fmt::format(
        "{} now has the names of {} in {}: {} with a function, {} with a source line.\n",
        output::printable(target), analyze::count_text(count.places, "place", "places"),
        analyze::count_text(count.modules, "module", "modules"),
        analyze::grouped(count.with_function), analyze::grouped(count.with_line)));
    for (const std::string& remark : remarks) sink.write("- " + output::printable(remark) + "\n");
  }
  if (done = sink.finish(); !done) return complain(kUnreadable, done.error().sentence);
  return kOk;
}

}  // namespace

int main_symbolize(const Words& words) {
  std::signal(SIGPIPE, SIG_IGN);  // A closed pipe is told by write(), with a sentence.
  SymbolizeOptions options;
  CLI::App app(
      "Looks up the names of all functions in a trace, where the program's files are, and puts "
      "them\n"
      "into it: reports on another machine then need none of these files.",
      "malloscope symbolize");
  add_trace(app, &options.trace);
  app.add_option("-o,--output", options.output, "A copy with names [the trace itself]")
      ->type_name("FILE");
  app.add_flag("-f,--force", options.force,
               "Replace the trace if it exists; nothing that is no trace");
  add_json(app, &options.json, "What was found, as one JSON object");
  add_symbols(app, &options.symbols, &options.no_cache);
  if (auto code = parse(app, words, "malloscope symbolize app.mscope -o readable.mscope"))
    return *code;
  return symbolize(options);
}

}  // namespace malloscope::cli
