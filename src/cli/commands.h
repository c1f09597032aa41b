// SPDX-License-Identifier: Apache-2.0
// The verbs: each is one file, with its own options.

#pragma once

#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/answer.h"
#include "analyze/reading.h"

namespace malloscope::cli {

inline constexpr const char* kVersion = MSCOPE_VERSION;

// Exit codes; `run` passes on the program's own.
inline constexpr int kOk = 0;
inline constexpr int kFinding = 1;     // What the user asked to fail on.
inline constexpr int kUsage = 2;       // Nothing was done.
inline constexpr int kUnreadable = 3;  // A trace unreadable, or output not written to its end.

enum class Color { kAuto, kAlways, kNever };

using Words = std::vector<std::string>;

// Each verb gets the words behind its name and returns the exit code.
int main_run(const Words& words);
int main_report(const Words& words);
int main_info(const Words& words);
int main_leaks(const Words& words);
int main_diff(const Words& words);
int main_check(const Words& words);
int main_history(const Words& words);
int main_export(const Words& words);
int main_merge(const Words& words);
int main_symbolize(const Words& words);
int main_view(const Words& words);
int main_html(const Words& words);
int main_replay(const Words& words);
int main_workload(const Words& words);

// Not for users; see run.cc.
bool is_started_by_recorder();
int collect_command(const std::string& pid);

// The path of a file that was installed with us, such as libmalloscope.so; empty if it is missing.
std::string own_file(const char* name);

// Flushes standard output. Returns an exit code, having complained if it could not be written.
int finish_stdout();

// The page of `report` on `stream`, which is also what `run` ends with. Prints what goes wrong
// on stderr and returns an exit code.
int print_page(const std::string& trace, const analyze::Query& query, std::FILE* stream,
               Color color = Color::kAuto, size_t rows = 5);

// "malloscope: <sentence>" on stderr. Returns `exit_code`.
int complain(int exit_code, std::string_view sentence);

// Shows on a terminal how far `what` is, as in "looking up names:"; to be called with 1 at the end.
std::function<void(double)> progress_of(std::string_view what);

// Reads a trace for a report, with progress and warnings on stderr. A null pointer: it was
// complained about, and `exit_code` says what to return. `says_losses`: the report itself tells
// that the trace is not complete.
// Says so if no thread or phase is meant by a filter that is about some; else nothing.
std::string names_nobody(const analyze::Reading& reading, const analyze::Query& query);

std::unique_ptr<analyze::Reading> read_trace(const std::string& path, const analyze::Query& query,
                                             int* exit_code,
                                             std::function<void(analyze::Heap*)> attach = {},
                                             bool says_losses = false);

// An answer on standard output, as text or as one JSON object. Returns an exit code.
int print_answer(analyze::Reading* reading, analyze::Answer answer, const analyze::Shape& shape,
                 bool json, Color color, bool full_names);

// The same where there is no trace, or more than one.
int print_answer(analyze::Answer answer, const analyze::Shape& shape, bool json, Color color);

bool wants_color(Color color, std::FILE* stream);
size_t terminal_width(std::FILE* stream);  // 100 if it is no terminal.

}  // namespace malloscope::cli
