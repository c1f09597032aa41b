// SPDX-License-Identifier: Apache-2.0
// Names as demanglers print them, most of them taken from symbol tables.

#include "symbols/name_rules.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace malloscope::symbols {
namespace {

constexpr std::string_view kString =
    "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";

struct Case {
  const char* function;
  const char* own_name;
  bool plumbing;
};

// {S} stands for the full name of std::string.
const Case kCases[] = {
    // C, and what the allocator exports.
    {"main", "main", false},
    {"malloc", "malloc", true},
    {"malloc@plt", "malloc@plt", true},
    {"calloc", "calloc", true},
    {"posix_memalign", "posix_memalign", true},
    {"_int_malloc", "_int_malloc", true},
    {"__libc_malloc", "__libc_malloc", true},
    {"strdup", "strdup", true},
    {"__strdup", "__strdup", true},
    {"vasprintf", "vasprintf", true},
    {"je_malloc", "je_malloc", true},
    {"mi_malloc", "mi_malloc", true},
    {"__cxa_allocate_exception", "__cxa_allocate_exception", true},
    {"xmalloc", "xmalloc", false},
    {"malloc_node", "malloc_node", false},
    {"my_strdup", "my_strdup", false},
    {"mi_parse", "mi_parse", false},
    {"je_ne_sais_quoi", "je_ne_sais_quoi", false},
    {"libfoo.so+0x1234", "libfoo.so+0x1234", false},
    // operator new and its namesakes.
    {"operator new(unsigned long)", "operator new", true},
    {"operator new[](unsigned long, std::align_val_t)", "operator new[]", true},
    {"operator delete(void*, unsigned long)", "operator delete", true},
    {"Arena::operator new(unsigned long)", "Arena::operator new", false},
    // The standard library, with and without return types.
    {"void std::vector<int, std::allocator<int> >::_M_realloc_insert<int "
     "const&>(__gnu_cxx::__normal_iterator<int*, std::vector<int, std::allocator<int> > >, int "
     "const&)",
     "std::vector<int, std::allocator<int> >::_M_realloc_insert<int const&>", true},
    {"std::vector<Foo, std::allocator<Foo> >::push_back(Foo const&)",
     "std::vector<Foo, std::allocator<Foo> >::push_back", true},
    {"{S}::_M_create(unsigned long&, unsigned long)", "{S}::_M_create", true},
    {"__gnu_cxx::new_allocator<int>::allocate(unsigned long, void const*)",
     "__gnu_cxx::new_allocator<int>::allocate", true},
    {"std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> "
     ">::__grow_by(unsigned long, unsigned long)",
     "std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> "
     ">::__grow_by",
     true},
    {"std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::{lambda()#1}> > >::_M_run()",
     "std::thread::_State_impl<std::thread::_Invoker<std::tuple<main::{lambda()#1}> > >::_M_run",
     true},
    {"std::_Function_handler<void (int), main::{lambda(int)#1}>::_M_invoke(std::_Any_data const&, "
     "int&&)",
     "std::_Function_handler<void (int), main::{lambda(int)#1}>::_M_invoke", true},
    {"std::enable_if<is_invocable_r_v<void, run()::{lambda()#2}&>, void>::type "
     "std::__invoke_r<void, run()::{lambda()#2}&>(run()::{lambda()#2}&)",
     "std::__invoke_r<void, run()::{lambda()#2}&>", true},
    {"std::hash<My>::operator()(My const&) const", "std::hash<My>::operator()", true},
    {"std::basic_ostream<char, std::char_traits<char> >& std::operator<< "
     "<std::char_traits<char> >(std::basic_ostream<char, std::char_traits<char> >&, char const*)",
     "std::operator<< <std::char_traits<char> >", true},
    {"bool std::operator< <char>(char const&, char const&)", "std::operator< <char>", true},
    {"decltype(auto) std::__detail::__variant::__raw_visit<A>(A&&)",
     "std::__detail::__variant::__raw_visit<A>", true},
    {"decltype (({parm#1}.begin)()) std::begin<V>(V&)", "std::begin<V>", true},
    {"std::__throw_bad_alloc()", "std::__throw_bad_alloc", true},
    {"non-virtual thunk to std::basic_iostream<char, std::char_traits<char> >::~basic_iostream()",
     "std::basic_iostream<char, std::char_traits<char> >::~basic_iostream", true},
    {"std::__cxx11::to_string[abi:cxx11](int)", "std::__cxx11::to_string[abi:cxx11]", true},
    // The user's own, however standard they look.
    {"std::vector<Foo, std::allocator<Foo> > getValues<Foo>(std::map<int, Foo, std::less<int>, "
     "std::allocator<std::pair<int const, Foo> > > const&)",
     "getValues<Foo>", false},
    {"std::unique_ptr<X, std::default_delete<X> > make<X>({S})", "make<X>", false},
    {"MyType foo<std::vector<int, std::allocator<int> > >({S})",
     "foo<std::vector<int, std::allocator<int> > >", false},
    {"read_all({S} const&)", "read_all", false},
    {"ns::describe[abi:cxx11](ns::Shape const&)", "ns::describe[abi:cxx11]", false},
    {"main::{lambda()#1}::operator()() const", "main::{lambda()#1}::operator()", false},
    {"auto main::{lambda(auto:1)#1}::operator()<std::vector<int, std::allocator<int> > "
     ">(std::vector<int, std::allocator<int> >) const",
     "main::{lambda(auto:1)#1}::operator()<std::vector<int, std::allocator<int> > >", false},
    {"ns::Walker::run(std::function<void (int)>) const::{lambda(int)#2}::operator()(int) const",
     "ns::Walker::run(std::function<void (int)>) const::{lambda(int)#2}::operator()", false},
    {"build(int)::Local::grow()", "build(int)::Local::grow", false},
    {"(anonymous namespace)::note({S} const&, unsigned long)", "(anonymous namespace)::note",
     false},
    {"std::optional<(anonymous namespace)::Item> (anonymous namespace)::find<char>(char)",
     "(anonymous namespace)::find<char>", false},
    {"void (*pick<int>(char))(int)", "pick<int>", false},
    {"decltype(auto) visit<std::variant<int> >(std::variant<int>&)", "visit<std::variant<int> >",
     false},
    {"decltype ((static_cast<std::string&>({parm#1}))) pass<std::string>(std::string&)",
     "pass<std::string>", false},
    {"Text::operator {S}() const", "Text::operator {S}", false},
    {"Text::operator char const*() const", "Text::operator char const*", false},
    {"Text::operator std::vector<char, std::allocator<char> >() const",
     "Text::operator std::vector<char, std::allocator<char> >", false},
    {"Key::operator<(Key const&) const", "Key::operator<", false},
    {"Key::operator<=>(Key const&) const", "Key::operator<=>", false},
    {"Key::operator->() const", "Key::operator->", false},
    {"Table::operator[](std::vector<int> const&)", "Table::operator[]", false},
    {"std::vector<int> operator+ <int>(std::vector<int> const&, int)", "operator+ <int>", false},
    {"ns::operator\"\" _kb(unsigned long long)", "ns::operator\"\" _kb", false},
    {"Call<&(Key::operator<(Key const&) const)>::run()",
     "Call<&(Key::operator<(Key const&) const)>::run", false},
    {"Call<&Key::operator<(Key const&) const>::run()",  // As LLVM prints it.
     "Call<&Key::operator<(Key const&) const>::run", false},
    {"Wide<(3>2)>::fill(std::vector<int>)", "Wide<(3>2)>::fill", false},
    {"stdx::pool::grow(unsigned long)", "stdx::pool::grow", false},
    {"my::std::pool::grow()", "my::std::pool::grow", false},
    {"boost::container::vector<int>::push_back(int)", "boost::container::vector<int>::push_back",
     false},
    {"checksum(int) [clone .avx2]", "checksum", false},
};

std::string full(const char* text) {
  std::string result = text;
  for (size_t at; (at = result.find("{S}")) != result.npos;) result.replace(at, 3, kString);
  return result;
}

TEST(QualifiedName, IsTheFunctionsOwn) {
  for (const Case& c : kCases)
    EXPECT_EQ(qualified_name(full(c.function)), full(c.own_name)) << full(c.function);
}

TEST(Plumbing, IsDecidedByTheFunctionsOwnName) {
  for (const Case& c : kCases)
    EXPECT_EQ(is_plumbing(full(c.function), "/home/me/bin/app"), c.plumbing) << full(c.function);
}

TEST(Plumbing, IsAllOfTheLibrariesBetweenAProgramAndItsMemory) {
  for (const char* module :
       {"/lib/x86_64-linux-gnu/libc.so.6", "/lib/libc-2.31.so", "/lib64/ld-linux-x86-64.so.2",
        "/lib/ld-musl-x86_64.so.1", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
        "/usr/lib/llvm-19/lib/libc++.so.1.0", "/usr/lib/libc++abi.so.1",
        "/usr/lib/libjemalloc.so.2", "/usr/lib/libtcmalloc_minimal.so.4",
        "/usr/lib/libmimalloc.so.2.0", "/tmp/mscope.x/libmalloscope.so", "libc.so.6",
        "/lib/x86_64-linux-gnu/libgcc_s.so.1"}) {
    EXPECT_TRUE(is_plumbing("getdelim", module)) << module;
    EXPECT_TRUE(is_plumbing("anything+0x12", module)) << module;
  }
  for (const char* module :
       {"/usr/lib/libcurl.so.4", "/usr/lib/libcrypto.so.3", "/home/me/libc.so.6/app", "/usr/bin/ld",
        "/usr/lib/libclang.so", "[vdso]", ""})
    EXPECT_FALSE(is_plumbing("getdelim", module)) << module;
}

TEST(QualifiedName, IsSomethingForAnyText) {
  for (std::string_view name : {"",
                                "(",
                                ")",
                                "<",
                                ">",
                                "((((",
                                "a<b",
                                "operator",
                                "operator<",
                                "operator ",
                                "{",
                                "[",
                                " ",
                                "f(",
                                "void (*)(int)",
                                "a::",
                                "()",
                                "(anonymous namespace)",
                                "decltype(",
                                "operator\"\"",
                                "x ()",
                                "void ()",
                                "void (*",
                                "(*)",
                                "f() const::",
                                "f()::"}) {
    std::string_view own = qualified_name(name);
    EXPECT_EQ(own.empty(), name.empty()) << name;
    is_plumbing(name, name);
  }
}

TEST(Plumbing, IsDecidedForAHundredThousandLongNames) {
  std::string name = full("std::map<int, {S}> ns::Table<{S}, int>::collect<{S}>({S} const&, {S})");
  size_t count = 0;
  for (int i = 0; i < 100'000; ++i) count += is_plumbing(name, "/home/me/bin/app");
  EXPECT_EQ(count, 0u);
}

}  // namespace
}  // namespace malloscope::symbols
