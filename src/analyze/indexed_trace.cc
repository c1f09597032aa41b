// SPDX-License-Identifier: Apache-2.0
#include "analyze/indexed_trace.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/index_builder.h"
#include "analyze/index_file.h"

namespace malloscope::analyze {
namespace {

bool setting_is(std::string_view word) {
  const char* setting = std::getenv("MALLOSCOPE_INDEX");
  return setting && std::string_view(setting) == word;
}

// Whether to make an index, which takes some time and leaves a file, is worth it: where a pass over
// the events takes about a second. MALLOSCOPE_INDEX=always or never has the last word.
bool deserves_file(const trace::Overview& overview) {
  constexpr uint64_t kManyEvents = 5'000'000, kManyBytes = 16 << 20;
  if (setting_is("always")) return true;
  return overview.events > kManyEvents || (overview.events == 0 && overview.bytes > kManyBytes);
}

// What blocks are made of; written once, then read by any number.
struct MemoryFile {
  bool own_peaks;
  std::array<std::vector<PackedBlock>, 6> blocks;  // By level.
  PackedBlock whole;

  void put(IndexBuilder::Level level, uint32_t i, PackedBlock block) {
    std::vector<PackedBlock>& of_level = blocks[static_cast<size_t>(level)];
    if (i >= of_level.size()) of_level.resize(i + size_t{1});
    of_level[i] = std::move(block);
  }
  const std::vector<PackedBlock>& of(IndexBuilder::Level level) const {
    return blocks[static_cast<size_t>(level)];
  }
};

class MemoryBlocks : public IndexBlocks {
 public:
  explicit MemoryBlocks(std::shared_ptr<const MemoryFile> file) : file_(std::move(file)) {}

  IndexBlockReader* step(uint32_t step) override {
    return read(IndexBuilder::Level::kStep, step, file_->own_peaks, &reader_);
  }
  IndexBlockReader* group(uint32_t group) override {
    return read(IndexBuilder::Level::kGroup, group, false, &reader_);
  }
  IndexBlockReader* sizes(uint32_t step) override {
    return read(IndexBuilder::Level::kSizes, step, file_->own_peaks, &reader_);
  }
  OddSizesReader* odd_sizes(uint32_t step) override {
    return read(IndexBuilder::Level::kOddSizes, step, file_->own_peaks, &odd_reader_);
  }
  IndexBlockReader* whole() override { return read(file_->whole, false, &reader_); }
  IndexLivesReader* lives(uint32_t step, uint32_t reach) override {
    return read(IndexBuilder::Level::kLives, step * kReaches + reach, step, &lives_reader_);
  }
  IndexLivesReader* survivors(size_t part) override {
    return read(IndexBuilder::Level::kSurvivors, part, IndexTimes::kSteps, &lives_reader_);
  }
  size_t survivor_parts() const override {
    return file_->of(IndexBuilder::Level::kSurvivors).size();
  }
  bool damaged() const override { return false; }
  std::unique_ptr<IndexBlocks> another() const override {
    return std::make_unique<MemoryBlocks>(file_);
  }

 private:
  template <typename Reader, typename How>
  Reader* read(const PackedBlock& block, How how, Reader* reader) {
    bytes_ = block.bytes;
    return !bytes_.empty() && reader->open(&bytes_, block.raw_bytes, how) ? reader : nullptr;
  }
  template <typename Reader, typename How>
  Reader* read(IndexBuilder::Level level, size_t i, How how, Reader* reader) {
    const std::vector<PackedBlock>& blocks = file_->of(level);
    return i < blocks.size() ? read(blocks[i], how, reader) : nullptr;
  }

  std::shared_ptr<const MemoryFile> file_;
  std::vector<uint8_t> bytes_;
  IndexBlockReader reader_;
  IndexLivesReader lives_reader_;
  OddSizesReader odd_reader_;
};

}  // namespace

bool may_be_indexed(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  // Whether the name is of a file that will be there under that name: not /dev/stdin.
  std::string folder = fs::absolute(path, error).lexically_normal().parent_path();
  return fs::is_regular_file(path, error) && folder != "/dev" && folder != "/dev/fd" &&
         !folder.starts_with("/proc/");
}

std::unique_ptr<Index> index_in_memory(const std::string& trace, const trace::Overview& overview,
                                       std::function<void(double)> progress,
                                       std::optional<trace::Tables>* tables) {
  auto file = std::make_shared<MemoryFile>();
  file->own_peaks = overview.images > 1;
  IndexBuilder builder(IndexTimes(overview.header, overview.end_tick), overview.images > 1,
                       [&](IndexBuilder::Level level, uint32_t i, PackedBlock block) {
                         file->put(level, i, std::move(block));
                       });
  Result<trace::Tables> read = trace::stream(trace, &builder, {std::move(progress), true});
  if (!read || !builder.finish(*read)) return nullptr;
  auto index = std::make_unique<Index>(builder.facts(), builder.cells(),
                                       std::make_unique<MemoryBlocks>(file));
  std::optional<PackedBlock> whole = index->pack_whole();
  if (!whole) return nullptr;
  file->whole = std::move(*whole);
  *tables = std::move(*read);
  return index;
}

std::optional<IndexedTrace> open_indexed(const std::string& path, const trace::Overview& overview,
                                         IndexAs as, const std::function<void(double)>& progress) {
  bool filed = deserves_file(overview) && may_be_indexed(path) && !setting_is("never");
  if (!filed && as == IndexAs::kFile) return std::nullopt;
  TraceStamp stamp = TraceStamp::of(path, overview);
  IndexTimes times(overview.header, overview.end_tick);
  std::optional<trace::Tables> tables;
  std::vector<std::string> places;
  if (filed) places = index_places(path);
  for (const std::string& place : places) {
    std::unique_ptr<Index> index = open_index(place, stamp, times);
    if (!index) continue;
    trace::Listener nobody;
    Result<trace::Tables> read = trace::stream(path, &nobody, {{}, false});
    if (!read) return std::nullopt;
    if (!index->is_of(*read)) {  // Whole, but written of something else.
      index.reset();
      unlink(place.c_str());
      continue;
    }
    read->events = index->facts().events;
    return IndexedTrace{std::move(*read), std::move(index)};
  }
  for (const std::string& place : places) {
    Built built = build_index(path, overview, place, progress, &tables);
    if (built == Built::kNotHere) continue;
    std::unique_ptr<Index> index;
    if (built == Built::kYes) index = open_index(place, stamp, times);
    if (!index) break;  // The disk may be full.
    tables->events = index->facts().events;
    return IndexedTrace{std::move(*tables), std::move(index)};
  }
  if (as == IndexAs::kFile) return std::nullopt;
  std::unique_ptr<Index> index = index_in_memory(path, overview, progress, &tables);
  if (!index) return std::nullopt;
  tables->events = index->facts().events;
  return IndexedTrace{std::move(*tables), std::move(index)};
}

}  // namespace malloscope::analyze
