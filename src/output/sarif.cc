// SPDX-License-Identifier: Apache-2.0
#include "output/sarif.h"

#include <fmt/format.h>

#include <cctype>

#include "output/json_writer.h"
#include "output/words.h"

namespace malloscope::output {
namespace {

using Layout = JsonWriter::Layout;

// "max-peak" of "max-peak 512M".
std::string_view rule_of(const analyze::Limit& limit) {
  return std::string_view(limit.text).substr(0, limit.text.find(' '));
}

void write_message(JsonWriter* json, std::string_view text) {
  json->key("message").begin_object(Layout::kLine);
  json->member("text", text);
  json->end();
}

void write_location(JsonWriter* json, const analyze::NamedFrame& frame) {
  json->begin_object();
  if (!frame.file.empty()) {
    json->key("physicalLocation").begin_object();
    json->key("artifactLocation").begin_object(Layout::kLine);
    json->member("uri", uri_of(frame.file));
    json->end();
    if (frame.line > 0) {
      json->key("region").begin_object(Layout::kLine);
      json->member("startLine", frame.line);
      if (frame.column > 0) json->member("startColumn", frame.column);
      json->end();
    }
    json->end();
  }
  json->key("logicalLocations").begin_array();
  json->begin_object(Layout::kLine);
  json->member("fullyQualifiedName", frame.function);
  json->member("kind", "function");
  json->end();
  json->end();
  json->end();
}

void write_result(JsonWriter* json, const analyze::Verdict& verdict, size_t rule,
                  const analyze::Verdict::Responsible* site) {
  json->begin_object();
  json->member("ruleId", rule_of(verdict.limit));
  json->member("ruleIndex", rule);
  json->member("level", verdict.exceeded() ? "error" : "warning");
  std::string text = fmt::format("{}: {}", verdict.limit.text, verdict.sentence);
  if (site)
    text += fmt::format("; {} by {}", analyze::amount_text(verdict.limit, site->amount),
                        site->site.function);
  write_message(json, printable(text));
  json->key("locations").begin_array();
  if (site) write_location(json, site->site);
  json->end();
  json->end();
}

}  // namespace

std::string uri_of(std::string_view path) {
  std::string uri = path.starts_with('/') ? "file://" : "";
  for (char c : path) {
    auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && (isalnum(byte) || std::string_view("-._~/+,@=").contains(c)))
      uri += c;
    else
      uri += fmt::format("%{:02X}", byte);
  }
  return uri;
}

void write_sarif(const std::vector<analyze::Verdict>& verdicts, Sink* sink) {
  std::vector<std::string_view> rules;
  std::vector<size_t> rule_index;  // Beside `verdicts`.
  for (const analyze::Verdict& verdict : verdicts) {
    std::string_view rule = rule_of(verdict.limit);
    size_t i = 0;
    while (i < rules.size() && rules[i] != rule) ++i;
    if (i == rules.size()) rules.push_back(rule);
    rule_index.push_back(i);
  }
  JsonWriter json(sink);
  json.begin_object();
  json.member("$schema", "https://json.schemastore.org/sarif-2.1.0.json");
  json.member("version", "2.1.0");
  json.key("runs").begin_array();
  json.begin_object();
  json.key("tool").begin_object();
  json.key("driver").begin_object();
  json.member("name", "malloscope");
  json.member("semanticVersion", MSCOPE_VERSION);
  json.key("rules").begin_array();
  for (std::string_view rule : rules) {
    json.begin_object();
    json.member("id", rule);
    json.key("shortDescription").begin_object(Layout::kLine);
    json.member("text", fmt::format("Memory limit {}", rule));
    json.end();
    json.end();
  }
  json.end();
  json.end();
  json.end();
  json.member("columnKind", "utf16CodeUnits");
  json.key("results").begin_array();
  for (size_t i = 0; i < verdicts.size(); ++i) {
    if (verdicts[i].kept()) continue;
    if (verdicts[i].sites.empty()) write_result(&json, verdicts[i], rule_index[i], nullptr);
    for (const auto& site : verdicts[i].sites)
      write_result(&json, verdicts[i], rule_index[i], &site);
  }
  json.end();
  json.end();
  json.end();
  json.end();
}

}  // namespace malloscope::output
