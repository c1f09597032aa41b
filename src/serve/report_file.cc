// SPDX-License-Identifier: Apache-2.0
// What must be in it comes first: the page, the overview, the timelines and the answers. Of what is
// left of the room, a third is for the comparison with another recording, if there is one, half of
// the rest for the stacks, and then as many slices of the time as fit.

#include "serve/report_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>

#include "analyze/numbers.h"
#include "output/gzip_sink.h"
#include "output/sink.h"
#include "serve/bundle.h"
#include "serve/file_rows.h"

namespace malloscope::serve {
namespace {

// Of so many sites the blocks are in the file if there is room; of the first, as many bars as in
// `view`.
constexpr size_t kBlocksOfSites = 200, kSitesInDetail = 8, kFewBars = 2'000;

// The blocks of many sites, in one look at the events.
class BlocksOfSites : public analyze::HeapObserver {
 public:
  explicit BlocksOfSites(size_t images) : by_stack_(images) {}

  void add(const BlocksQuestion& asked, analyze::SiteBlocks* blocks) {
    for (size_t image = 0; image < std::min(by_stack_.size(), asked.filter.stacks.size());
         ++image) {
      const std::vector<bool>& stacks = asked.filter.stacks[image];
      by_stack_[image].resize(std::max(by_stack_[image].size(), stacks.size()));
      for (size_t stack = 0; stack < stacks.size(); ++stack)
        if (stacks[stack]) by_stack_[image][stack] = blocks;
    }
  }

  void changed(ImageId image, const analyze::Block& before, const analyze::Block& now,
               const wire::Event& event, bool counts) override {
    if (analyze::SiteBlocks* blocks = of(image, before))
      blocks->changed(image, before, now, event, counts);
  }
  void gone(ImageId image, const analyze::Block& block, End how, const wire::Event& event,
            bool counts) override {
    if (analyze::SiteBlocks* blocks = of(image, block))
      blocks->gone(image, block, how, event, counts);
  }
  void left(ImageId image, const analyze::BlockTable& live) override {
    live.for_each([&](const analyze::Block& block) {
      if (analyze::SiteBlocks* blocks = of(image, block))
        blocks->add(image, block, analyze::BlockBar::kAlive);
    });
  }

 private:
  analyze::SiteBlocks* of(ImageId image, const analyze::Block& block) const {
    size_t i = raw(image) - size_t{1}, stack = raw(block.stack);
    return i < by_stack_.size() && stack < by_stack_[i].size() ? by_stack_[i][stack] : nullptr;
  }

