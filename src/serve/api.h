// SPDX-License-Identifier: Apache-2.0
// The page's questions about one trace, from its being loaded to its being left. Knows nothing of
// HTTP.

#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "analyze/explorer.h"
#include "serve/answers.h"
#include "serve/jobs.h"

namespace malloscope::serve {

struct Reply {
  int status = 200;
  std::string type = "application/json";
  std::string body;
};

// What went wrong, as the page is told it.
Reply failure(int status, std::string_view sentence);

class Api {
 public:
  // Begins to load the trace and, unless that is empty, the one it is to be compared with, and
  // returns. `names`: how names are looked up and shown.
  Api(std::string trace, std::string base, analyze::QueryWords names,
      std::vector<std::string> source_folders);
  ~Api();

  // `name`: what is behind "api/". From any thread.
  Reply answer(const std::string& name, const Parameters& parameters);

 private:
  void load();
  void fail_with(const std::string& sentence);
  Reply trace();
  Reply progress() const;
  Result<Reply> ask(const std::string& name, const Parameters& parameters,
                    std::unique_lock<std::mutex>* turn);
  // What may take a look at all events: that does not keep other questions waiting.
  Result<Reply> report(const std::string& name, const Parameters& parameters);
  std::optional<Reply> kept(const std::string& key);
  Reply keep(const std::string& key, Reply reply);
  Context context(const Parameters& parameters, std::unique_lock<std::mutex>* turn = nullptr);
  // Curves of a part of the stacks take a while, so others that are asked for come first.
  std::unique_lock<std::mutex> turn_for(const std::string& name);
  // A sentence if a trace is no longer the file that was loaded; else empty.
  std::string replaced() const;

  const std::string path_, base_path_;
  // What tells a file from another that has come in its place.
  struct FileStamp {
    uint64_t device = 0, number = 0, bytes = 0;
    int64_t changed_ns = 0;
    bool operator==(const FileStamp&) const = default;
  };
  static FileStamp stamp_of(const std::string& path);
  const FileStamp stamp_, base_stamp_;
  const analyze::QueryWords names_;
  const std::vector<std::string> source_folders_;
  Jobs jobs_;

  std::mutex state_mutex_;
  enum class State { kLoading, kReady, kFailed } state_ = State::kLoading;
  std::string stage_ = "opening the trace";
  double share_ = 0;
  std::string error_;

  std::mutex explorer_mutex_;     // One question to it at a time.
  std::atomic<int> waiting_ = 0;  // Questions that curves give way to.
  std::unique_ptr<analyze::Explorer> explorer_, base_;
  std::optional<analyze::Comparison> comparison_;
  std::string trace_members_;  // What api/trace says once it is ready.
  // Questions that take a look at all events do not keep others waiting, but each other.
  std::mutex report_mutex_;
  std::mutex kept_mutex_;
  std::list<std::pair<std::string, Reply>> reports_;  // The latest answers to such questions.
  std::atomic<bool> ending_ = false;
  std::thread loader_;
};

}  // namespace malloscope::serve
