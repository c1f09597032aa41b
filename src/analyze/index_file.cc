// SPDX-License-Identifier: Apache-2.0
//     head        fixed size: magic, version, the trace's stamp, where the directory is, checksums
//     blocks      as they were made (index_block.h)
//     directory   one zstd frame: facts, cells, and where each block is with its checksum
//
// Blocks are checked when they are read, so that a question costs only what it needs.

#include "analyze/index_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/cache_folder.h"
#include "base/packing.h"
#include "symbols/name_cache.h"

namespace malloscope::analyze {

namespace fs = std::filesystem;

namespace {

constexpr char kMagic[8] = {'M', 'S', 'C', 'O', 'P', 'E', 'I', 'X'};
constexpr uint32_t kVersion = 13;
constexpr const char kSuffix[] = ".index";
constexpr uint32_t kGroups = IndexTimes::kSteps / IndexTimes::kGroupSteps + 1;
constexpr size_t kLives = size_t{IndexTimes::kSteps} * kReaches;
constexpr uint64_t kMostDirectoryBytes = uint64_t{1} << 30;
// In the user's cache, of all traces together.
constexpr uint64_t kMostCachedBytes = uint64_t{4} << 30;

struct FileHead {
  char magic[8] = {};
  uint32_t version = 0;
  uint32_t zero = 0;
  TraceStamp stamp;
  IndexBlockPlace directory;
  uint64_t checksum = 0;  // Of what is before it.
};
static_assert(sizeof(FileHead) == 80);

uint64_t checksum_of(const FileHead& head) {
  return XXH3_64bits(&head, offsetof(FileHead, checksum));
}

bool read_all(int fd, void* to, size_t size, uint64_t offset) {
  auto* at = static_cast<char*>(to);
  while (size > 0) {
    ssize_t n = pread(fd, at, size, static_cast<off_t>(offset));
    if (n <= 0) return false;
    at += n;
    size -= static_cast<size_t>(n);
    offset += static_cast<uint64_t>(n);
  }
  return true;
}

bool read_place(int fd, const IndexBlockPlace& place, std::vector<uint8_t>* bytes) {
  struct stat info = {};
  if (fstat(fd, &info) != 0 || place.bytes > static_cast<uint64_t>(info.st_size)) return false;
  bytes->reserve(place.bytes + kBehindColumn);
  bytes->resize(place.bytes);
  return read_all(fd, bytes->data(), bytes->size(), place.offset) &&
         XXH3_64bits(bytes->data(), bytes->size()) == place.checksum;
}

// So that a new one takes its place. Unless another has already.
void remove_damaged(int fd, const std::string& path) {
  struct stat open_one = {}, named = {};
  if (!path.empty() && fstat(fd, &open_one) == 0 && lstat(path.c_str(), &named) == 0 &&
      open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino)
    unlink(path.c_str());
}

// Shared by all that read it, whichever part.
struct OpenIndex {
  int fd;
  explicit OpenIndex(int open) : fd(open) {}
  ~OpenIndex() { close(fd); }
  OpenIndex(const OpenIndex&) = delete;
};

class FileBlocks : public IndexBlocks {
 public:
  FileBlocks(std::shared_ptr<const OpenIndex> file, std::string path, bool own_peaks,
             std::shared_ptr<const IndexPlaces> places)
      : file_(std::move(file)),
        path_(std::move(path)),
        own_peaks_(own_peaks),
        places_(std::move(places)) {}

  IndexBlockReader* step(uint32_t step) override { return read(places_->steps[step], own_peaks_); }
  IndexBlockReader* group(uint32_t group) override { return read(places_->groups[group], false); }
  IndexBlockReader* sizes(uint32_t step) override { return read(places_->sizes[step], own_peaks_); }
  OddSizesReader* odd_sizes(uint32_t step) override {
    return read_into(places_->odd_sizes[step], own_peaks_, &odd_reader_);
  }
  IndexBlockReader* whole() override { return read(places_->whole, false); }
  IndexLivesReader* lives(uint32_t step, uint32_t reach) override {
    return read(places_->lives[step * kReaches + reach], step);
  }
  IndexLivesReader* survivors(size_t part) override {
    return read(places_->survivors[part], IndexTimes::kSteps);
  }
  size_t survivor_parts() const override { return places_->survivors.size(); }
  bool damaged() const override { return damaged_; }
  std::unique_ptr<IndexBlocks> another() const override {
    return std::make_unique<FileBlocks>(file_, path_, own_peaks_, places_);
  }

