// SPDX-License-Identifier: Apache-2.0
#include "symbols/type_clue.h"

#include <gtest/gtest.h>

namespace malloscope::symbols {
namespace {

TEST(AllocatedType, IsWhatTheAllocatorsNameSays) {
  EXPECT_EQ(allocated_type({"malloc", "operator new(unsigned long)",
                            "std::__new_allocator<ns::A>::allocate(unsigned long, void const*)"}),
            "ns::A");
  EXPECT_EQ(allocated_type({"__gnu_cxx::new_allocator<std::_Rb_tree_node<std::pair<int const, B> > "
                            ">::allocate(unsigned long, void const*)"}),
            "std::pair<int const, B> (tree node)");
  EXPECT_EQ(allocated_type({"std::allocator<std::__detail::_Hash_node_base*>::allocate(int)"}),
            "(hash buckets)");
}

TEST(AllocatedType, IsAnArrayInAVector) {
  EXPECT_EQ(
      allocated_type({"std::__new_allocator<int>::allocate(unsigned long, void const*)",
                      "void std::vector<int, std::allocator<int> >::_M_realloc_insert<int>(int*)"}),
      "int[]");
  EXPECT_EQ(allocated_type({"std::__cxx11::basic_string<char, std::char_traits<char>, "
                            "std::allocator<char> >::_M_create(unsigned long&, unsigned long)"}),
            "std::string");
}

TEST(AllocatedType, IsTheContainersWhereCodeIsShared) {
  EXPECT_EQ(allocated_type({"std::__new_allocator<std::thread>::allocate(unsigned long)",
                            "std::_Vector_base<std::thread, std::allocator<std::thread> "
                            ">::_M_allocate(unsigned long)",
                            "std::vector<long, std::allocator<long> >::push_back(long&&)"}),
            "long[]");
  EXPECT_EQ(allocated_type({"std::__new_allocator<std::_List_node<A> >::allocate(unsigned long)",
                            "std::vector<B, std::allocator<B> >::push_back(B&&)"}),
            "A (list node)");
}

TEST(AllocatedType, IsWhatWasMade) {
  EXPECT_EQ(allocated_type({"operator new(unsigned long)",
                            "std::unique_ptr<A<int, char>, std::default_delete<A<int, char> > > "
                            "std::make_unique<A<int, char>, int>(int&&)"}),
            "A<int, char>");
  EXPECT_EQ(allocated_type({"llvm::User::operator new(unsigned long, unsigned int)"}),
            "llvm::User");
}

TEST(AllocatedType, IsNoElementIfAnElementAsksForIt) {
  EXPECT_EQ(
      allocated_type(
          {"operator new(unsigned long)",
           "std::thread::thread<void (&)(std::vector<int, std::allocator<int> >), , void>(void "
           "(&)(std::vector<int, std::allocator<int> >))",
           "void std::__new_allocator<std::thread>::construct<std::thread, void "
           "(&)()>(std::thread*, void (&)())",
           "std::vector<std::thread, std::allocator<std::thread> >::emplace_back<void "
           "(&)()>(void (&)())"}),
      "");
  EXPECT_EQ(allocated_type({"malloc", "operator new[](unsigned long)", "Buffer::Buffer(int)",
                            "std::vector<Buffer, std::allocator<Buffer> >::push_back(Buffer&&)"}),
            "");
  EXPECT_EQ(allocated_type({"malloc", "xmalloc", "Pool<long>::allocate(unsigned long)",
                            "std::_Vector_base<long, Pool<long> >::_M_allocate(unsigned long)",
                            "std::vector<long, Pool<long> >::push_back(long const&)"}),
            "long[]");
}

TEST(AllocatedType, IsNotGuessed) {
  EXPECT_EQ(allocated_type({}), "");
  EXPECT_EQ(allocated_type({"malloc", "operator new(unsigned long)", "main"}), "");
  EXPECT_EQ(allocated_type({"std::vector<", "std::allocator<>::x", "\xff<"}), "");
}

}  // namespace
}  // namespace malloscope::symbols
