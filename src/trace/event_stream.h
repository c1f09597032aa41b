// SPDX-License-Identifier: Apache-2.0
// A whole trace as one sequence: every event of every thread of every image in
// the order in which they happened, one epoch in memory at a time.

#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/error.h"
#include "trace/tables.h"
#include "wire/event.h"

namespace malloscope::trace {

// What a reader of the stream wants to be told. Everything an event refers to
// (its image, thread and stack) is in the tables before the event is shown.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void image_started(const Image& image) { (void)image; }
  // In order. Events of several images may be mixed.
  virtual void events(std::span<const wire::Event> events) { (void)events; }
  virtual void image_ended(const Image& image) { (void)image; }
  // Whether `address` is a block of `image` after all that was shown so far. Asked when
  // two threads touch one address within one tick, where only this tells who came first.
  virtual bool is_live(ImageId image, uint64_t address) {
    (void)image, (void)address;
    return false;
  }
};

struct StreamOptions {
  // Called now and then with the share of the file that has been read.
  std::function<void(double)> progress;
  // False: events are neither read nor shown, and Tables::events stays 0. What is in their chunks
  // is not even checked.
  bool events = true;
  // False: stacks are not kept, and no event has one.
  bool stacks = true;
};

// What is known without reading the events: the clock, and when the recording ended (or, if it
// did not finish, the time of the last thing in it).
struct Overview {
  Header header;
  uint64_t end_tick = 0;
  uint64_t events = 0;  // As the recorder counted them; 0 if it did not finish.
  uint64_t images = 0;
  uint64_t bytes = 0;        // Of the file.
  uint64_t fingerprint = 0;  // Another, if a chunk is: made of all their checksums.
};
Result<Overview> overview(const std::string& path);

// Reads `path` from its beginning to its end. A file cut short is read up to the
// cut, with `complete` false in the tables; one that is damaged is an error.
Result<Tables> stream(const std::string& path, Listener* listener, StreamOptions options = {});

}  // namespace malloscope::trace
