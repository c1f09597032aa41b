// SPDX-License-Identifier: Apache-2.0
#include "analyze/rules.h"

#include <gtest/gtest.h>

#include <random>

#include "analyze/profile_views.h"
#include "analyze/reading.h"
#include "trace/event_stream.h"

namespace malloscope::analyze {
namespace {

TEST(Rules, OfAllShippedSetsAreGood) {
  EXPECT_EQ(shipped_rules(), (std::vector<std::string>{"allocators", "boost", "python", "qt",
                                                       "root", "std", "tbb"}));
  for (const std::string& name : shipped_rules()) {
    Rules rules;
    Result<void> added = add_rules(name, &rules);
    EXPECT_TRUE(added) << added.error().sentence;
    EXPECT_FALSE(rules.plumbing.empty() && rules.fold.empty()) << name;
  }
}

TEST(Rules, TakeTheBestKnownWrappersForTheAllocator) {
  for (const char* name :
       {"xmalloc",
        "xcalloc",
        "xrealloc",
        "xstrdup",
        "g_malloc",
        "g_malloc0",
        "g_try_realloc_n",
        "Perl_safesysmalloc",
        "PyMem_Malloc",
        "PyMem_RawCalloc",
        "PyObject_Malloc",
        "_PyObject_Malloc",
        "_PyObject_GC_New",
        "sqlite3Malloc",
        "sqlite3DbMallocRaw",
        "sqlite3_malloc64",
        "apr_palloc",
        "zmalloc",
        "ztrymalloc_usable",
        "CRYPTO_malloc",
        "CRYPTO_zalloc",
        "llvm::allocate_buffer",
        "luaM_realloc_",
        "av_malloc",
        "llvm::BumpPtrAllocatorImpl<llvm::MallocAllocator, 4096ul, 4096ul, 128ul>::Allocate"})
    EXPECT_TRUE(matches_any(default_rules().plumbing, name)) << name;
  for (const char* name : {"main", "xmalloc_table", "parse", "my_function", "PyList_Append",
                           "sqlite3_exec", "createObject", "zipmapNew", "Perl_hv_common",
                           "llvm::MemoryBuffer::getFile", "do_malloc_test", "emit", "smart"})
    EXPECT_FALSE(matches_any(default_rules().plumbing, name)) << name;
}

std::string renamed(const std::string& rule, std::string name) {
  Result<Rename> made = Rename::make(rule, "--rename");
  if (!made) return made.error().sentence;
  made->apply(&name);
  return name;
}

TEST(Rules, RenameAsSedDoes) {
  EXPECT_EQ(renamed("s/a/b/", "banana"), "bbnana");
  EXPECT_EQ(renamed("s/a/b/g", "banana"), "bbnbnb");
  EXPECT_EQ(renamed("s/(n)(a)/\\2\\1/", "banana"), "baanna");
  EXPECT_EQ(renamed("s,/usr/lib/,,", "/usr/lib/x"), "x");
  EXPECT_EQ(renamed("s/\\/usr\\///", "/usr/lib"), "lib");
  EXPECT_EQ(renamed("s/\\bna//", "na.na"), ".na");
}

TEST(Rules, AreRefusedWithASentence) {
  for (const char* bad : {"s/a/b", "s/a", "s", "", "s/a/b/x", "x/a/b/", "s//b/"})
    EXPECT_EQ(renamed(bad, ""),
              "--rename '" + std::string(bad) + "' is not of the form s/REGEX/WITH/");
  EXPECT_EQ(renamed("s/(/b/", ""), "--rename '(' is not a regular expression: missing ): (");
  EXPECT_NE(renamed("s/a/\\3/", "").find("cannot be put in"), std::string::npos);
  Rules rules;
  EXPECT_EQ(add_rule_lines("# fine\n\nfold a\n  hold b\n", "my.rules", &rules).error().sentence,
            "my.rules:4: 'hold b' is no rule; those are s/REGEX/WITH/, fold, cut-above, cut-below "
            "and plumbing");
  EXPECT_EQ(add_rule_lines("fold \n", "f", &rules).error().sentence, "f:1: 'fold' needs a REGEX");
  EXPECT_EQ(add_rule_lines("fold (\n", "f", &rules).error().sentence,
            "f:1 '(' is not a regular expression: missing ): (");
  EXPECT_FALSE(add_rules("no such file", &rules));
}

TEST(Rules, OfAFileAreReadLineByLine) {
  Rules rules;
  ASSERT_TRUE(
      add_rule_lines("fold ^a b$\r\nfold module:libx\ncut-above m\ncut-below n\n"
                     "plumbing p\ns/x/y/g",
                     "f", &rules));
  EXPECT_EQ(rules.fold.at(0).text(), "^a b$");
  EXPECT_EQ(rules.fold_modules.at(0).text(), "libx");
  EXPECT_EQ(rules.cut_above.size() + rules.cut_below.size() + rules.plumbing.size(), 3u);
  EXPECT_EQ(rules.renames.size(), 1u);
  ASSERT_TRUE(add_rules("none", &rules));
  EXPECT_FALSE(rules.reshape());
}

// Frames f0 ... f9 in two modules; f0 and f1 are plumbing.
class FewNames : public Naming {
 public:
  std::vector<symbols::SymbolFrame> frames(const symbols::ModuleFile&, uint64_t offset) override {
    std::string name = "f" + std::to_string(offset / 4 % 10);
    return {{name + "(int)", name + ".cc", static_cast<int>(offset % 4)}};
  }
  bool is_plumbing(const std::string& function, const std::string&) override {
    return function < "f2";
  }
};

std::unique_ptr<Reading> made_up_reading(std::mt19937* random) {
  trace::Tables tables;
  trace::Image image;
  image.id = ImageId{1};
  image.modules.push_back({0x1000, 0x1020, 0x1000, 0, "/bin/app", "ab"});
  image.modules.push_back({0x1020, 0x2000, 0x1000, 0, "/lib/libx.so", "cd"});
  trace::Thread thread;
  thread.id = ThreadId{1};
  image.threads.push_back(thread);
  auto accounts = std::make_unique<Accounts>();
  for (uint32_t id = 1; id <= 200; ++id) {
    std::vector<uint64_t> frames;
    for (auto depth = 1 + (*random)() % 8; depth > 0; --depth)
      frames.push_back(0x1001 + (*random)() % 40);
    image.stacks.define(StackId{id}, StackId::kNone, 0, 0, 0, frames.data(), frames.size());
  }
  tables.images.push_back(image);
  accounts->image_started(tables.images[0]);
  for (uint64_t i = 1; i <= 1000; ++i) {
    wire::Event event;
    event.tick = i;
    event.address = i * 4096;
    event.size = (*random)() % 4000;
    event.stack = StackId{static_cast<uint32_t>(1 + (*random)() % 200)};
    event.thread = ThreadId{1};
    event.image = ImageId{1};
    accounts->events({&event, 1});
  }
  accounts->finish();
  return std::make_unique<Reading>("made up", std::move(tables), std::move(accounts),
                                   std::make_unique<FewNames>());
}

uint64_t sum(const Answer& answer, std::string_view key) {
  const Table& table = answer.tables.at(0);
  size_t column = 0;
  while (table.columns.at(column).key != key) ++column;
  uint64_t total = 0;
  for (const TableRow& row : table.rows)
    if (const auto* n = std::get_if<uint64_t>(&row.cells.at(column)))
      if (row.main && (key != "cumulative" || row.depth == 0)) total += *n;
  return total;
}

TEST(Rules, NeverChangeTheSums) {
  std::mt19937 random(3);
  std::unique_ptr<Reading> reading = made_up_reading(&random);
  const uint64_t whole = CallTree(reading.get(), Query()).total().peak_bytes;
  ASSERT_EQ(whole, reading->accounts().peak().bytes);
  constexpr const char* kRegexes[] = {"f[0-4]",  "f7", "^f3\\(int\\)$", ".", "f(1|9)",
                                      "nothing", "f5"};
  for (int round = 0; round < 200; ++round) {
    Query query;
    std::string said;
    for (auto n = random() % 5; n > 0; --n) {
      std::string regex = kRegexes[random() % std::size(kRegexes)];
      std::string lines[] = {"fold " + regex,      "fold module:lib",     "cut-above " + regex,
                             "cut-below " + regex, "s/" + regex + "/f6/", "fold module:."};
      std::string line = lines[random() % std::size(lines)];
      said += line + "\n";
      ASSERT_TRUE(add_rule_lines(line, "test", &query.rules));
    }
    ProfileOptions options;
    EXPECT_EQ(sum(by_function(reading.get(), query, options), "self"), whole) << said;
    EXPECT_EQ(sum(as_tree(reading.get(), query, options), "cumulative"), whole) << said;
    EXPECT_EQ(sum(as_tree(reading.get(), query, options), "self"), whole) << said;
    EXPECT_EQ(sum(by_stack(reading.get(), query, options), "peak"), whole) << said;
    EXPECT_EQ(sum(callers_and_callees(reading.get(), query, options), "self"), whole) << said;
    options.by = By::kSite;
    EXPECT_EQ(sum(by_group(reading.get(), query, options), "peak"), whole) << said;
    // The same, asked of the tree directly.
    CallTree tree(reading.get(), query);
    EXPECT_EQ(tree.total().allocations, 1000u);
    EXPECT_EQ(tree.self(CallTree::kRoot).allocations, 0u) << said;
  }
}

std::vector<std::string> functions_of(Reading* reading, const std::string& lines) {
  Query query;
  EXPECT_TRUE(add_rule_lines(lines, "test", &query.rules));
  std::vector<std::string> names;
  Answer answer = by_function(reading, query, {});
  for (const TableRow& row : answer.tables[0].rows)
    names.push_back(std::get<NamedFrame>(row.cells.back()).function);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());  // Of both modules.
  return names;
}

TEST(Rules, DecideWhatIsShown) {
  std::mt19937 random(3);
  std::unique_ptr<Reading> reading = made_up_reading(&random);
  using Names = std::vector<std::string>;
  EXPECT_EQ(functions_of(reading.get(), "fold f[2-9]"), (Names{"[hidden]", "f0", "f1"}));
  EXPECT_EQ(functions_of(reading.get(), "fold f[0-7]"), (Names{"[hidden]", "f8", "f9"}));
  EXPECT_EQ(functions_of(reading.get(), "s/f[0-8]/g/"), (Names{"f9", "g"}));
  // Only the outermost frame of each stack.
  for (const char* line : {"cut-below .", "cut-above .\ncut-below ."}) {
    Query query;
    ASSERT_TRUE(add_rule_lines(line, "test", &query.rules));
    CallTree tree(reading.get(), query);
    for (const CallTree::Node& node : tree.nodes()) EXPECT_EQ(node.parent, CallTree::kRoot);
  }
}

}  // namespace
}  // namespace malloscope::analyze
