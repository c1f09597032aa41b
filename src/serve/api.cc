// SPDX-License-Identifier: Apache-2.0
#include "serve/api.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>

#include "output/json_writer.h"
#include "output/sink.h"

namespace malloscope::serve {
namespace {

constexpr size_t kMostReports = 20, kMostReportBytes = 64 << 20;
constexpr const char *kJsonType = "application/json", *kColumnsType = "application/octet-stream";
constexpr std::string_view kReports = "answer/";
constexpr const char* kAsked = "asked";

// Two addresses with the same words are the same question.
std::string key_of(const std::string& name, const Parameters& parameters) {
  std::string key = name;
  for (const auto& [parameter, value] : parameters)
    if (parameter != kAsked) key += '\0' + parameter + '\0' + value;
  return key;
}

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

}  // namespace

Reply failure(int status, std::string_view sentence) {
  output::StringSink sink;
  output::JsonWriter json(&sink);
  json.begin_object();
  // The page has fields, not options, and calls those inside by their names.
  json.member("error", sentence.starts_with("--") ? sentence.substr(2) : sentence);
  json.end();
  return {status, kJsonType, sink.text()};
}

Result<bool> is_since_base(const Context& context, const Parameters& parameters) {
  if (word(parameters, "base") != "1") return false;
  if (!context.comparison)
    return fail_usage("there is no other recording to compare with: view was given no --base");
  return true;
}

Api::Api(std::string trace, std::string base, analyze::QueryWords names,
         std::vector<std::string> source_folders)
    : path_(std::move(trace)),
      base_path_(std::move(base)),
      stamp_(stamp_of(path_)),
      base_stamp_(stamp_of(base_path_)),
      names_(std::move(names)),
      source_folders_(std::move(source_folders)),
      loader_([this] {
        try {
          load();
        } catch (const std::bad_alloc&) {
          fail_with("there is not enough memory for this trace");
        } catch (const std::exception& error) {
          fail_with(error.what());
        }
      }) {}

Api::~Api() {
  ending_ = true;
  loader_.join();
}

Api::FileStamp Api::stamp_of(const std::string& path) {
  struct stat file = {};
  if (path.empty() || stat(path.c_str(), &file) != 0) return {};
  return {file.st_dev, file.st_ino, static_cast<uint64_t>(file.st_size),
          file.st_mtim.tv_sec * 1'000'000'000 + file.st_mtim.tv_nsec};
}

std::string Api::replaced() const {
  for (const auto& [path, stamp] : {std::pair(path_, stamp_), std::pair(base_path_, base_stamp_)}) {
    FileStamp now = stamp_of(path);
    if (now == stamp) continue;
    return fmt::format("{} {} since it was opened; run malloscope view again", file_name(path),
                       now == FileStamp() ? "was removed" : "was replaced or changed");
  }
  return {};
}

void Api::fail_with(const std::string& sentence) {
  std::lock_guard lock(state_mutex_);
  state_ = State::kFailed;
  error_ = sentence;
}

void Api::load() {
  Result<analyze::Query> query = query_of(names_);
  if (!query) return fail_with(query.error().sentence);
  auto progress = [this](std::string_view what, double share) {
    std::lock_guard lock(state_mutex_);
    stage_ = what;
    share_ = share;
  };
  Result<std::unique_ptr<analyze::Explorer>> opened =
      analyze::Explorer::open(path_, *query, progress);
  if (!opened) return fail_with(opened.error().sentence);
  Result<std::unique_ptr<analyze::Explorer>> base = nullptr;
  if (!base_path_.empty()) {
    auto base_progress = [&](std::string_view what, double share) {
      progress(fmt::format("{} of {}", what, file_name(base_path_)), share);
    };
    base = analyze::Explorer::open(base_path_, *query, base_progress);
    if (!base) return fail_with(base.error().sentence);
  }
  {
    std::lock_guard lock(explorer_mutex_);
    explorer_ = std::move(*opened);
    base_ = std::move(*base);
    if (base_) comparison_.emplace(base_.get(), explorer_.get());
    output::StringSink sink;
    output::JsonWriter json(&sink);
    json.begin_object();
    write_trace_members(context({}), &json);
    json.end();
    trace_members_ = sink.text();
  }
  {
    std::lock_guard lock(state_mutex_);
    state_ = State::kReady;
  }
  // What makes later questions fast, a little at a time, so that nobody waits for it.
  for (bool more = true; more && !ending_; std::this_thread::yield()) {
    std::lock_guard lock(explorer_mutex_);
    more = explorer_->prepare() || (base_ && base_->prepare());
  }
}

Reply Api::trace() {
  output::StringSink sink;
  output::JsonWriter json(&sink);
  std::lock_guard lock(state_mutex_);
  json.begin_object();
  json.member("state", state_ == State::kLoading ? "loading"
                       : state_ == State::kReady ? "ready"
                                                 : "failed");
  json.member("stage", stage_);
  json.member("share", share_);
  json.key("error");
  error_.empty() ? json.null() : json.value(error_);
  json.member("name", file_name(path_));
  json.member("path", path_);
  json.member("version", MSCOPE_VERSION);
  json.key("base");
  if (base_path_.empty()) {
    json.null();
  } else {
    json.begin_object(output::JsonWriter::Layout::kLine);
    json.member("name", file_name(base_path_));
    json.end();
  }
  json.end();
  if (state_ != State::kReady) return {200, kJsonType, sink.text()};
  // Two objects become one.
  std::string head = sink.text();
  head.erase(head.rfind('}'));
  return {200, kJsonType, head + "," + trace_members_.substr(trace_members_.find('{') + 1)};
}

Reply Api::progress() const {
  output::StringSink sink;
  output::JsonWriter json(&sink);
  json.begin_object();
  json.key("jobs").begin_array();
  for (const Jobs::Job& job : jobs_.list()) {
    json.begin_object();
    json.member("what", job.what);
    json.member("share", job.share);
    json.end();
  }
  json.end();
  json.end();
  return {200, kJsonType, sink.text()};
}

Context Api::context(const Parameters& parameters, std::unique_lock<std::mutex>* turn) {
  return {*explorer_, path_,
          names_,     source_folders_,
          jobs_,      comparison_ ? &*comparison_ : nullptr,
          base_path_, word(parameters, kAsked),
          turn};
}

static Result<Reply> as_reply(Result<std::string> body, const char* type) {
  if (!body) return std::unexpected(body.error());
  return Reply{200, type, std::move(*body)};
}

// A link may be that of another recording.
static Result<void> has_process(const trace::Tables& tables, const std::string& text) {
  if (text.empty()) return {};
  Result<analyze::Selection> selection = analyze::selection_of(text, "--process");
  if (!selection || std::ranges::any_of(tables.images, [&](const trace::Image& image) {
        return selection->contains(image);
      }))
    return {};
  return fail_usage(fmt::format("process {} is not in this recording", text));
}

Result<Reply> Api::ask(const std::string& name, const Parameters& parameters,
                       std::unique_lock<std::mutex>* turn) {
  using Answering = Result<std::string> (*)(const Context&, const Parameters&);
  static const std::map<std::string, Answering> kColumns = {{"timeline", timeline_answer},
                                                            {"flame", flame_answer},
                                                            {"sites", sites_answer},
                                                            {"sparks", sparks_answer}};
  static const std::map<std::string, Answering> kJson = {{"stacks", stacks_answer},
                                                         {"source", source_answer}};
  if (auto found = kColumns.find(name); found != kColumns.end())
    return as_reply(found->second(context(parameters, turn), parameters), kColumnsType);
  if (auto found = kJson.find(name); found != kJson.end())
    return as_reply(found->second(context(parameters, turn), parameters), kJsonType);
  if (name == "replay") return as_reply(replay_answer(path_), kJsonType);
  return Reply{404, "", ""};
}

std::unique_lock<std::mutex> Api::turn_for(const std::string& name) {
  using std::chrono::milliseconds;
  if (name == "timeline" || name == "sparks") {
    std::this_thread::sleep_for(milliseconds(10));  // The page asks for the rest right after it.
    while (waiting_ > 0) std::this_thread::sleep_for(milliseconds(2));
    return std::unique_lock(explorer_mutex_);
  }
  ++waiting_;
  std::unique_lock lock(explorer_mutex_);
  --waiting_;
  return lock;
}

std::optional<Reply> Api::kept(const std::string& key) {
  std::lock_guard lock(kept_mutex_);
  for (const auto& [asked, reply] : reports_)
    if (asked == key) return reply;
  return std::nullopt;
}

Reply Api::keep(const std::string& key, Reply reply) {
  std::lock_guard lock(kept_mutex_);
  reports_.emplace_front(key, reply);
  size_t bytes = 0, kept = 0;
  for (const auto& [asked, known] : reports_)
    if ((bytes += known.body.size()) <= kMostReportBytes) ++kept;
  reports_.resize(std::min(kept, kMostReports));
  return reply;
}

Result<Reply> Api::report(const std::string& name, const Parameters& parameters) {
  std::string key = key_of(name, parameters), asked = word(parameters, kAsked);
  if (std::optional<Reply> known = kept(key)) return *known;
  bool is_view = name.starts_with(kReports);
  std::string view = is_view ? name.substr(kReports.size()) : "";
  std::optional<BlocksQuestion> of_blocks;
  if (is_view || name == "blocks") {
    std::unique_lock lock = turn_for(name);
    jobs_.throw_if_left(asked);
    Context with = context(parameters);
    if (is_view) {
      auto indexed = indexed_report_answer(with, view, parameters);
      if (!indexed) return std::unexpected(indexed.error());
      if (*indexed) return keep(key, {200, kJsonType, std::move(**indexed)});
    } else {
      Result<BlocksQuestion> question = blocks_question(with, parameters);
      if (!question) return std::unexpected(question.error());
      if (auto indexed = indexed_blocks_answer(with, *question))
        return keep(key, {200, kColumnsType, std::move(*indexed)});
      filter_events(with, &*question);
      of_blocks = std::move(*question);
    }
  }
  std::lock_guard lock(report_mutex_);
  jobs_.throw_if_left(asked);
  if (std::optional<Reply> known = kept(key)) return *known;
  {
    std::lock_guard explorer_lock(explorer_mutex_);
    explorer_->make_room();
  }
  Result<Reply> reply = Reply{};
  if (of_blocks) {
    reply = as_reply(blocks_answer(context(parameters), *of_blocks), kColumnsType);
  } else if (name == "detail") {
    Result<DetailQuestion> question = [&] {
      std::lock_guard explorer_lock(explorer_mutex_);
      return detail_question(context(parameters), parameters);
    }();
    if (!question) return std::unexpected(question.error());
    reply = as_reply(detail_answer(context(parameters), *question), kColumnsType);
  } else {
    reply = as_reply(report_answer(context(parameters), view, parameters), kJsonType);
  }
  return reply ? keep(key, std::move(*reply)) : reply;
}

Reply Api::answer(const std::string& name, const Parameters& parameters) {
  if (name == "trace") return trace();
  if (name == "progress") return progress();
  if (name == "leave") {
    jobs_.leave(word(parameters, kAsked));
    return {200, kJsonType, "{}\n"};
  }
  {
    std::lock_guard lock(state_mutex_);
    if (state_ == State::kLoading) return failure(503, "the trace is still being read");
    if (state_ == State::kFailed) return failure(500, error_);
  }
  for (const auto& [parameter, value] : parameters)
    if (value.find('\0') != std::string::npos)
      return failure(400, fmt::format("{}= has a character in it that no name has", parameter));
  if (std::string sentence = replaced(); !sentence.empty()) return failure(409, sentence);
  Result<Reply> reply = [&]() -> Result<Reply> {
    try {
      if (Result<void> known =
              has_process(explorer_->reading().tables(), word(parameters, "process"));
          !known)
        return std::unexpected(known.error());
      if (name.starts_with(kReports) || name == "blocks" || name == "detail")
        return report(name, parameters);
      {
        std::unique_lock lock = turn_for(name);
        jobs_.throw_if_left(word(parameters, kAsked));
        if (name != "timeline" || has_timeline(context(parameters), parameters))
          return ask(name, parameters, &lock);
      }
      return report("detail", parameters);
    } catch (const Jobs::Left&) {
      return failure(410, "nobody waits for this answer any more");
    }
  }();
  // It may have waited for its turn, or read for long.
  if (std::string sentence = replaced(); !sentence.empty()) return failure(409, sentence);
  if (!reply) return failure(reply.error().usage ? 400 : 500, reply.error().sentence);
  if (reply->status == 404) return failure(404, fmt::format("there is no answer '{}'", name));
  return std::move(*reply);
}

}  // namespace malloscope::serve