 private:
  template <typename Reader, typename How>
  Reader* read_into(const IndexBlockPlace& place, How how, Reader* reader) {
    if (place.bytes == 0) return nullptr;
    if (read_place(file_->fd, place, &bytes_) && reader->open(&bytes_, place.raw_bytes, how))
      return reader;
    if (!std::exchange(damaged_, true)) remove_damaged(file_->fd, path_);
    return nullptr;
  }
  IndexBlockReader* read(const IndexBlockPlace& place, bool own_peaks) {
    return read_into(place, own_peaks, &reader_);
  }
  IndexLivesReader* read(const IndexBlockPlace& place, uint32_t step) {
    return read_into(place, step, &lives_reader_);
  }

  std::shared_ptr<const OpenIndex> file_;
  std::string path_;  // Empty while it is being written.
  bool own_peaks_;
  bool damaged_ = false;
  std::shared_ptr<const IndexPlaces> places_;
  std::vector<uint8_t> bytes_;
  IndexBlockReader reader_;
  IndexLivesReader lives_reader_;
  OddSizesReader odd_reader_;
};

// Fields once, in file order, for writing and for reading.
struct FieldsOut {
  Packer& out;
  template <typename T>
  void operator()(T& value) {
    out.number(static_cast<uint64_t>(value));
  }
  template <typename T>
  void list(std::vector<T>& list) {
    out.number(list.size());
    for (T& item : list) visit(item, *this);
  }
};
struct FieldsIn {
  Unpacker& in;
  template <typename T>
  void operator()(T& value) {
    value = static_cast<T>(in.number());
  }
  template <typename T>
  void list(std::vector<T>& list) {
    uint64_t count = in.number();
    if (count > in.remaining()) in.refuse();  // Each takes a byte at least.
    list.clear();
    for (uint64_t i = 0; i < count && in.ok(); ++i) visit(list.emplace_back(), *this);
  }
};

template <typename V>
void visit(IndexBlockPlace& place, V& v) {
  v(place.offset), v(place.bytes), v(place.raw_bytes), v(place.checksum);
}
template <typename V>
void visit(IndexFacts::Step& step, V& v) {
  v(step.events), v(step.mixed), v(step.peak_bytes), v(step.peak_tick), v(step.end_bytes);
}
template <typename V>
void visit(IndexFacts::Image& image, V& v) {
  v(image.pid), v(image.announced), v(image.ended), v(image.gone), v(image.before_peak);
  v(image.before_own_peak), v(image.last_tick), v(image.is_odd);
}
template <typename V>
void visit(IndexFacts::ImageStep& here, V& v) {
  v(here.step), v(here.image), v(here.peak.bytes), v(here.peak.tick);
  TotalsNumbers numbers = numbers_of(here.change);
  for (uint64_t& number : numbers) {
    uint64_t folded = zigzag(static_cast<int64_t>(number));
    v(folded);
    number = static_cast<uint64_t>(unzigzag(folded));
  }
  here.change = std::bit_cast<Totals>(numbers);
}
template <typename V>
void visit(IndexFacts::ProcessStep& here, V& v) {
  v(here.step), v(here.pid), v(here.peak_bytes), v(here.peak_tick), v(here.end_bytes);
}
template <typename V>
void visit(IndexFacts::Straddler& block, V& v) {
  v(block.cell), v(block.made), v(block.freed), v(block.blocks), v(block.size);
}
template <typename V>
void visit(IndexFacts::Freed& freed, V& v) {
  v(freed.step), v(freed.image), v(freed.maker), v(freed.freer), v(freed.blocks), v(freed.bytes);
}
template <typename V>
void visit(IndexFacts::Size& size, V& v) {
  v(size.image), v(size.size);
}
template <typename V>
void visit(IndexCell& cell, V& v) {
  v(cell.image), v(cell.stack), v(cell.strand), v(cell.size_class), v(cell.usual_size);
}

template <typename V>
void visit(PhasePath& path, V& v) {
  v.list(path);
}
template <typename V>
void visit(uint32_t& number, V& v) {
  v(number);
}

struct Directory {
  IndexFacts facts;
  std::vector<IndexCell> cells;
  IndexPlaces places;
};
template <typename V>
void visit(Directory& d, V& v) {
  v(d.facts.events), v(d.facts.last_tick), v(d.facts.several_processes);
  v.list(d.facts.steps), v.list(d.facts.images), v.list(d.facts.image_steps);
  v.list(d.facts.process_steps), v.list(d.facts.straddlers), v.list(d.cells);
  v.list(d.places.steps), v.list(d.places.groups), v.list(d.places.lives);
  v.list(d.places.survivors), v.list(d.facts.phases.paths), v(d.facts.phases.complete);
  v.list(d.facts.sizes), v.list(d.places.sizes), v.list(d.facts.freed), v(d.facts.knows_freed);
  v.list(d.places.odd_sizes);
  visit(d.places.whole, v);
}

// What the rest of the code takes for granted.
bool is_sound(const Directory& d) {
  size_t images = d.facts.images.size();
  auto known = [&](ImageId image) { return raw(image) >= 1 && raw(image) <= images; };
  auto step_known = [](const auto& here) { return here.step < IndexTimes::kSteps; };
  return d.facts.steps.size() == IndexTimes::kSteps &&
         d.places.steps.size() == IndexTimes::kSteps && d.places.groups.size() == kGroups &&
         d.places.lives.size() == kLives && d.places.sizes.size() == IndexTimes::kSteps &&
         d.places.odd_sizes.size() == IndexTimes::kSteps && d.cells.size() <= UINT32_MAX &&
         std::ranges::all_of(d.facts.sizes, [&](const auto& size) { return known(size.image); }) &&
         std::ranges::all_of(d.facts.freed, [&](const auto& here) { return known(here.image); }) &&
         std::all_of(d.facts.image_steps.begin(), d.facts.image_steps.end(),
                     [&](const auto& here) { return known(here.image) && step_known(here); }) &&
         std::all_of(d.facts.process_steps.begin(), d.facts.process_steps.end(), step_known) &&
         std::all_of(d.facts.straddlers.begin(), d.facts.straddlers.end(),
                     [&](const auto& block) { return block.cell < d.cells.size(); }) &&
         std::all_of(d.cells.begin(), d.cells.end(), [&](const IndexCell& cell) {
           return known(cell.image) && cell.size_class <= 64 &&
                  raw(phases_of(cell.strand)) < d.facts.phases.paths.size();
         });
}

}  // namespace

TraceStamp TraceStamp::of(const std::string& trace, const trace::Overview& overview) {
  TraceStamp stamp;
  struct stat info = {};
  if (stat(trace.c_str(), &info) == 0)
    stamp.changed_ns = static_cast<uint64_t>(info.st_mtim.tv_sec) * 1'000'000'000 +
                       static_cast<uint64_t>(info.st_mtim.tv_nsec);
  stamp.bytes = overview.bytes;
  stamp.fingerprint = overview.fingerprint;
  return stamp;
}

std::vector<std::string> index_places(const std::string& trace) {
  std::vector<std::string> places = {trace + kSuffix};
  std::string cache = symbols::NameCache::default_folder();
  std::error_code error;
  std::string absolute = fs::absolute(trace, error).lexically_normal();
  if (!cache.empty() && !error)
    places.push_back(
        fmt::format("{}/{:016x}{}", cache, XXH3_64bits(absolute.data(), absolute.size()), kSuffix));
  return places;
}

std::unique_ptr<Index> open_index(const std::string& path, const TraceStamp& stamp,
                                  const IndexTimes& times) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return nullptr;
  Directory directory;
  auto read = [&] {
    struct stat info = {};
    FileHead head;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || !read_all(fd, &head, sizeof head, 0) ||
        memcmp(head.magic, kMagic, sizeof kMagic) != 0 || head.version != kVersion ||
        head.checksum != checksum_of(head) || head.stamp != stamp ||
        head.directory.raw_bytes > kMostDirectoryBytes)
      return false;
    std::vector<uint8_t> packed, raw(head.directory.raw_bytes);
    if (!read_place(fd, head.directory, &packed)) return false;
    size_t size = ZSTD_decompress(raw.data(), raw.size(), packed.data(), packed.size());
    if (ZSTD_isError(size) || size != raw.size()) return false;
    Unpacker in(raw);
    FieldsIn reading = {in};
    visit(directory, reading);
    return in.ok() && in.done() && is_sound(directory);
  };
  if (!read()) {
    close(fd);
    return nullptr;
  }
  directory.facts.times = times;
  bool own_peaks = directory.facts.several_processes;
  return std::make_unique<Index>(
      std::move(directory.facts), std::move(directory.cells),
      std::make_unique<FileBlocks>(
          std::make_shared<const OpenIndex>(fd), path, own_peaks,
          std::make_shared<const IndexPlaces>(std::move(directory.places))));
}

