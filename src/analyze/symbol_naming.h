// SPDX-License-Identifier: Apache-2.0
// Names of frames from the modules' own files, or from the trace itself if somebody
// put them there (`malloscope symbolize`) and knew more than is known here.

#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyze/frames.h"
#include "analyze/query.h"

namespace malloscope::analyze {

// Every place in a module that a stack of these images goes through.
std::vector<symbols::Symbolizer::Request> places_of(const std::vector<const trace::Image*>& images);

// What a trace's kNames chunks say of each module, by key_of() it.
using ToldNames = std::unordered_map<std::string, symbols::ModuleNames>;
ToldNames names_in(const std::vector<std::vector<uint8_t>>& chunks);
std::string key_of(const symbols::ModuleFile& module);

class SymbolNaming : public Naming {
 public:
  // `names` are the trace's kNames chunks.
  SymbolNaming(const Query& query, const std::vector<std::vector<uint8_t>>& names,
               std::function<void(double)> progress = {});

  std::vector<symbols::SymbolFrame> frames(const symbols::ModuleFile& module,
                                           uint64_t offset) override;
  void prepare(std::vector<symbols::Symbolizer::Request> places) override;
  bool is_plumbing(const std::string& function, const std::string& module) override;
  std::string remark(const symbols::ModuleFile& module) override;
  bool nameless(const symbols::ModuleFile& module) override;
  bool lost(const symbols::ModuleFile& module) override;

 private:
  struct Seen {
    uint64_t named = 0, unnamed = 0;
  };
  // What the trace says of a module, if that is more than its files do; else nullptr.
  const symbols::ModuleNames* told(const symbols::ModuleFile& module);

  Rules rules_;
  std::unordered_map<std::string, bool> wrappers_;
  symbols::Symbolizer symbolizer_;
  std::function<void(double)> progress_;
  ToldNames told_;
  std::unordered_map<std::string, Seen> seen_;  // Places of each module, by key_of() it.
};

}  // namespace malloscope::analyze
