// SPDX-License-Identifier: Apache-2.0
// A question to an explorer has three parts, each kept apart since one mostly changes alone: which
// range, threads and sizes (amounts of all rows), which stacks (a bit for each row), and which
// frames of them are shown (the tree and the groups). What a part says is a text here: questions
// that agree in it have the same answer.

#pragma once

#include <string>
#include <vector>

#include "analyze/explorer.h"

namespace malloscope::analyze {

// Of processes, threads, phases and sizes: which cells of an index.
std::string cells_key(const QueryWords& words);
// And of the range, for the question's metric.
std::string range_key(const Explorer::Question& question);
// But for `only_under`, which is about frames too.
std::string stacks_key(const QueryWords& words);
std::string frames_key(const QueryWords& words);
// Adds more of a question's words.
void add_words(std::string* key, const std::vector<std::string>& words);

// Whether sums of an index have it as it is.
bool is_counted(Metric metric);
bool is_about_all_cells(const Query& query);
// What the question says of frames alone.
Query about_frames(const Query& query);

}  // namespace malloscope::analyze