IndexFileWriter::IndexFileWriter(std::string path) : file_(std::move(path)), at_(sizeof(FileHead)) {
  places_.steps.resize(IndexTimes::kSteps);
  places_.lives.resize(kLives);
  places_.sizes.resize(IndexTimes::kSteps);
  places_.odd_sizes.resize(IndexTimes::kSteps);
  places_.groups.resize(kGroups);
}

void IndexFileWriter::put(IndexBuilder::Level level, uint32_t i, const PackedBlock& block) {
  switch (level) {
    case IndexBuilder::Level::kStep:
      places_.steps[i] = write(block);
      break;
    case IndexBuilder::Level::kGroup:
      places_.groups[i] = write(block);
      break;
    case IndexBuilder::Level::kLives:
      places_.lives[i] = write(block);
      break;
    case IndexBuilder::Level::kSurvivors:
      places_.survivors.push_back(write(block));
      break;
    case IndexBuilder::Level::kSizes:
      places_.sizes[i] = write(block);
      break;
    case IndexBuilder::Level::kOddSizes:
      places_.odd_sizes[i] = write(block);
      break;
  }
}

void IndexFileWriter::append(const void* bytes, size_t size) {
  file_.write(bytes, size, at_);
  at_ += size;
}

IndexBlockPlace IndexFileWriter::write(const PackedBlock& block) {
  IndexBlockPlace place = {at_, block.bytes.size(), block.raw_bytes,
                           XXH3_64bits(block.bytes.data(), block.bytes.size())};
  ok_ = ok_ && !block.bytes.empty() && block.raw_bytes <= PackedBlock::kMostRawBytes;
  append(block.bytes.data(), block.bytes.size());
  return place;
}

