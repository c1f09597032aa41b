// SPDX-License-Identifier: Apache-2.0
#include "output/junit.h"

#include <fmt/format.h>

#include <algorithm>

#include "output/words.h"

namespace malloscope::output {
namespace {

// What XML has no way to say, such as control characters, is escaped as for a terminal.
std::string xml_text(std::string_view text) {
  std::string safe;
  std::string plain = printable(text);
  for (std::string_view rest = plain; !rest.empty(); rest.remove_prefix(1)) {
    if (rest.starts_with("\xef\xbf\xbe") || rest.starts_with("\xef\xbf\xbf")) {  // No characters.
      safe += "?";
      rest.remove_prefix(2);
      continue;
    }
    switch (char c = rest.front()) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string place_of(const analyze::NamedFrame& frame) {
  if (frame.file.empty()) return frame.module;
  return frame.line > 0 ? fmt::format("{}:{}", frame.file, frame.line) : frame.file;
}

}  // namespace

void write_junit(const std::vector<analyze::Verdict>& verdicts, std::string_view program,
                 Sink* sink) {
  size_t failures = 0, errors = 0;
  for (const analyze::Verdict& verdict : verdicts)
    failures += verdict.exceeded(), errors += verdict.unproven;
  std::string counts = fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"0\"",
                                   verdicts.size(), failures, errors);
  sink->write("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
  sink->write(fmt::format("<testsuites name=\"malloscope check\" {}>\n", counts));
  sink->write(fmt::format("  <testsuite name=\"{}\" {}>\n", xml_text(program), counts));
  for (const analyze::Verdict& verdict : verdicts) {
    std::string testcase = fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"0\"",
                                       xml_text(program), xml_text(verdict.limit.text));
    if (verdict.kept()) {
      sink->write(testcase + "/>\n");
      continue;
    }
    if (verdict.unproven) {
      sink->write(
          fmt::format("{}>\n      <error message=\"{}\" type=\"unproven\"/>\n    </testcase>\n",
                      testcase, xml_text(verdict.sentence)));
      continue;
    }
    sink->write(fmt::format("{}>\n      <failure message=\"{}\" type=\"exceeded\">", testcase,
                            xml_text(verdict.sentence)));
    for (const analyze::Verdict::Responsible& r : verdict.sites)
      sink->write(fmt::format("{}  {}  {}\n",
                              xml_text(analyze::amount_text(verdict.limit, r.amount)),
                              xml_text(r.site.function), xml_text(place_of(r.site))));
    sink->write("</failure>\n    </testcase>\n");
  }
  sink->write("  </testsuite>\n</testsuites>\n");
}

}  // namespace malloscope::output
