// SPDX-License-Identifier: Apache-2.0
// Something for a compiler to chew on: the heaviest standard headers, used, and
// templates that each pull in a family of others.

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

namespace heavy {

template <int N>
struct Key {
  int value = N;
  friend bool operator<(const Key& a, const Key& b) { return a.value < b.value; }
  friend bool operator==(const Key& a, const Key& b) { return a.value == b.value; }
};

template <int N>
struct Hash {
  size_t operator()(const Key<N>& k) const { return std::hash<int>{}(k.value * N); }
};

template <int N>
long one(const std::string& text) {
  std::map<Key<N>, std::vector<std::string>> ordered;
  std::unordered_map<Key<N>, std::set<std::string>, Hash<N>> hashed;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    ordered[Key<N>{static_cast<int>(word.size() % (N + 1))}].push_back(word);
    hashed[Key<N>{static_cast<int>(word.size())}].insert(word);
  }
  std::vector<std::tuple<int, std::string, double>> rows;
  for (auto& [key, words] : ordered) {
    std::sort(words.begin(), words.end(), [](auto& a, auto& b) { return a.size() < b.size() + N; });
    for (auto& w : words) rows.emplace_back(key.value, w, N * 0.5);
  }
  std::stable_sort(rows.begin(), rows.end());
  std::variant<int, std::string, Key<N>, std::vector<Key<N>>> v = std::vector<Key<N>>(N % 7 + 1);
  long sum = std::visit(
      [](auto& x) -> long {
        using X = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<X, int>) return x;
        if constexpr (std::is_same_v<X, Key<N>>) return x.value;
        if constexpr (std::is_same_v<X, std::string>) return static_cast<long>(x.size());
        return N;
      },
      v);
  std::function<long(long)> add = [sum](long x) { return x + sum; };
  auto shared = std::make_shared<std::map<std::string, std::function<long(long)>>>();
  (*shared)[text] = add;
  return add(static_cast<long>(rows.size() + hashed.size() + shared->size()));
}

template <int... N>
long all(const std::string& text, std::integer_sequence<int, N...>) {
  return (one<N>(text) + ... + 0);
}

long match(const std::string& text) {
  std::regex words("([a-z]+)[^a-z]*");
  return std::distance(std::sregex_iterator(text.begin(), text.end(), words), {});
}

}  // namespace heavy

#ifndef COPIES
#define COPIES 10
#endif

int main(int argc, char** argv) {
  const std::string text = argc > 1 ? argv[1] : "a few words to sort";
  auto later = std::async([&] { return heavy::match(text); });
  const long sum = heavy::all(text, std::make_integer_sequence<int, COPIES>{});
  std::cout << sum + later.get() << '\n';
}
