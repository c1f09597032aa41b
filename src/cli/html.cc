// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/output_file.h"
#include "output/sink.h"
#include "serve/report_file.h"

namespace malloscope::cli {

// Writes the whole file, or none.
static int write_page(const std::string& path, const std::string& html) {
  PartialFile file(path);
  int fd = file.create();
  if (fd < 0)
    return complain(kUnreadable, fmt::format("{} could not be written: {}", path, strerror(errno)));
  output::FileSink sink(fd, path);
  sink.write(html);
  if (Result<void> done = sink.finish(); !done) return complain(kUnreadable, done.error().sentence);
  if (!file.keep())
    return complain(kUnreadable, fmt::format("{} could not be written: {}", path, strerror(errno)));
  return kOk;
}

int main_html(const Words& words) {
  std::string trace, base, output, max_size = "20M";
  bool force = false;
  QueryWords names;
  CLI::App app(
      "The viewer's page with the recording in it, as one file: it opens from disk, without a\n"
      "server or a network, and can be mailed.",
      "malloscope html");
  add_trace(app, &trace);
  app.add_option("-o,--output", output, "File to write")->required()->type_name("FILE");
  app.add_flag("-f,--force", force, "Overwrite the file if it exists and is no recording");
  app.add_option("--base", base,
                 "Another recording: what changed since then, as a table and as a flame graph")
      ->type_name("TRACE")
      ->check(CLI::ExistingFile.description(""));
  app.add_option("--max-size", max_size,
                 "How large it may become; what has no room is put together, and said [20M]")
      ->type_name("SIZE");
  add_symbols(app, &names.symbols, &names.no_cache);
  app.add_flag("--full-names", names.full_names, "C++ names as they are, however long")
      ->group("Names");
  if (auto code = parse(app, words,
                        "malloscope html app.mscope -o report.html\n"
                        "  malloscope html friday.mscope --base monday.mscope -o report.html"))
    return *code;
  Result<uint64_t> most = bytes_of(max_size, "--max-size");
  if (!most) return complain(kUsage, most.error().sentence);
  std::vector<std::string> inputs = {trace};
  if (!base.empty()) inputs.push_back(base);
  if (std::string wrong = obstacle(output, inputs, force); !wrong.empty())
    return complain(kUsage, wrong);

  Result<analyze::Query> query = query_of(names);
  if (!query) return complain(kUsage, query.error().sentence);
  // The words live as long as what is shown of them.
  std::string what;
  std::function<void(double)> show;
  auto progress = [&](std::string_view now, double share) {
    if (now != what) {
      if (show) show(1);
      what = now;
      show = progress_of(what);
    }
    if (show) show(share);
  };
  auto explorer = analyze::Explorer::open(trace, *query, progress);
  if (!explorer) return complain(kUnreadable, explorer.error().sentence);
  Result<std::unique_ptr<analyze::Explorer>> before = nullptr;
  std::optional<analyze::Comparison> comparison;
  if (!base.empty()) {
    before = analyze::Explorer::open(base, *query, progress);
    if (!before) return complain(kUnreadable, before.error().sentence);
    comparison.emplace(before->get(), explorer->get());
  }
  serve::Jobs jobs;
  serve::Context context = {**explorer, trace, names, {}, jobs, comparison ? &*comparison : nullptr,
                            base};
  Result<serve::ReportFile> file = serve::make_report_file(context, *most, progress);
  if (show) show(1);
  if (!file) return complain(file.error().usage ? kUsage : kUnreadable, file.error().sentence);
  for (const std::string& sentence : file->left_out) complain(kOk, sentence);
  return write_page(output, file->html);
}

}  // namespace malloscope::cli
