// SPDX-License-Identifier: Apache-2.0
#include "analyze/symbol_naming.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "symbols/name_rules.h"
#include "trace/event_stream.h"

namespace malloscope::analyze {

std::string key_of(const symbols::ModuleFile& module) {
  return module.path + '\0' + module.build_id;
}

std::vector<symbols::Symbolizer::Request> places_of(
    const std::vector<const trace::Image*>& images) {
  std::vector<symbols::Symbolizer::Request> requests;
  std::unordered_map<std::string, size_t> places;
  for (const trace::Image* image : images) {
    std::vector<uint64_t> pcs;
    for (uint32_t code = 1; code < image->stacks.code_count(); ++code) {
      uint64_t address = image->stacks.code_address(code).address;
      pcs.push_back(address & wire::kInterrupted ? address & ~wire::kInterrupted : address - 1);
    }
    std::ranges::sort(pcs);
    pcs.erase(std::unique(pcs.begin(), pcs.end()), pcs.end());
    // Modules that were at the same place one after the other are all asked, each once.
    std::set<std::tuple<uint64_t, uint64_t, uint64_t, size_t>> asked;
    for (const trace::Module& module : image->modules) {
      auto first = std::ranges::lower_bound(pcs, module.start);
      auto end = std::ranges::lower_bound(pcs, module.end);
      if (first == end || is_ours(module.path)) continue;
      symbols::ModuleFile file = {module.path, module.build_id};
      auto [place, fresh] = places.try_emplace(key_of(file), requests.size());
      if (fresh) requests.push_back({file, {}});
      if (!asked.emplace(module.start, module.end, module.bias, place->second).second) continue;
      for (; first != end; ++first) requests[place->second].offsets.push_back(*first - module.bias);
    }
  }
  for (symbols::Symbolizer::Request& request : requests) {
    std::ranges::sort(request.offsets);
    request.offsets.erase(std::unique(request.offsets.begin(), request.offsets.end()),
                          request.offsets.end());
  }
  return requests;
}

ToldNames names_in(const std::vector<std::vector<uint8_t>>& chunks) {
  ToldNames told;
  for (const std::vector<uint8_t>& chunk : chunks) {
    Unpacker in(chunk);
    while (in.ok() && !in.done()) {
      symbols::ModuleNames more;
      if (!unpack(&in, &more)) break;  // Of a later version, or damaged: names are only a help.
      symbols::ModuleNames& module = told[key_of(more.file)];
      if (more.detail < module.detail) continue;
      if (more.detail > module.detail) module.answers.clear();
      more.answers.merge(module.answers);
      module = std::move(more);
    }
  }
  return told;
}

SymbolNaming::SymbolNaming(const Query& query, const std::vector<std::vector<uint8_t>>& names,
                           std::function<void(double)> progress)
    : rules_(query.rules),
      symbolizer_(query.symbols),
      progress_(std::move(progress)),
      told_(names_in(names)) {}

const symbols::ModuleNames* SymbolNaming::told(const symbols::ModuleFile& module) {
  auto found = told_.find(key_of(module));
  if (found == told_.end()) return nullptr;
  // Nobody can know more than lines, so the files need not even be opened.
  if (found->second.detail == symbols::Detail::kLines ||
      found->second.detail > symbolizer_.detail(symbolizer_.add_module(module)))
    return &found->second;
  return nullptr;
}

std::vector<symbols::SymbolFrame> SymbolNaming::frames(const symbols::ModuleFile& module,
                                                       uint64_t offset) {
  auto answer_of = [&](const symbols::ModuleNames& names) {
    auto answer = names.answers.find(offset);
    return answer == names.answers.end() ? nullptr : &answer->second;
  };
  std::string key = key_of(module);
  const symbols::ModuleNames* names = told(module);
  const std::vector<symbols::SymbolFrame>* answer = names ? answer_of(*names) : nullptr;
  if (!answer) answer = &symbolizer_.frames(symbolizer_.add_module(module), offset);
  // Who knows less of a module may still know more of a place.
  if (auto known = told_.find(key); is_unnamed(*answer) && known != told_.end())
    if (const auto* other = answer_of(known->second)) answer = other;
  Seen& seen = seen_[std::move(key)];
  ++(is_unnamed(*answer) ? seen.unnamed : seen.named);
  return *answer;
}

void SymbolNaming::prepare(std::vector<symbols::Symbolizer::Request> places) {
  for (symbols::Symbolizer::Request& request : places)
    if (const symbols::ModuleNames* names = told(request.file))
      std::erase_if(request.offsets,
                    [&](uint64_t offset) { return names->answers.contains(offset); });
  std::erase_if(places, [](const auto& request) { return request.offsets.empty(); });
  symbolizer_.prepare(std::move(places), progress_);
  if (progress_) progress_(1);
  symbolizer_.save();
}

bool SymbolNaming::is_plumbing(const std::string& function, const std::string& module) {
  if (symbols::is_plumbing(function, module)) return true;
  auto [known, fresh] = wrappers_.try_emplace(function);
  if (fresh) known->second = matches_any(rules_.plumbing, symbols::qualified_name(function));
  return known->second;
}

std::string SymbolNaming::remark(const symbols::ModuleFile& module) {
  // Files are not opened for what the trace knows whole.
  if (const symbols::ModuleNames* names = told(module); names && seen_[key_of(module)].unnamed == 0)
    return names->remark;
  return symbolizer_.remark(symbolizer_.add_module(module));
}

bool SymbolNaming::nameless(const symbols::ModuleFile& module) {
  auto seen = seen_.find(key_of(module));
  if (seen == seen_.end() || seen->second.unnamed == 0) return false;
  return seen->second.named == 0 || symbolizer_.lost(symbolizer_.add_module(module));
}

bool SymbolNaming::lost(const symbols::ModuleFile& module) {
  return nameless(module) && symbolizer_.lost(symbolizer_.add_module(module));
}

}  // namespace malloscope::analyze
