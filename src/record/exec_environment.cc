// SPDX-License-Identifier: Apache-2.0

#include "record/exec_environment.h"

#include <cstring>

#include "record/process.h"
#include "record/real.h"

namespace malloscope::record {
namespace {

constexpr char kVariable[] = "LD_PRELOAD=";
constexpr size_t kVariableBytes = sizeof kVariable - 1;

// Calls `visit(element, length)` for each file of the list; they are separated by colons or spaces.
template <typename Visit>
void each(const char* list, Visit visit) {
  while (*list) {
    size_t length = 0;
    while (list[length] && list[length] != ':' && list[length] != ' ') ++length;
    if (length > 0) visit(list, length);
    list += length + (list[length] != 0);
  }
}

bool is(const char* path, const char* element, size_t length) {
  return length == strlen(path) && memcmp(element, path, length) == 0;
}

// By the recording's link, or by the path it was preloaded with.
bool is_recorder(const char* element, size_t length) {
  return is(preload_path(), element, length) || is(own_path(), element, length);
}

}  // namespace

ExecEnvironment::ExecEnvironment(char* const* original, bool with_recorder)
    : original_(original), with_recorder_(with_recorder) {
  size_t position = ~size_t{0};
  for (; original && original[variables_]; ++variables_)
    if (strncmp(original[variables_], kVariable, kVariableBytes) == 0) {
      position = variables_;
      list_ = original[variables_] + kVariableBytes;
    }
  position_ = position == ~size_t{0} ? variables_ : position;
  bool leads_here = false, is_there = false;
  each(list_, [&](const char* element, size_t length) {
    leads_here |= is(preload_path(), element, length);
    is_there |= is_recorder(element, length);
  });
  if (with_recorder ? !leads_here : is_there)
    bytes_ = (variables_ + 2) * sizeof(char*) + kVariableBytes + strlen(preload_path()) + 1 +
             strlen(list_) + 1;
}

char* const* ExecEnvironment::copy_to(void* memory) const {
  auto** copy = static_cast<char**>(memory);
  if (variables_) memcpy(copy, original_, variables_ * sizeof(char*));
  copy[variables_ + (position_ == variables_)] = nullptr;
  char* text = reinterpret_cast<char*>(copy + variables_ + 2);
  copy[position_] = text;
  memcpy(text, kVariable, kVariableBytes);
  text += kVariableBytes;
  auto add = [&, first = true](const char* element, size_t length) mutable {
    if (!first) *text++ = ':';
    first = false;
    memcpy(text, element, length);
    text += length;
  };
  if (with_recorder_) add(preload_path(), strlen(preload_path()));
  each(list_, [&](const char* element, size_t length) {
    if (!is_recorder(element, length)) add(element, length);
  });
  *text = 0;
  return copy;
}

}  // namespace malloscope::record
