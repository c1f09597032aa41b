// SPDX-License-Identifier: Apache-2.0
// A little shop, made to be looked at with a heap profiler. It sells, mails and
// reports correctly, and still does with memory what real programs do:
//
//     orders::get_values     reserves for the whole catalogue to return a few keys
//     journal::Journal       grows line by line, without ever saying how long it gets
//     mail::render           builds a dozen short-lived strings for each letter
//     mail::check_digit      asks for a buffer each time and throws it away at once
//     cache::Sessions        forgets to drop the sessions of one phase: a leak
//
// `malloscope run` should name each of them without being asked.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "malloscope.h"

namespace catalogue {

struct Article {
  std::string name;
  std::string description;
  double price = 0;
};
using Catalogue = std::map<uint64_t, Article>;

Catalogue load(int count) {
  Catalogue catalogue;
  for (int i = 0; i < count; ++i)
    catalogue[i] = {"article " + std::to_string(i), std::string(80 + i % 60, 'd'), i * 0.25};
  return catalogue;
}

}  // namespace catalogue

namespace orders {

// The mistake: `reserve` means the keys, and says the map.
std::vector<catalogue::Article> get_values(const catalogue::Catalogue& map,
                                           const std::vector<uint64_t>& keys) {
  std::vector<catalogue::Article> values;
  values.reserve(map.size());
  for (uint64_t key : keys)
    if (auto it = map.find(key); it != map.end()) values.push_back(it->second);
  return values;
}

double total(const std::vector<catalogue::Article>& articles) {
  double sum = 0;
  for (const auto& a : articles) sum += a.price;
  return sum;
}

}  // namespace orders

namespace journal {

struct Line {
  uint64_t order;
  double amount;
};

// Appends for ever: the vector doubles, copies, and doubles again.
class Journal {
 public:
  void append(uint64_t order, double amount) {
    std::lock_guard hold(lock_);
    lines_.push_back({order, amount});
  }
  size_t size() const { return lines_.size(); }

 private:
  std::mutex lock_;
  std::vector<Line> lines_;
};

}  // namespace journal

namespace mail {

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

// One letter, and a dozen strings that die before the next line.
size_t render(uint64_t order, const std::vector<catalogue::Article>& articles) {
  std::string letter = "Dear customer of order number " + std::to_string(order) + ",\n";
  for (const auto& a : articles)
    letter += "  we send you " + quoted(a.name) + " for " + std::to_string(a.price) + " coins\n";
  return letter.size();
}

// A number is spelled out only to add up its digits.
int check_digit(uint64_t number) {
  std::string digits(32, '0');
  for (size_t i = digits.size(); number > 0; number /= 10) digits[--i] += number % 10;
  int sum = 0;
  for (char d : digits) sum += d - '0';
  return sum % 10;
}

}  // namespace mail

namespace cache {

struct Session {
  std::vector<char> state = std::vector<char>(2000);
};

// Keeps what it is given; `forget` is called in every phase but one.
class Sessions {
 public:
  void open(uint64_t customer) {
    std::lock_guard hold(lock_);
    sessions_[customer] = std::make_unique<Session>();
  }
  void forget() {
    std::lock_guard hold(lock_);
    sessions_.clear();
  }

 private:
  std::mutex lock_;
  std::unordered_map<uint64_t, std::unique_ptr<Session>> sessions_;
};

}  // namespace cache

namespace {

struct Shop {
  catalogue::Catalogue articles = catalogue::load(20'000);
  journal::Journal journal;
  cache::Sessions* sessions = new cache::Sessions;  // Never deleted: that is the leak.
};

void sell(Shop& shop, int clerk, int orders) {
  std::mt19937 random(clerk);
  size_t letters = 0;
  for (int i = 0; i < orders; ++i) {
    const uint64_t order = clerk * 1'000'000ull + i;
    std::vector<uint64_t> keys;
    for (unsigned k = 0; k < 2 + random() % 5; ++k) keys.push_back(random() % shop.articles.size());
    const auto articles = orders::get_values(shop.articles, keys);
    letters += mail::render(order, articles);
    for (const auto& a : articles) shop.journal.append(order, a.price);
    for (int page = 0; page < 12; ++page) letters += mail::check_digit(order * 12 + page) / 10;
    if (i % 32 == 0) shop.sessions->open(order);
    if (orders::total(articles) < 0) return;
  }
  std::printf("  clerk %d wrote %zu KiB of letters\n", clerk, letters / 1024);
}

void day(Shop& shop, const char* name, int clerks, int orders) {
  malloscope::Phase phase(name);
  std::printf("%s: %d clerks, %d orders each\n", name, clerks, orders);
  std::vector<std::thread> threads;
  for (int c = 1; c <= clerks; ++c) threads.emplace_back(sell, std::ref(shop), c, orders);
  for (auto& t : threads) t.join();
}

}  // namespace

int main() {
  const auto began = std::chrono::steady_clock::now();
  std::printf("The shop opens.\n");
  malloscope_phase_begin("Opening");
  Shop shop;
  malloscope_phase_end("Opening");
  day(shop, "Morning", 2, 60'000);
  shop.sessions->forget();
  malloscope_mark("sessions forgotten");
  day(shop, "Afternoon", 4, 60'000);  // Nobody forgets these sessions.
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::steady_clock::now() - began);
  std::printf("The shop closes after %lld ms with %zu lines in its journal.\n",
              static_cast<long long>(ms.count()), shop.journal.size());
}