bool IndexFileWriter::finish(const TraceStamp& stamp, const IndexFacts& facts,
                             const std::vector<IndexCell>& cells) {
  if (!ok()) return false;
  Directory directory = {facts, cells, places_};
  int own = fcntl(file_.fd(), F_DUPFD_CLOEXEC, 0);
  if (own < 0) return false;
  // Read back what was written: that is the way of every later answer.
  Index index(facts, cells,
              std::make_unique<FileBlocks>(std::make_shared<const OpenIndex>(own), "",
                                           facts.several_processes,
                                           std::make_shared<const IndexPlaces>(places_)));
  std::optional<PackedBlock> whole = index.pack_whole();
  if (!whole) return false;
  if (!whole->bytes.empty()) directory.places.whole = write(*whole);

  Packer packer;
  FieldsOut writing = {packer};
  visit(directory, writing);
  std::vector<uint8_t>& raw = packer.result();
  PackedBlock packed;
  packed.raw_bytes = raw.size();
  packed.bytes.resize(ZSTD_compressBound(raw.size()));
  size_t size = ZSTD_compress(packed.bytes.data(), packed.bytes.size(), raw.data(), raw.size(), 1);
  if (ZSTD_isError(size)) return false;
  packed.bytes.resize(size);
  FileHead head;
  memcpy(head.magic, kMagic, sizeof kMagic);
  head.version = kVersion;
  head.stamp = stamp;
  head.directory = write(packed);
  head.checksum = checksum_of(head);
  file_.write(&head, sizeof head, 0);
  return ok() && file_.finish();
}

// Whether the place is free, or has an index, of whatever version: what else is there is
// somebody's.
static bool may_be_replaced(const std::string& path) {
  struct stat info = {};
  if (lstat(path.c_str(), &info) != 0) return errno == ENOENT;
  if (!S_ISREG(info.st_mode)) return false;
  if (info.st_size == 0) return true;
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  char magic[sizeof kMagic] = {};
  bool ours =
      fd >= 0 && read_all(fd, magic, sizeof magic, 0) && memcmp(magic, kMagic, sizeof kMagic) == 0;
  if (fd >= 0) close(fd);
  return ours;
}

Built build_index(const std::string& trace, const trace::Overview& overview,
                  const std::string& path, std::function<void(double)> progress,
                  std::optional<trace::Tables>* tables) {
  fs::path folder = fs::path(path).parent_path();
  bool cached = folder == fs::path(symbols::NameCache::default_folder());
  if (cached) make_cache_folder(folder);
  if (!may_be_replaced(path)) return Built::kNotHere;
  IndexFileWriter writer(path);
  if (!writer.ok()) return Built::kNotHere;
  TraceStamp stamp = TraceStamp::of(trace, overview);
  // Larger than the trace several times over it would be no help.
  uint64_t most = 3 * overview.bytes + (1 << 20);
  IndexBuilder builder(IndexTimes(overview.header, overview.end_tick), overview.images > 1,
                       [&](IndexBuilder::Level level, uint32_t i, PackedBlock block) {
                         if (writer.bytes() <= most) writer.put(level, i, block);
                       });
  Result<trace::Tables> read = trace::stream(trace, &builder, {std::move(progress), true});
  if (!read) return Built::kNot;
  *tables = std::move(*read);
  if (!builder.finish(**tables) || writer.bytes() > most) return Built::kNot;
  if (TraceStamp::of(trace, overview) != stamp) return Built::kNot;  // Somebody writes to it.
  if (!writer.finish(stamp, builder.facts(), builder.cells())) return Built::kNot;
  if (cached) make_room(folder, kSuffix, kMostCachedBytes, path);
  return Built::kYes;
}

}  // namespace malloscope::analyze
