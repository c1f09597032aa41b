// SPDX-License-Identifier: Apache-2.0
// A C++ plug-in for a C program (c_with_cxx_plugin.c): new, delete, exceptions.
//
// build: -shared -fPIC -o libplugin_cxx.so

#include <new>
#include <stdexcept>
#include <string>
#include <vector>

__attribute__((noipa)) static void use_new() {
  for (int i = 0; i < 100; ++i) {
    auto *p = static_cast<volatile char *>(::operator new(200));
    p[0] = 1;
    ::operator delete(const_cast<char *>(p));
  }
}

extern "C" int plugin() {
  use_new();
  std::vector<std::string> words;
  for (int i = 0; i < 100; ++i) words.push_back(std::string(100, 'x'));
  try {
    volatile size_t huge = SIZE_MAX / 2 + 1;
    ::operator delete(::operator new(huge));
  } catch (const std::bad_alloc &) {
    try {
      throw std::runtime_error("from the plug-in");
    } catch (const std::exception &error) {
      return static_cast<int>(words.size()) + static_cast<int>(std::string(error.what()).size());
    }
  }
  return 0;
}
