// SPDX-License-Identifier: Apache-2.0
#include "analyze/reading.h"

#include <algorithm>

#include "symbols/name_rules.h"
#include "symbols/symbolizer.h"
#include "trace/event_stream.h"

namespace malloscope::analyze {
namespace {

class SymbolNaming : public Naming {
 public:
  std::vector<symbols::SymbolFrame> frames(const symbols::ModuleFile& module,
                                           uint64_t offset) override {
    return symbolizer_.frames(symbolizer_.add_module(module), offset);
  }
  bool is_plumbing(const std::string& function, const std::string& module) override {
    return symbols::is_plumbing(function, module);
  }
  std::string remark(const symbols::ModuleFile& module) override {
    return symbolizer_.remark(symbolizer_.add_module(module));
  }

 private:
  symbols::Symbolizer symbolizer_;
};

}  // namespace

Result<std::unique_ptr<Reading>> Reading::open(const std::string& path, Selection selection,
                                               std::function<void(double)> progress) {
  auto accounts = std::make_unique<Accounts>(selection);
  Result<trace::Tables> tables = trace::stream(path, accounts.get(), {std::move(progress)});
  if (!tables) return std::unexpected(tables.error());
  return std::make_unique<Reading>(path, std::move(*tables), std::move(accounts),
                                   std::make_unique<SymbolNaming>());
}

Reading::Reading(std::string path, trace::Tables tables, std::unique_ptr<Accounts> accounts,
                 std::unique_ptr<Naming> naming)
    : path_(std::move(path)),
      tables_(std::move(tables)),
      accounts_(std::move(accounts)),
      naming_(std::move(naming)),
      frames_(tables_, *naming_) {}

const std::vector<Site>& Reading::sites() {
  if (!sites_) sites_ = analyze::sites(*accounts_, &frames_);
  return *sites_;
}

std::string Reading::remark(const std::string& module_path) {
  for (const trace::Image& image : tables_.images)
    for (const trace::Module& module : image.modules)
      if (module.path == module_path) return naming_->remark({module.path, module.build_id});
  return "";
}

std::vector<const trace::Image*> Reading::selected() const {
  std::vector<const trace::Image*> images;
  for (const trace::Image& image : tables_.images)
    if (accounts_->selection().contains(image)) images.push_back(&image);
  return images;
}

uint64_t Reading::end_tick() const {
  if (tables_.end_tick) return *tables_.end_tick;
  uint64_t tick = accounts_->last_tick();
  for (const trace::Image& image : tables_.images) {
    tick = std::max(tick, image.end_tick.value_or(0));
    if (!image.rss.empty()) tick = std::max(tick, image.rss.back().tick);
  }
  return tick;
}

}  // namespace malloscope::analyze
