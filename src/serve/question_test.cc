// SPDX-License-Identifier: Apache-2.0
#include "serve/question.h"

#include <gtest/gtest.h>

namespace malloscope::serve {
namespace {

using analyze::Metric;

TEST(Question, IsMadeOfTheWordsOfTheAddress) {
  auto question = question_of({{"metric", "allocated"},
                               {"from", "10.5%"},
                               {"to", "20%"},
                               {"hide", "a"},
                               {"hide", "b"},
                               {"thread", "worker"},
                               {"process", "image:3"},
                               {"where", "x or y"},
                               {"min_size", "64"}},
                              {});
  ASSERT_TRUE(question) << question.error().sentence;
  EXPECT_EQ(question->metric, Metric::kAllocated);
  EXPECT_DOUBLE_EQ(question->query.from->share, 0.105);
  EXPECT_EQ(question->query.frames.hide.size(), 2u);
  EXPECT_EQ(question->query.threads.size(), 1u);
  EXPECT_EQ(question->query.selection.image, ImageId{3});
  EXPECT_TRUE(question->query.frames.where);
  EXPECT_EQ(question->query.tally.min_size, 64u);
}

TEST(Question, AsksWhatIsLiveAtAnInstantAndWhatLeakedInARange) {
  auto live = question_of({{"metric", "live"}, {"from", "10%"}, {"to", "20%"}}, {});
  EXPECT_EQ(live->metric, Metric::kLive);
  EXPECT_FALSE(live->query.from);
  auto leaked = question_of({{"metric", "leaked"}, {"from", "10%"}, {"to", "20%"}}, {});
  EXPECT_EQ(leaked->metric, Metric::kLive);
  EXPECT_TRUE(leaked->query.from);
  EXPECT_TRUE(leaked->query.tally.only_made_in_window);
}

TEST(Question, ThatMakesNoSenseIsTheAskersFault) {
  for (const Parameters& wrong :
       {Parameters{{"metric", "sums"}}, Parameters{{"from", "soon"}}, Parameters{{"hide", "("}},
        Parameters{{"where", "(a"}}, Parameters{{"process", "first"}},
        Parameters{{"min_size", "-1"}}, Parameters{{"min_size", "9"}, {"max_size", "3"}}}) {
    auto question = question_of(wrong, {});
    ASSERT_FALSE(question) << wrong.begin()->first;
    EXPECT_TRUE(question.error().usage) << question.error().sentence;
    EXPECT_FALSE(question.error().sentence.empty());
  }
  EXPECT_FALSE(number({{"root", "1x"}}, "root", 0));
  EXPECT_EQ(*number({}, "root", 5), 5u);
}

TEST(Question, IsComparedOnlyIfSomebodyAsks) {
  EXPECT_FALSE(*question_before({{"from", "1%"}}, {}));
  auto before = question_before({{"metric", "live"}, {"to", "90%"}, {"before_to", "30%"}}, {});
  ASSERT_TRUE(before && *before);
  EXPECT_DOUBLE_EQ((*before)->query.to->share, 0.3);
}

}  // namespace
}  // namespace malloscope::serve
