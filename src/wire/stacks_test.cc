// SPDX-License-Identifier: Apache-2.0

#include "wire/stacks.h"

#include <gtest/gtest.h>

#include <random>

namespace malloscope::wire {
namespace {

TEST(Stacks, ComeBackAsTheyWereOverSeveralChunks) {
  std::mt19937_64 random(1);
  StackEncoder encoder;
  StackDecoder decoder;
  uint32_t id = 0;
  for (int chunk = 0; chunk < 20; ++chunk) {
    std::vector<StackDefinition> given, back;
    for (int i = 0; i < 500; ++i) {
      StackDefinition d;
      id += 1 + static_cast<uint32_t>(random() % 3);
      d.id = StackId{id};
      d.owner = StackId{static_cast<uint32_t>(random() % id)};
      d.kept = static_cast<uint32_t>(random() % 50);
      d.generation = static_cast<uint32_t>(random() % 3);
      d.flags = static_cast<uint32_t>(random() % 4);
      for (size_t n = random() % 8; n > 0; --n)
        d.fresh.push_back(random() % 16 ? 0x7f00'0000'0000 + random() % 50 * 7 : random());
      encoder.add(raw(d.id), raw(d.owner), d.kept, d.generation, d.flags, d.fresh);
      given.push_back(d);
    }
    std::vector<uint8_t> payload = encoder.finish(ImageId{7});
    Unpacker in(payload);
    EXPECT_EQ(in.number(), 7u);
    ASSERT_TRUE(decoder.decode(in, [&](const StackDefinition& d) {
      back.push_back(d);
      return true;
    }));
    ASSERT_EQ(back.size(), given.size());
    for (size_t i = 0; i < given.size(); ++i) {
      ASSERT_EQ(back[i].id, given[i].id);
      ASSERT_EQ(back[i].owner, given[i].owner);
      ASSERT_EQ(back[i].kept, given[i].kept);
      ASSERT_EQ(back[i].generation, given[i].generation);
      ASSERT_EQ(back[i].flags, given[i].flags);
      ASSERT_EQ(back[i].fresh, given[i].fresh);
    }
  }
}

TEST(Stacks, RefuseAnOwnerThatIsNotOlder) {
  StackEncoder encoder;
  encoder.add(5, 5, 0, 0, 0, {});
  std::vector<uint8_t> payload = encoder.finish(ImageId{1});
  Unpacker in(payload);
  in.number();
  EXPECT_FALSE(StackDecoder().decode(in, [](const StackDefinition&) { return true; }));
}

}  // namespace
}  // namespace malloscope::wire
