// SPDX-License-Identifier: Apache-2.0
// Read from left to right by one function for each kind of joint; what it means is
// written down as a list of steps, each for the truths that the steps before it left.

#include "analyze/stack_text.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace malloscope::analyze {

class StackTextParser {
 public:
  StackTextParser(std::string_view text, std::string_view option) : text_(text), option_(option) {}

  Result<StackText> parse() {
    either();
    if (!error_) {
      skip_blanks();
      if (at_ < text_.size()) say("a ')' has no '('");
    }
    if (error_) return std::unexpected(*error_);
    return std::move(result_);
  }

 private:
  using Step = StackText::Step;
  static constexpr int kDeepest = 200;  // Brackets in brackets.

  void either() {
    all();
    while (!error_ && (take_word("or") || take('|'))) {
      all();
      add(Step::What::kOr);
    }
  }

  void all() {
    one();
    while (!error_) {
      bool joined = take_word("and") || take('&');
      skip_blanks();
      if (!joined &&
          (at_ == text_.size() || text_[at_] == ')' || text_[at_] == '|' || is_word("or")))
        return;
      one();
      add(Step::What::kAnd);
    }
  }

  void one() {
    if (error_) return;
    if (++depth_ > kDeepest) return say("there are too many brackets in brackets");
    if (take_word("not") || take('!') || take_minus()) {
      one();
      add(Step::What::kNot);
    } else if (take('(')) {
      either();
      if (!error_ && !take(')')) say("a '(' has no ')'");
    } else if (take('/')) {
      if (auto pattern = up_to('/')) add_word(*pattern);
    } else if (take('"')) {
      if (auto words = up_to('"')) add_plain(*words);
    } else {
      add_plain(plain());
    }
    --depth_;
  }

  // A word ends with a blank, or with a bracket that was not opened in it: "f(int)" is one.
  std::string plain() {
    skip_blanks();
    std::string word;
    int open = 0;
    for (; at_ < text_.size() && !is_blank(text_[at_]); ++at_) {
      if (text_[at_] == '(') ++open;
      if (text_[at_] == ')' && open-- == 0) break;
      word += text_[at_];
    }
    return word;
  }

  // What is before `end`; a backslash makes it part of that.
  std::optional<std::string> up_to(char end) {
    std::string found;
    for (; at_ < text_.size() && text_[at_] != end; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] == end) ++at_;
      found += text_[at_];
    }
    if (at_ == text_.size()) {
      say(fmt::format("a {} is missing at the end", end));
      return std::nullopt;
    }
    ++at_;
    return found;
  }

  void add_plain(const std::string& word) {
    if (error_) return;
    if (word.empty()) return say("a word is missing");
    bool any_case = std::none_of(word.begin(), word.end(),
                                 [](unsigned char c) { return std::isupper(c) != 0; });
    add_word((any_case ? "(?i)" : "") + re2::RE2::QuoteMeta(word));
  }

  void add_word(const std::string& pattern) {
    if (result_.words_.size() == StackText::kMostWords)
      return say(fmt::format("there are more than {} words", StackText::kMostWords));
    Result<Pattern> made = Pattern::make(pattern, option_);
    if (!made) {
      error_ = made.error();
      return;
    }
    add(Step::What::kWord, result_.words_.size());
    result_.words_.push_back(std::move(*made));
  }

  void add(Step::What what, size_t word = 0) {
    result_.steps_.push_back({what, static_cast<uint8_t>(word)});
  }

  void say(const std::string& what) {
    if (!error_) error_ = Error{fmt::format("{} '{}': {}", option_, text_, what), true};
  }

  static bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  bool take(char c) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take_minus() {
    return at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != '>' &&
           !is_blank(text_[at_ + 1]) && take('-');
  }
  bool is_word(std::string_view word) {
    skip_blanks();
    size_t end = at_ + word.size();
    if (end > text_.size() || (end < text_.size() && !is_blank(text_[end]) && text_[end] != '('))
      return false;
    return std::equal(
        word.begin(), word.end(), text_.begin() + static_cast<ptrdiff_t>(at_),
        [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
  }
  bool take_word(std::string_view word) {
    if (!is_word(word)) return false;
    at_ += word.size();
    return true;
  }

  std::string_view text_, option_;
  size_t at_ = 0;
  int depth_ = 0;
  std::optional<Error> error_;
  StackText result_;
};

Result<StackText> StackText::parse(std::string_view text, std::string_view option) {
  return StackTextParser(text, option).parse();
}

uint64_t StackText::words_in(std::string_view function) const {
  uint64_t found = 0;
  for (size_t i = 0; i < words_.size(); ++i)
    if (words_[i].matches(function)) found |= uint64_t{1} << i;
  return found;
}

bool StackText::holds(uint64_t words) const {
  // A word's truth comes on top, a joint takes those it joins: there are never more than words.
  bool truths[kMostWords + 1] = {};
  size_t count = 0;
  for (Step step : steps_) {
    switch (step.what) {
      case Step::What::kWord:
        truths[count++] = words >> step.word & 1;
        break;
      case Step::What::kNot:
        truths[count - 1] = !truths[count - 1];
        break;
      case Step::What::kAnd:
        --count;
        truths[count - 1] = truths[count - 1] && truths[count];
        break;
      case Step::What::kOr:
        --count;
        truths[count - 1] = truths[count - 1] || truths[count];
        break;
    }
  }
  return count == 1 && truths[0];
}

}  // namespace malloscope::analyze
