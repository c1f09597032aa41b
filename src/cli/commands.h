// SPDX-License-Identifier: Apache-2.0
// The verbs. main.cc reads the command line into these; each verb is one file.

#pragma once

#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/reading.h"

namespace malloscope::cli {

inline constexpr const char* kVersion = MSCOPE_VERSION;

// Exit codes; `run` passes on the program's own.
inline constexpr int kOk = 0;
inline constexpr int kFinding = 1;     // What the user asked to fail on.
inline constexpr int kUsage = 2;       // Nothing was done.
inline constexpr int kUnreadable = 3;  // A trace unreadable, or output not written to its end.

enum class Color { kAuto, kAlways, kNever };

struct RunOptions {
  std::string output;  // Empty: malloscope.<program>.<pid>.mscope in the current folder.
  bool force = false;  // Overwrite `output`.
  bool quiet = false;  // No page at the end.
  bool follow = true;  // Record the children too.
  std::string only;    // Regular expression on the program's name; empty: all.
  bool drop_when_full = false;
  Color color = Color::kAuto;
  std::vector<std::string> command;  // The program and its arguments; never empty.
};
int run_command(const RunOptions& options);
int collect_command(const std::string& pid);  // Not for users; see run.cc.

struct ReportOptions {
  std::string trace;
  bool json = false;
  std::optional<int> pid;
  size_t top = 0;  // Sites to list; 0: five on the page, all in JSON.
  Color color = Color::kAuto;
};
int report_command(const ReportOptions& options);

struct InfoOptions {
  std::string trace;
  bool json = false;
  Color color = Color::kAuto;
};
int info_command(const InfoOptions& options);

struct ExportOptions {
  std::string trace;
  std::string format;
  std::string metric = "peak";
  std::string output;  // "-": standard output.
  bool force = false;
  std::optional<int> pid;
};
int export_command(const ExportOptions& options);

// The page of `report` on `stream`, which is also what `run` ends with. Prints what goes wrong
// on stderr and returns an exit code.
int print_page(const std::string& trace, std::optional<int> pid, std::FILE* stream,
               Color color = Color::kAuto, size_t rows = 5);

// "malloscope: <sentence>" on stderr. Returns `exit_code`.
int complain(int exit_code, std::string_view sentence);

// Reads a trace for a report, with progress and warnings on stderr. A null pointer: it was
// complained about, and `exit_code` says what to return.
std::unique_ptr<analyze::Reading> read_trace(const std::string& path, std::optional<int> pid,
                                             int* exit_code);

bool wants_color(Color color, std::FILE* stream);
size_t terminal_width(std::FILE* stream);  // 100 if it is no terminal.

}  // namespace malloscope::cli
