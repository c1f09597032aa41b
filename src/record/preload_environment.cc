// SPDX-License-Identifier: Apache-2.0

#include "record/preload_environment.h"

#include <cstring>

#include "record/process.h"
#include "record/real.h"

namespace malloscope::record {

static constexpr char kVariable[] = "LD_PRELOAD=";
static constexpr size_t kVariableBytes = sizeof kVariable - 1;

// Whether `path` is an element of the list, whose elements are separated by colons or spaces.
static bool lists(const char* list, const char* path) {
  size_t length = strlen(path);
  for (const char* at = list; *at;) {
    size_t element = 0;
    while (at[element] && at[element] != ':' && at[element] != ' ') ++element;
    if (element == length && memcmp(at, path, length) == 0) return true;
    at += element + (at[element] != 0);
  }
  return false;
}

namespace {
struct Found {
  size_t variables = 0;
  size_t position = 0;  // Of LD_PRELOAD; `variables` if it is not there.
  const char* list = "";
};
Found look(char* const* environment) {
  Found found;
  size_t position = ~size_t{0};
  for (; environment && environment[found.variables]; ++found.variables) {
    const char* variable = environment[found.variables];
    if (strncmp(variable, kVariable, kVariableBytes) != 0) continue;
    found.list = variable + kVariableBytes;
    position = found.variables;
  }
  found.position = position == ~size_t{0} ? found.variables : position;
  return found;
}
}  // namespace

size_t preload_environment_bytes(char* const* environment) {
  if (!inherited.shared || !inherited.follow) return 0;
  Found found = look(environment);
  if (lists(found.list, own_path())) return 0;
  return (found.variables + 2) * sizeof(char*) + kVariableBytes + strlen(own_path()) + 1 +
         strlen(found.list) + 1;
}

char* const* preload_environment(char* const* environment, void* memory) {
  Found found = look(environment);
  auto** copy = static_cast<char**>(memory);
  if (found.variables) memcpy(copy, environment, found.variables * sizeof(char*));
  char* text = reinterpret_cast<char*>(copy + found.variables + 2);
  copy[found.position] = text;
  copy[found.variables + (found.position == found.variables)] = nullptr;
  memcpy(text, kVariable, kVariableBytes);
  text += kVariableBytes;
  memcpy(text, own_path(), strlen(own_path()) + 1);
  if (*found.list) {
    text += strlen(text);
    *text++ = ':';
    memcpy(text, found.list, strlen(found.list) + 1);
  }
  return copy;
}

}  // namespace malloscope::record
