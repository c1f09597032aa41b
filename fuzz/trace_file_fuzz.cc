// SPDX-License-Identifier: Apache-2.0
// A whole trace file, with the names in it; then merged with itself, which must give what can be
// read again and has every image twice. The input is a list of chunks without their headers'
// checksums, which no fuzzer would guess: they are put in here.
//
//     per chunk: type, flags, 3 bytes of raw size, 2 bytes of payload size, payload

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "analyze/accounts.h"
#include "analyze/symbol_naming.h"
#include "trace/event_stream.h"
#include "trace/merge_traces.h"
#include "wire/chunk.h"

namespace {

std::string file_of(const uint8_t* data, size_t size) {
  using namespace malloscope::wire;
  std::string file(kFileMagic, sizeof kFileMagic);
  uint64_t sequence = 0;
  while (size >= 7) {
    ChunkHeader header;
    header.type = data[0];
    header.flags = data[1] & kCompressed;
    header.stored_bytes = static_cast<uint32_t>(data[5] | data[6] << 8);
    header.stored_bytes = static_cast<uint32_t>(std::min<size_t>(header.stored_bytes, size - 7));
    header.raw_bytes = header.flags ? static_cast<uint32_t>(data[2] | data[3] << 8 | data[4] << 16)
                                    : header.stored_bytes;
    header.sequence = sequence++;
    header.last_tick = uint64_t{1} << 50;  // Late enough for all images of an epoch to be shown.
    header.checksum = checksum(header, {data + 7, header.stored_bytes});
    file.append(reinterpret_cast<const char*>(&header), sizeof header);
    file.append(reinterpret_cast<const char*>(data) + 7, header.stored_bytes);
    data += 7 + header.stored_bytes;
    size -= 7 + header.stored_bytes;
  }
  return file;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static char path[] = "/tmp/malloscope-fuzz-XXXXXX";
  static int fd = mkstemp(path);
  std::string file = file_of(data, size);
  if (ftruncate(fd, 0) != 0 ||
      pwrite(fd, file.data(), file.size(), 0) != static_cast<ssize_t>(file.size()))
    abort();
  using namespace malloscope;
  auto read = [](const std::string& from) {
    analyze::Accounts accounts;
    auto tables = trace::stream(from, &accounts);
    if (tables) accounts.finish();
    return tables;
  };
  auto tables = read(path);
  if (!tables && tables.error().sentence.empty()) abort();
  if (tables) analyze::names_in(tables->names);

  static const std::string merged_path = std::string(path) + ".merged";
  for (bool together : {false, true}) {
    trace::FileWriter output(open(merged_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600),
                             merged_path);
    auto merged = trace::merge_traces({path, path}, {together, {}}, &output);
    if (!merged && merged.error().sentence.empty()) abort();
    if (merged && !tables) abort();
    if (!merged) continue;
    auto both = read(merged_path);
    if (!both || both->images.size() != 2 * tables->images.size()) abort();
    if (both->events != 2 * tables->events) abort();
  }
  return 0;
}
