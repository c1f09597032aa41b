// SPDX-License-Identifier: Apache-2.0
// For tests: a folder that goes away, compilers, and a program worth symbolizing.

#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace malloscope::symbols {

class TempFolder {
 public:
  TempFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "mscope_symbols_XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

  std::string write(const std::string& name, const std::string& text) const {
    std::string path = *this / name;
    std::ofstream(path) << text;
    return path;
  }

 private:
  std::string path_;
};

// The command's standard output; a failure fails the test.
inline std::string run(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string output;
  std::array<char, 1 << 16> buffer;
  while (size_t count = fread(buffer.data(), 1, buffer.size(), pipe))
    output.append(buffer.data(), count);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return output;
}

inline bool has_command(const std::string& name) {
  return system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
}

// Three sources full of what makes symbolization hard: inlining across headers,
// templates, names that only one file knows, lambdas, local classes, C among C++.
inline void write_sources(const TempFolder& folder) {
  std::filesystem::create_directories(folder / "include/deep");
  folder.write("include/deep/shapes.h", R"(
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>
namespace shapes {
inline namespace v1 {
struct Shape {
  virtual ~Shape();
  virtual double area() const = 0;
};
template <typename T, int N>
struct Grid {
  T cells[N];
  T sum() const { T s{}; for (const T& c : cells) s += twice(c); return s; }
  static T twice(const T& t) { return t * 2 + T(N); }
};
// Compiled into both sources; the linker keeps one.
__attribute__((noinline)) inline std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (char c : text)
    if (c == ' ') parts.emplace_back(); else parts.back() += c;
  return parts;
}
std::unique_ptr<Shape> make(const std::string& kind, double size);
inline std::string describe(const Shape& shape) {
  std::string text = "area ";
  text += std::to_string(shape.area());
  return text;
}
}  // namespace v1
}  // namespace shapes
extern "C" int c_checksum(const char* text, int bytes);
)");
  folder.write("shapes.cc", R"(
#include <deep/../deep/shapes.h>
#include <functional>
#include <stdexcept>
namespace {
struct Circle : shapes::Shape {
  explicit Circle(double r) : radius(r) {}
  double area() const override { return square(radius) * 3.14159; }
  static double square(double v) { return v * v; }
  double radius;
};
class Box : public shapes::Shape {
 public:
  Box(double w, double h) : w_(w), h_(h) {}
  double area() const override { struct Local { static double mul(double a, double b) { return a * b; } }; return Local::mul(w_, h_); }
 private:
  double w_, h_;
};
std::vector<std::string> log_lines;
void note(const std::string& text, unsigned long times) {
  for (unsigned long i = 0; i < times; ++i) log_lines.push_back(text + std::to_string(i));
}
template <typename F> auto apply_twice(F f, double v) { return f(f(v)); }
}  // namespace
namespace shapes {
Shape::~Shape() = default;
std::unique_ptr<Shape> v1::make(const std::string& kind, double size) {
  auto doubled = [&](double v) { note(kind, 2); return v * 2; };
  auto remember = [](const std::string& text, int times) __attribute__((noinline, used)) {
    for (int i = 0; i < times; ++i) log_lines.push_back(text + text);
    return log_lines.size();
  };
  struct Helper {
    __attribute__((noinline, used)) static void trim(std::string* text) {
      while (!text->empty() && text->back() == ' ') text->erase(text->size() - 1);
    }
  };
  std::string padded = kind + std::string(remember(kind, 3), ' ');
  Helper::trim(&padded);
  for (const std::string& part : split(padded)) note(part, 1);
  if (kind == "circle") return std::make_unique<Circle>(apply_twice(doubled, size));
  if (kind == "box") return std::make_unique<Box>(size, doubled(size));
  std::function<void()> complain = [kind] { throw std::invalid_argument("no shape " + kind); };
  complain();
  return nullptr;
}
}  // namespace shapes
)");
  folder.write("checksum.c", R"(
#include <string.h>
static int mix(int a, int b) { return (a << 5) ^ (a >> 3) ^ b; }
static int __attribute__((noinline)) fold(const char* text, int bytes, int seed) {
  int sum = seed;
  for (int i = 0; i < bytes; ++i) {
    if (text[i] == '\n') continue;
    sum = mix(sum, text[i]);
  }
  return sum;
}
int c_checksum(const char* text, int bytes) {
  if (bytes < 0) bytes = (int)strlen(text);
  return fold(text, bytes, 17) + fold(text, bytes / 2, 17);
}
)");
  folder.write("main.cc", R"(
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <unordered_map>
#include <deep/shapes.h>
static int counter;
static void count(const char* what, int (*fn)(const char*, int)) { counter += fn(what, -1); }
struct Walker {
  template <typename Visit> void walk(int depth, Visit visit) const {
    visit(depth);
    if (depth > 0) walk(depth - 1, visit);
  }
  operator bool() const { return counter != 0; }
  bool operator<(const Walker& other) const { return this < &other; }
};
template <typename T> std::vector<T> range(T n) {
  std::vector<T> all(n);
  std::iota(all.begin(), all.end(), T(1));
  return all;
}
// Inlined everywhere, but the lambda in it is not.
__attribute__((always_inline)) static inline void gather(std::vector<std::string>* into, const char* what) {
  auto add = [into](const std::string& text) __attribute__((noinline, used)) {
    into->insert(into->begin(), text + "!");
    into->emplace_back(text.substr(0, 2));
  };
  add(what);
}
int main(int argc, char** argv) {
  std::vector<std::string> gathered;
  gather(&gathered, argv[0]);
  std::map<std::string, std::unique_ptr<shapes::Shape>> by_name;
  for (const char* kind : {"circle", "box", "knot"}) {
    try {
      by_name[kind] = shapes::make(kind, argc);
    } catch (const std::exception& e) {
      std::printf("%s\n", e.what());
    }
  }
  std::unordered_map<int, std::string> texts;
  for (auto& [name, shape] : by_name) texts[(int)name.size()] = shapes::describe(*shape);
  shapes::Grid<long, 8> grid{};
  for (int i = 0; i < 8; ++i) grid.cells[i] = argc * i;
  Walker walker;
  std::vector<int> depths;
  walker.walk(5, [&](int d) { depths.push_back(d * (int)grid.sum()); });
  std::sort(depths.begin(), depths.end(), [](int a, int b) { return a > b; });
  auto many = range<unsigned short>(100);
  for (const std::string& part : shapes::split(argv[0])) many.push_back((unsigned short)part.size());
  for (auto& [n, t] : texts) count(t.c_str(), c_checksum);
  count(argv[0], [](const char* t, int n) { return n + (int)t[0]; });
  std::printf("%d %zu %zu %d\n", counter, many.size(), depths.size(), (bool)walker);
  return 0;
}
)");
}

// Builds the program of write_sources() in the folder, whose path stands for any
// {} in the flags; returns the program's path. The sources are compiled in different
// folders, so that the same header has different paths.
inline std::string build_program(const TempFolder& folder, const std::string& name,
                                 const std::string& cxx, std::string flags) {
  if (size_t at = flags.find("{}"); at != flags.npos) flags.replace(at, 2, folder.path());
  std::filesystem::create_directories(folder / "sub/folder");
  std::string c = cxx == "g++" ? "gcc" : "clang-19";
  std::string compile = " " + flags + " -c ";
  run("cd " + folder.path() + " && " + c + compile + "checksum.c -o " + name +
      ".c.o && cd sub/folder && " + cxx + " -std=c++17" + compile + "-I" + folder.path() +
      "/include ../../shapes.cc -o ../../" + name + ".shapes.o && cd ../.. && " + cxx +
      " -std=c++17" + compile + "-Iinclude main.cc -o " + name + ".main.o && " + cxx + " " + flags +
      " " + name + ".shapes.o " + name + ".main.o " + name + ".c.o -o " + name);
  return folder / name;
}

}  // namespace malloscope::symbols
