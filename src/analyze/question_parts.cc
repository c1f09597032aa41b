// SPDX-License-Identifier: Apache-2.0
#include "analyze/question_parts.h"

namespace malloscope::analyze {
namespace {

// Words can have anything in them but this.
constexpr char kEnd = '\0';

void add_word(std::string* key, const std::string& word) { *key += word + kEnd; }

}  // namespace

void add_words(std::string* key, const std::vector<std::string>& words) {
  for (const std::string& word : words) add_word(key, word);
  *key += kEnd;
}

std::string cells_key(const QueryWords& words) {
  std::string key;
  if (words.selection.pid) key += std::to_string(*words.selection.pid);
  if (words.selection.image) key += 'i' + std::to_string(raw(*words.selection.image));
  key += kEnd;
  add_words(&key, words.threads), add_words(&key, words.phases), add_word(&key, words.min_size),
      add_word(&key, words.max_size);
  return key;
}

std::string range_key(const Explorer::Question& question) {
  std::string key = cells_key(question.words);
  add_word(&key, question.words.from), add_word(&key, question.words.to),
      add_word(&key, question.words.at);
  key += question.query.tally.only_made_in_window ? 'm' : ' ';
  if (!is_counted(question.metric)) key += metric_name(question.metric);
  return key;
}

std::string stacks_key(const QueryWords& words) {
  std::string key;
  add_words(&key, words.modules), add_words(&key, words.focus), add_words(&key, words.ignore);
  add_words(&key, words.types), add_word(&key, words.where);
  return key;
}

std::string frames_key(const QueryWords& words) {
  std::string key;
  add_words(&key, words.hide), add_words(&key, words.only_under), add_words(&key, words.renames);
  add_words(&key, words.cut_above), add_words(&key, words.cut_below), add_words(&key, words.folds);
  add_words(&key, words.rules);
  key += words.full_names ? 'f' : ' ';
  return key;
}

bool is_counted(Metric metric) {
  return metric != Metric::kLifetime && metric != Metric::kOverhead &&
         metric != Metric::kAllocatorTime && metric != Metric::kCpu;
}

bool is_about_all_cells(const Query& query) {
  return query.selection.is_all() && !query.tells_strands() && query.tally.min_size == 0 &&
         query.tally.max_size == UINT64_MAX;
}

Query about_frames(const Query& query) {
  Query frames = query;
  frames.threads.clear();
  frames.phases.clear();
  frames.frames = {};
  frames.frames.hide = query.frames.hide;
  frames.frames.only_under = query.frames.only_under;
  return frames;
}

}  // namespace malloscope::analyze
