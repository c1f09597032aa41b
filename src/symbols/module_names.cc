// SPDX-License-Identifier: Apache-2.0
#include "symbols/module_names.h"

#include <string_view>

namespace malloscope::symbols {

void pack(const ModuleNames& names, const std::vector<uint64_t>& offsets, Packer* out) {
  out->text(names.file.path).text(names.file.build_id);
  out->number(static_cast<uint64_t>(names.detail)).text(names.remark);
  std::unordered_map<std::string_view, uint64_t> numbers;
  std::vector<std::string_view> texts;
  auto number = [&](std::string_view text) {
    auto [known, fresh] = numbers.try_emplace(text, texts.size());
    if (fresh) texts.push_back(text);
    return known->second;
  };
  Packer places;
  uint64_t last = 0;
  for (uint64_t offset : offsets) {
    const std::vector<SymbolFrame>& frames = names.answers.at(offset);
    places.number(offset - last).number(frames.size());
    last = offset;
    for (const SymbolFrame& frame : frames)
      places.number(number(frame.function))
          .number(number(frame.file))
          .number(static_cast<uint64_t>(frame.line))
          .number(static_cast<uint64_t>(frame.column));
  }
  out->number(texts.size());
  for (std::string_view text : texts) out->text(text);
  out->number(offsets.size()).bytes(places.result());
}

bool unpack(Unpacker* in, ModuleNames* names) {
  names->file.path = in->text();
  names->file.build_id = in->text();
  uint64_t detail = in->number();
  names->remark = in->text();
  uint64_t count = in->number();
  if (!in->ok() || detail > static_cast<uint64_t>(Detail::kLines) || count > in->remaining())
    return false;
  names->detail = static_cast<Detail>(detail);
  std::vector<std::string_view> texts;
  for (uint64_t i = 0; i < count && in->ok(); ++i) texts.push_back(in->text());
  uint64_t places = in->number(), offset = 0;
  if (!in->ok() || places > in->remaining()) return false;
  // Frames repeat texts, so few bytes can ask for much memory: a limit for what is not ours.
  constexpr uint64_t kMostText = uint64_t{1} << 30;
  uint64_t text_bytes = 0;
  for (uint64_t i = 0; i < places; ++i) {
    offset += in->number();
    uint64_t frames = in->number();
    if (!in->ok() || frames == 0 || frames > in->remaining()) return false;
    std::vector<SymbolFrame> answer;
    for (uint64_t f = 0; f < frames; ++f) {
      uint64_t function = in->number(), file = in->number(), line = in->number(),
               column = in->number();
      if (!in->ok() || function >= texts.size() || file >= texts.size() || line > INT32_MAX ||
          column > INT32_MAX || texts[function].empty())
        return false;
      text_bytes += texts[function].size() + texts[file].size();
      if (text_bytes > kMostText) return false;
      answer.push_back({std::string(texts[function]), std::string(texts[file]),
                        static_cast<int>(line), static_cast<int>(column)});
    }
    names->answers.insert_or_assign(offset, std::move(answer));
  }
  return in->ok();
}

}  // namespace malloscope::symbols