  std::vector<std::vector<analyze::SiteBlocks*>> by_stack_;  // By image and stack.
};

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k)
      three = three << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) text += k <= count ? kDigits[three >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

// An element with the bytes in it. Packing fails only without memory, which ends all.
std::string element(std::string_view name, std::string_view bytes) {
  output::StringSink packed;
  output::GzipSink gzip(&packed);
  gzip.write(bytes);
  if (Result<void> done = gzip.finish(); !done) throw std::runtime_error(done.error().sentence);
  return fmt::format("<script type=\"text/plain\" data-mscope=\"{}\">{}</script>\n", name,
                     base64(packed.text()));
}

void replace(std::string* text, std::string_view what, std::string_view with) {
  size_t at = text->find(what);
  if (at != std::string::npos) text->replace(at, what.size(), with);
}

// The page with its style and script inside, and `data` before the script.
std::string page_with(const std::string& data) {
  std::span<const PageFile> files = page_files();
  std::string page(files[0].bytes), script(files[1].bytes);
  for (size_t at = 0; (at = script.find("</script", at)) != std::string::npos; at += 9)
    script.replace(at, 2, "<\\/");
  replace(&page, "<head>\n",
          "<head>\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
          "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\">\n");
  replace(&page, "<link rel=\"stylesheet\" href=\"viewer.css\">",
          "<style>" + std::string(files[2].bytes) + "</style>");
  replace(&page, "<script src=\"viewer.js\" defer></script>",
          data + "<script>" + script + "</script>");
  return page;
}

class Maker {
 public:
  Maker(const Context& context, uint64_t max_bytes,
        const std::function<void(std::string_view, double)>& progress)
      : context_(context), max_bytes_(max_bytes), progress_(progress) {}

  Result<ReportFile> make() {
    if (Result<void> good = add_answers(); !good) return std::unexpected(good.error());
    uint64_t used =
        page_with("").size() + data_.size() + element("trace", trace()).size() + kRoomForSentences;
    if (used > max_bytes_)
      return fail_usage(
          fmt::format("the page takes {} without a single stack; --max-size {} is "
                      "too small",
                      analyze::bytes_text(used), analyze::bytes_text(max_bytes_)));
    uint64_t room = max_bytes_ - used;
    if (Result<void> good = add_comparison(&room); !good) return std::unexpected(good.error());
    add_stacks(room);
    data_ += element("trace", trace());
    return ReportFile{page_with(data_), left_out_};
  }

 private:
  static constexpr uint64_t kRoomForSentences = 4 << 10;  // On what was left out.

  Result<void> add(const std::string& name, Result<std::string> answer) {
    if (!answer) return std::unexpected(answer.error());
    data_ += element(name, *answer);
    return {};
  }

  Result<void> add_answers() {
    if (context_.explorer.index()) {
      for (std::string by : {"none", "process", "thread", "phase", "site"}) {
        if (by == "phase" && context_.explorer.reading().tables().mark_names.empty()) continue;
        std::string name = by == "none" ? "timeline" : "timeline-" + by;
        if (Result<void> good = add(name, timeline_answer(context_, {{"by", by}})); !good)
          return good;
      }
    } else {
      left_out_.push_back("The trace has no index, so the file has no timeline.");
    }
    progress_("reading all events for the answers", 0);
    // The blocks of the sites that are asked about first are seen on the way.
    for (uint32_t site : heaviest_sites(context_, kBlocksOfSites)) {
      Result<BlocksQuestion> asked = blocks_question(context_, {{"site", std::to_string(site)}});
      if (!asked) return std::unexpected(asked.error());
      filter_events(context_, &*asked);
      followed_.push_back({site, std::move(*asked), nullptr});
    }
    BlocksOfSites blocks(context_.explorer.reading().tables().images.size());
    for (size_t i = 0; i < followed_.size(); ++i) {
      followed_[i].blocks =
          blocks_observer(followed_[i].asked, i < kSitesInDetail ? kMostBars : kFewBars);
      blocks.add(followed_[i].asked, followed_[i].blocks.get());
    }
    auto answers = all_reports(context_, [&](analyze::Heap* heap) { heap->add_observer(&blocks); });
    if (!answers) return std::unexpected(answers.error());
    for (const auto& [name, answer] : *answers) data_ += element("answer-" + name, answer);
    if (has_replay(context_.path))
      if (Result<std::string> results = replay_answer(context_.path))
        data_ += element("replay", *results);
    return {};
  }

  // What changed since the other recording, by each metric that the file has, with as many
  // functions as there is room for.
  Result<void> add_comparison(uint64_t* room) {
    if (!context_.comparison) return {};
    constexpr size_t kMostNodes = 50'000, kMostSites = 2'000;
    for (size_t most = kMostNodes; most >= 50; most /= 4) {
      progress_("comparing", 0);
      Result<std::string> parts = comparison(most, std::min(most, kMostSites), *room / 3);
      if (!parts) return std::unexpected(parts.error());
      if (parts->empty()) continue;
      data_ += *parts;
      *room -= parts->size();
      has_comparison_ = true;
      if (most < kMostNodes)
        left_out_.push_back(fmt::format(
            "Of the comparison with {} the {} heaviest functions of the flame graph are "
            "in this file; malloscope view --base has all.",
            base_name(), analyze::grouped(most)));
      return {};
    }
    left_out_.push_back(fmt::format(
        "The comparison with {} has no room in this file; malloscope view --base has it.",
        base_name()));
    return {};
  }

  // Empty: it is more than `most_bytes`.
  Result<std::string> comparison(size_t most_nodes, size_t most_sites, uint64_t most_bytes) const {
    std::string parts;
    std::vector<std::string> metrics = {"peak",        "live",  "allocated",
                                        "allocations", "calls", "temporary"};
    if (analyze::has_cpu(context_.explorer.reading().tables()) &&
        analyze::has_cpu(context_.comparison->before().reading().tables()))
      metrics.emplace_back("cpu");
    for (const std::string& metric : metrics) {
      auto asked = [&](size_t most) {
        return Parameters{{"metric", metric}, {"base", "1"}, {"most", std::to_string(most)}};
      };
      Result<std::string> sites = sites_answer(context_, asked(most_sites));
      if (!sites) return std::unexpected(sites.error());
      Result<std::string> flame = flame_answer(context_, asked(most_nodes));
      if (!flame) return std::unexpected(flame.error());
      parts += element("base-sites-" + metric, *sites) + element("base-flame-" + metric, *flame);
      if (parts.size() > most_bytes) return std::string();
    }
    return parts;
  }

  std::string base_name() const {
    return std::filesystem::path(context_.base_path).filename().string();
  }

  void add_stacks(uint64_t room) {
    progress_("putting stacks in", 0);
    // What a stack takes at least, and an entry of a slice, once they are packed.
    constexpr uint64_t kLeastOfStack = 6, kLeastOfEntry = 3;
    size_t all = context_.explorer.rows().size();
    size_t most = std::clamp<size_t>(all, 1, std::max<uint64_t>(room / 2 / kLeastOfStack, 1));
    std::optional<FileRows> rows;
    std::string tree;
    for (;; most /= 2) {
      rows.emplace(context_, most);
      tree = element("tree", rows->tree());
      if (tree.size() <= room / 2 || most <= 1) break;
    }
    data_ += tree;
    rows_ = rows->rows();
    room -= std::min<uint64_t>(room, tree.size());
    if (rows->stacks_folded() > 0)
      left_out_.push_back(fmt::format(
          "Of {} stacks the {} heaviest are in this file, the others are put together where they "
          "would be; malloscope view has all.",
          analyze::grouped(all), analyze::grouped(rows->stacks_kept())));
    size_t drawn = add_blocks(room / 3, &room);
    for (uint32_t count : {1000u, 500u, 200u, 100u, 50u, 20u, 10u}) {
      progress_("cutting the time", 1.0 - count / 1000.0);
      std::optional<std::string> slices = rows->slices(count, room / kLeastOfEntry);
      if (!slices) continue;
      std::string packed = element("slices", *slices);
      if (packed.size() > room) continue;
      data_ += packed;
      room -= packed.size();
      slices_ = count;
      break;
    }
    drawn += add_blocks(room, &room);
    if (size_t sites = rows->sites(); drawn < sites)
      left_out_.push_back(
          fmt::format("The blocks of {} of {} sites are in this file; malloscope view has all.",
                      analyze::grouped(drawn), analyze::grouped(sites)));
    if (slices_ == 0)
      left_out_.push_back(
          "This file answers for the whole recording only; malloscope view has "
          "every range of its time.");
    else if (slices_ < 1000)
      left_out_.push_back(fmt::format(
          "In this file a range of time is one of {} parts; malloscope view has 1,000.", slices_));
  }

  // The blocks of as many of the heaviest sites as there is room for; how many that were.
  size_t add_blocks(uint64_t most_bytes, uint64_t* room) {
    size_t added = 0;
    for (Followed& followed : followed_) {
      std::string packed = std::move(followed.packed);
      if (packed.empty())
        packed = element(fmt::format("blocks-{}", followed.site),
                         blocks_columns(context_, followed.asked, followed.blocks.get()));
      if (packed.size() > most_bytes) {
        followed.packed = std::move(packed);  // Perhaps later.
        continue;
      }
      most_bytes -= packed.size();
      *room -= packed.size();
      data_ += packed;
      followed.added = true;
      ++added;
    }
    std::erase_if(followed_, &Followed::added);
    return added;
  }

  std::string trace() const {
    output::StringSink sink;
    output::JsonWriter json(&sink);
    json.begin_object();
    json.member("state", "ready");
    json.member("stage", "");
    json.member("share", 1);
    json.key("error").null();
    json.member("name", std::filesystem::path(context_.path).filename().string());
    json.member("path", context_.path);
    json.member("version", MSCOPE_VERSION);
    json.key("base");
    if (has_comparison_) {
      json.begin_object();
      json.member("name", base_name());
      json.end();
    } else {
      json.null();
    }
    json.key("file").begin_object();
    json.member("slices", slices_);
    json.member("rows", rows_);
    json.member("max_size", max_bytes_);
    json.key("left_out").begin_array();
    for (const std::string& sentence : left_out_) json.value(sentence);
    json.end();
    json.end();
    write_trace_members(context_, &json);
    json.end();
    return sink.text();
  }

  struct Followed {
    uint32_t site;
    BlocksQuestion asked;
    std::unique_ptr<analyze::SiteBlocks> blocks;
    std::string packed = {};  // If there was no room for it yet.
    bool added = false;
  };

  const Context& context_;
  uint64_t max_bytes_;
  const std::function<void(std::string_view, double)>& progress_;
  std::string data_;
  std::vector<std::string> left_out_;
  std::vector<Followed> followed_;
  bool has_comparison_ = false;
  size_t rows_ = 0;
  uint32_t slices_ = 0;
};

}  // namespace

Result<ReportFile> make_report_file(const Context& context, uint64_t max_bytes,
                                    const std::function<void(std::string_view, double)>& progress) {
  return Maker(context, max_bytes, progress).make();
}

}  // namespace malloscope::serve
