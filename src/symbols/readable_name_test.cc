// SPDX-License-Identifier: Apache-2.0
// Names from symbol tables, and what a person would call them.

#include "symbols/readable_name.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "symbols/name_rules.h"

namespace malloscope::symbols {
namespace {

constexpr std::string_view kString =
    "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";

std::string full(std::string text) {  // {S} stands for the full name of std::string.
  for (size_t at; (at = text.find("{S}")) != text.npos;) text.replace(at, 3, kString);
  return text;
}

struct Case {
  const char* function;
  const char* simple;
  const char* shown;
};

const Case kCases[] = {
    {"main", "main", "main"},
    {"malloc@plt", "malloc@plt", "malloc@plt"},
    {"libfoo.so+0x1234", "libfoo.so+0x1234", "libfoo.so+0x1234"},
    {"ns::parse(int, char const*)", "ns::parse(int, char const*)", "ns::parse"},
    {"read_all({S} const&)", "read_all(std::string const&)", "read_all"},
    {"std::vector<int, std::allocator<int> >::push_back(int const&)",
     "std::vector<int>::push_back(int const&)", "std::vector<int>::push_back"},
    {"std::vector<{S}, std::allocator<{S} > >::reserve(unsigned long)",
     "std::vector<std::string>::reserve(unsigned long)", "std::vector<std::string>::reserve"},
    {"std::map<int, {S}, std::less<int>, std::allocator<std::pair<int const, {S} > > "
     ">::operator[](int&&)",
     "std::map<int, std::string>::operator[](int&&)", "std::map<int, std::string>::operator[]"},
    {"std::map<int, char, std::greater<int>, std::allocator<std::pair<int const, char> > "
     ">::at(int)",
     "std::map<int, char, std::greater<int>>::at(int)",
     "std::map<int, char, std::greater<int>>::at"},
    {"std::unordered_map<{S}, A*, std::hash<{S} >, std::equal_to<{S} >, "
     "std::allocator<std::pair<{S} const, A*> > >::clear()",
     "std::unordered_map<std::string, A*>::clear()", "std::unordered_map<std::string, A*>::clear"},
    {"std::unordered_map<int, int, MyHash, std::equal_to<int>, std::allocator<std::pair<int const, "
     "int> > >::clear()",
     "std::unordered_map<int, int, MyHash>::clear()",
     "std::unordered_map<int, int, MyHash>::clear"},
    {"std::vector<int, my::Arena<int> >::resize(unsigned long)",
     "std::vector<int, my::Arena<int>>::resize(unsigned long)",
     "std::vector<int, my::Arena<int>>::resize"},
    {"std::vector<int, std::allocator<char> >::f()", "std::vector<int, std::allocator<char>>::f()",
     "std::vector<int, std::allocator<char>>::f"},
    {"std::unique_ptr<X, std::default_delete<X> > make<X>({S})",
     "std::unique_ptr<X> make<X>(std::string)", "make<X>"},
    {"std::__1::vector<int, std::__1::allocator<int> >::push_back(int&&)",
     "std::vector<int>::push_back(int&&)", "std::vector<int>::push_back"},
    {"std::set<long, std::less<long>, std::allocator<long> >::insert(long const&)",
     "std::set<long>::insert(long const&)", "std::set<long>::insert"},
    {"std::basic_ostream<char, std::char_traits<char> >& std::operator<< "
     "<std::char_traits<char> >(std::basic_ostream<char, std::char_traits<char> >&, char const*)",
     "std::ostream& std::operator<< <std::char_traits<char>>(std::ostream&, char const*)",
     "std::operator<< <std::char_traits<char>>"},
    {"f(std::basic_string<wchar_t, std::char_traits<wchar_t>, std::allocator<wchar_t> >)",
     "f(std::wstring)", "f"},
    {"use(std::basic_string_view<char, std::char_traits<char> >)", "use(std::string_view)", "use"},
    {"main::{lambda(int)#1}::operator()(int) const", "main::lambda#1(int) const", "main::lambda#1"},
    {"auto main::{lambda(auto:1)#2}::operator()<std::vector<int, std::allocator<int> > "
     ">(std::vector<int, std::allocator<int> >) const",
     "auto main::lambda#2<std::vector<int>>(std::vector<int>) const",
     "main::lambda#2<std::vector<int>>"},
    {"ns::Walker::run(std::function<void (int)>) const::{lambda(int)#2}::operator()(int) const",
     "ns::Walker::run(std::function<void (int)>) const::lambda#2(int) const",
     "ns::Walker::run::lambda#2"},
    {"main::$_0::operator()(int) const", "main::lambda#1(int) const", "main::lambda#1"},
    {"std::hash<My>::operator()(My const&) const", "std::hash<My>::operator()(My const&) const",
     "std::hash<My>::operator()"},
    {"build(int)::Local::grow()", "build(int)::Local::grow()", "build::Local::grow"},
    {"std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::{lambda()#1}> > >::_M_run()",
     "std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::lambda#1>>>::_M_run()",
     "std::thread::_State_impl<std::thread::_Invoker<...>>::_M_run"},
    {"(anonymous namespace)::note({S} const&, unsigned long)",
     "(anon)::note(std::string const&, unsigned long)", "(anon)::note"},
    {"std::optional<(anonymous namespace)::Item> (anonymous namespace)::find<char>(char)",
     "std::optional<(anon)::Item> (anon)::find<char>(char)", "(anon)::find<char>"},
    {"std::__cxx11::to_string[abi:cxx11](int)", "std::to_string(int)", "std::to_string"},
    {"ns::describe[abi:cxx11](ns::Shape const&)", "ns::describe(ns::Shape const&)", "ns::describe"},
    {"checksum(int) [clone .avx2]", "checksum(int) [clone .avx2]", "checksum"},
    {"Text::operator {S}() const", "Text::operator std::string() const",
     "Text::operator std::string"},
    {"Key::operator<(Key const&) const", "Key::operator<(Key const&) const", "Key::operator<"},
    {"Key::operator->() const", "Key::operator->() const", "Key::operator->"},
    {"Key::operator()(int)", "Key::operator()(int)", "Key::operator()"},
    {"Wide<(3>2)>::fill(int)", "Wide<(3>2)>::fill(int)", "Wide<(3>2)>::fill"},
    {"std::enable_if<(sizeof (A))<(8), void>::type pick<A>(A)",
     "std::enable_if<(sizeof (A))<(8), void>::type pick<A>(A)", "pick<A>"},
    {"void (*pick<int>(char))(int)", "void (*pick<int>(char))(int)", "pick<int>"},
    {"non-virtual thunk to A::f()", "non-virtual thunk to A::f()", "A::f"},
    {"fmt::v9::format[abi:cxx11](fmt::v9::basic_string_view<char>)",
     "fmt::format(fmt::basic_string_view<char>)", "fmt::format"},
    {"std::_Rb_tree<int, std::pair<int const, A>, std::_Select1st<std::pair<int const, A> >, "
     "std::less<int>, std::allocator<std::pair<int const, A> > >::_M_insert_(int)",
     "std::_Rb_tree<int, std::pair<int const, A>>::_M_insert_(int)",
     "std::_Rb_tree<int, std::pair<int const, A>>::_M_insert_"},
    {"alloc::raw_vec::RawVec<T,A>::grow::h0123456789abcdef", "alloc::raw_vec::RawVec<T, A>::grow",
     "alloc::raw_vec::RawVec<T, A>::grow"},
};

TEST(Simplified, IsWhatAPersonWouldWrite) {
  for (const Case& c : kCases) EXPECT_EQ(simplified(full(c.function)), c.simple) << c.function;
}

TEST(ShortName, IsTheFunctionsOwn) {
  for (const Case& c : kCases) EXPECT_EQ(short_name(full(c.function)), c.shown) << c.function;
}

TEST(Simplified, ChangesNothingTheSecondTime) {
  for (const Case& c : kCases) EXPECT_EQ(simplified(c.simple), c.simple);
}

TEST(Simplified, IsStillTheSameKindOfFunction) {
  for (const Case& c : kCases) {
    std::string name = full(c.function);
    EXPECT_EQ(is_plumbing(name, ""), is_plumbing(simplified(name), "")) << name;
  }
}

TEST(ShortName, LeavesOutInnerArgumentsFirst) {
  std::string name = "ns::Table<ns::Key<unsigned long>, ns::Value<char> >::insert<int>(int)";
  EXPECT_EQ(short_name(name, 70),
            "ns::Table<ns::Key<unsigned long>, ns::Value<char>>::insert<int>");
  EXPECT_EQ(short_name(name, 60), "ns::Table<ns::Key<...>, ns::Value<...>>::insert<int>");
  EXPECT_EQ(short_name(name, 3), "ns::Table<...>::insert<...>");
}

TEST(FittedName, KeepsTheEndOfTheName) {
  std::string name = "clang::driver::Compilation<ns::Key<unsigned int>>::ExecuteCommand";
  EXPECT_EQ(fitted_name(name, 80), name);
  EXPECT_EQ(fitted_name(name, 60), "clang::driver::Compilation<ns::Key<...>>::ExecuteCommand");
  EXPECT_EQ(fitted_name(name, 54), "clang::driver::Compilation<...>::ExecuteCommand");
  EXPECT_EQ(fitted_name(name, 40), "...Compilation<...>::ExecuteCommand");
  EXPECT_EQ(fitted_name(name, 5), "...ExecuteCommand");
  EXPECT_EQ(fitted_name("a_plain_c_function", 5), "a_plain_c_function");
  EXPECT_EQ(fitted_name("(anon)::Shop::sell(std::string, int)", 5), "...sell(std::string, int)");
  EXPECT_EQ(fitted_name("ns::A::operator()", 5), "...operator()");
}

TEST(ShortNames, GetBackWhatTellsThemApart) {
  std::vector<std::string_view> functions = {
      "f(int)",
      "g(int)",
      "f(char) const",
      "ns::A<ns::B<int>, ns::CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC>::run()",
      "ns::A<ns::B<char>, ns::CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC>::run()",
      "A::go()",
      "non-virtual thunk to A::go()",
      "std::vector<int, std::allocator<int> >::size() const",
      "std::__1::vector<int, std::__1::allocator<int> >::size() const",
      "main::{lambda(int)#1}::operator()(int) const",
      "main::{lambda(char)#1}::operator()(char) const",
      "f(int)",
  };
  std::vector<std::string> shown = short_names(functions);
  std::vector<std::string> wanted = {
      "f(int)",
      "g",
      "f(char) const",
      "ns::A<ns::B<int>, ns::CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC>::run",
      "ns::A<ns::B<char>, ns::CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC>::run",
      "A::go()",
      "non-virtual thunk to A::go()",
      "std::vector<int, std::allocator<int> >::size() const",
      "std::__1::vector<int, std::__1::allocator<int> >::size() const",
      "main::lambda#1(int) const",
      "main::lambda#1(char) const",
      "f(int)",
  };
  EXPECT_EQ(shown, wanted);
}

// Random text of the pieces that names are made of: different names never look the same.
TEST(ShortNames, AreNeverEqualForDifferentFunctions) {
  std::mt19937 random(7);
  constexpr const char* kPieces[] = {"std::",
                                     "vector",
                                     "<",
                                     ">",
                                     "int",
                                     ", ",
                                     "(",
                                     ")",
                                     " const",
                                     "::",
                                     "f",
                                     "operator",
                                     "{lambda()#1}",
                                     "[abi:x]",
                                     "a",
                                     " ",
                                     "std::allocator<int>"};
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> texts;
    for (int i = 0; i < 60; ++i) {
      std::string text;
      for (auto n = 1 + random() % 8; n > 0; --n) text += kPieces[random() % std::size(kPieces)];
      texts.push_back(text);
    }
    std::vector<std::string> shown = short_names({texts.begin(), texts.end()}, 10);
    for (size_t i = 0; i < texts.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        ASSERT_TRUE((texts[i] == texts[j]) || shown[i] != shown[j]) << texts[i] << "\n" << texts[j];
  }
}

TEST(Simplified, TakesLinearTime) {
  auto repeated = [](std::string_view piece, size_t bytes) {
    std::string text;
    while (text.size() < bytes) text += piece;
    return text;
  };
  std::string nested = "int";
  while (nested.size() < 40'000)
    nested = fmt::format("std::vector<{0}, std::allocator<{0} > >", nested);
  // Were it quadratic, the test would not end before ctest's patience does.
  for (std::string_view piece : {"a<",
                                 "(",
                                 "(*",
                                 "{",
                                 "{lambda(",
                                 "[",
                                 "()[",
                                 "operator<",
                                 "operator a<",
                                 "std::vector<a, ",
                                 "a<(",
                                 "<",
                                 ">",
                                 "f()::",
                                 "f() const",
                                 "(anonymous namespace)::",
                                 "a<b>::",
                                 "->",
                                 " ",
                                 "std::basic_string<char",
                                 "$_1::operator()",
                                 "operator",
                                 "decltype(",
                                 "[abi:"}) {
    std::string text = repeated(piece, 120'000);
    EXPECT_FALSE(short_name(text, 0).empty() && short_name(text, 0) != text);
    short_names({text, "x", std::string_view(text).substr(1)}, 20);
  }
  EXPECT_EQ(simplified("f(" + nested + ")").find("allocator"), std::string::npos);
}

TEST(ShortName, OfAnyTextIsSomething) {
  for (std::string_view name : {"(",
                                ")",
                                "<",
                                ">",
                                "((((",
                                "a<b",
                                "operator",
                                "operator<",
                                "{",
                                "[",
                                " ",
                                "f(",
                                "a::",
                                "()",
                                "(anonymous namespace)",
                                "std::vector<",
                                "std::vector<>",
                                "std::map<a, std::less<a>>",
                                "std::basic_string<>",
                                "{lambda()#}",
                                "{lambda()#1",
                                "f()::",
                                "$_99999999999999",
                                "\xff\x01",
                                "std::__cxx11::",
                                "std::queue<>",
                                "std::map<int>"}) {
    EXPECT_FALSE(short_names({name}, 0)[0].empty()) << name;
    simplified(name);
  }
}

}  // namespace
}  // namespace malloscope::symbols
