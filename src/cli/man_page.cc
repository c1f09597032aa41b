// SPDX-License-Identifier: Apache-2.0
// Only what every page says anew, such as exit codes, is written here; the rest is the options'
// own definitions.

#include "cli/man_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <sstream>

#include "cli/commands.h"

namespace malloscope::cli {
namespace {

// Text in which nothing is a command: a backslash, or a point at the beginning of a line.
std::string plain(std::string_view text) {
  std::string out;
  for (char c : text) {
    bool begins_line = out.empty() || out.back() == '\n';
    if (begins_line && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else if (c == '\'')
      out += "\\(aq";
    else if (c == '`')
      out += "\\(ga";
    else if (c == '^')
      out += "\\(ha";
    else if (c == '~')
      out += "\\(ti";
    else
      out += c;
  }
  return out;
}

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + plain(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + plain(text) + "\\fR"; }

class Page {
 public:
  Page(std::string_view name, std::string_view summary) {
    out_ = fmt::format(".TH {} 1 \"\" \"malloscope {}\" \"User Commands\"\n", upper(plain(name)),
                       kVersion);
    section("NAME");
    line(plain(name) + " \\- " + plain(summary));
  }

  void section(std::string_view title) { out_ += fmt::format(".SH \"{}\"\n", title); }
  void group(std::string_view title) { out_ += fmt::format(".SS \"{}\"\n", plain(title)); }
  void line(std::string_view text) { out_ += std::string(text) + "\n"; }
  void term(const std::string& name) { out_ += ".TP\n" + name + "\n"; }

  // Lines that stay as they are, such as commands to type.
  void as_typed(std::string_view text) {
    line(".nf");
    line(plain(text));
    line(".fi");
  }

  // An option's description: a sentence, then perhaps lines of "word   what it means".
  void description(const std::string& text) {
    std::istringstream lines(text);
    std::string sentence, list;
    for (std::string rest; std::getline(lines, rest);) {
      size_t gap = rest.find("  ");
      if (gap == std::string::npos)
        sentence += (sentence.empty() ? "" : "\n") + rest;
      else
        list += ".TP\n" + bold(rest.substr(0, gap)) + "\n" +
                plain(rest.substr(rest.find_first_not_of(' ', gap))) + "\n";
    }
    if (sentence.empty() || !std::strchr(".:!?", sentence.back())) sentence += '.';
    line(plain(sentence));
    if (!list.empty()) line(".RS\n" + list + ".RE");
  }

  void ending(std::string_view own_name, bool runs_program) {
    section("EXIT STATUS");
    auto code = [&](const char* number, const char* meaning) { term(number), line(meaning); };
    if (runs_program)
      line("That of the program, or 128 and the number of the signal that ended it. Of its own:");
    code("0", "All is well.");
    code("1", "What the user asked to fail on was found.");
    code("2", "The command line makes no sense, or asks for what cannot be; nothing was done.");
    code("3", "A trace could not be read, or output not be written to its end.");
    section("ENVIRONMENT");
    term(bold("NO_COLOR")), line("No colours, unless asked for by an option.");
    term(bold("XDG_CACHE_HOME")), line("Where names of functions are kept, instead of ~/.cache.");
    term(bold("DEBUGINFOD_URLS")), line("Servers of debug files, if an option allows to ask them.");
    section("FILES");
    term(italic("malloscope.PROGRAM.PID.mscope")), line("A trace, unless it was given a name.");
    term(italic("~/.cache/malloscope/")),
        line("Names of functions, by build\\-id; may be removed.");
    section("SEE ALSO");
    std::string others = own_name.empty() ? "" : "\\fBmalloscope\\fR(1)";
    for (const VerbSummary& verb : verb_summaries())
      if (verb.name != own_name)
        others +=
            fmt::format("{}\\fBmalloscope\\-{}\\fR(1)", others.empty() ? "" : ",\n", verb.name);
    line(others);
  }

  std::string text() && { return std::move(out_); }

 private:
  std::string out_;
};

// "-o, --output FILE"
std::string names_of(const CLI::Option& option) {
  std::string text;
  for (const std::string& name : option.get_snames())
    text += (text.empty() ? "" : ", ") + bold("-" + name);
  for (const std::string& name : option.get_lnames())
    text += (text.empty() ? "" : ", ") + bold("--" + name);
  if (option.get_items_expected_max() > 0) text += " " + italic(option.get_type_name());
  return text;
}

std::string positional(const CLI::Option& option) {
  std::string name = option.get_type_name() == "TEXT" ? upper(option.get_name(true, false)) + "..."
                                                      : option.get_type_name();
  return option.get_required() ? italic(name) : "[" + italic(name) + "]";
}

}  // namespace

std::string man_page(const CLI::App& app, std::string_view example) {
  std::string name = app.get_name(), verb = name.substr(name.find(' ') + 1);
  std::replace(name.begin(), name.end(), ' ', '-');
  std::string summary;
  for (const VerbSummary& known : verb_summaries())
    if (known.name == verb) summary = known.summary;
  Page page(name, summary);
  page.section("SYNOPSIS");
  std::string synopsis = bold(app.get_name()) + " [" + italic("OPTIONS") + "]";
  std::vector<const CLI::Option*> arguments, options;
  for (const CLI::Option* option : app.get_options())
    (option->get_positional() ? arguments : options).push_back(option);
  for (const CLI::Option* option : arguments) synopsis += " " + positional(*option);
  page.line(synopsis);
  page.section("DESCRIPTION");
  page.line(plain(app.get_description()));
  for (const CLI::Option* option : arguments) {
    page.term(positional(*option));
    page.description(option->get_description());
  }
  page.section("OPTIONS");
  std::vector<std::string> groups;
  for (const CLI::Option* option : options)
    if (std::find(groups.begin(), groups.end(), option->get_group()) == groups.end())
      groups.push_back(option->get_group());
  for (const std::string& group : groups) {
    if (group != "Options") page.group(group);
    for (const CLI::Option* option : options) {
      if (option->get_group() != group) continue;
      page.term(names_of(*option));
      page.description(option->get_description());
      std::string others;
      for (const CLI::Option* other : option->get_excludes())
        others += (others.empty() ? "" : ", ") + other->get_name();
      if (!others.empty()) page.line(plain("Not with " + others + "."));
      if (option->get_expected_max() > 1) page.line("May be given more than once.");
    }
  }
  page.section("EXAMPLES");
  std::istringstream commands{std::string(example)};
  std::string typed;
  for (std::string command; std::getline(commands, command);)
    typed += (typed.empty() ? "" : "\n") + command.substr(command.find_first_not_of(' '));
  page.as_typed(typed);
  page.ending(verb, verb == "run");
  return std::move(page).text();
}

std::string man_page() {
  Page page("malloscope", "records every allocation of a program and says where its memory goes");
  page.section("SYNOPSIS");
  page.line(bold("malloscope") + " " + italic("PROGRAM") + " [" + italic("ARGUMENTS") +
            "...]\n.br");
  page.line(bold("malloscope") + " " + italic("VERB") + " [" + italic("OPTIONS") + "] ...");
  page.section("DESCRIPTION");
  page.line(
      "Each allocation of each thread is recorded with its time and its complete call stack, in\n"
      "the program and the processes it starts. Every question is then answered from that one\n"
      "trace. The verbs:");
  for (const VerbSummary& verb : verb_summaries()) {
    page.term(bold(verb.name));
    page.line(plain(verb.summary));
  }
  page.section("OPTIONS");
  page.term(bold("--help")), page.line("The verbs. After a verb, its options.");
  page.term(bold("--version")), page.line("The version.");
  page.section("EXAMPLES");
  page.as_typed("malloscope ./app --its-own-option\nmalloscope report malloscope.app.1234.mscope");
  page.ending("", true);
  return std::move(page).text();
}

}  // namespace malloscope::cli
