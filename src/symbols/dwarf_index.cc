// SPDX-License-Identifier: Apache-2.0
// DWARF describes a program as a tree: compilation units, in them functions, in
// those blocks and inlined calls, each with the ranges of addresses it covers.
// libdw can search that tree, but walks it anew for every address: 11 ms each was
// measured in a large program. We walk it once for each unit that is asked about
// and note every function and inlined call as a node with its parent:
//
//     0x100  main                  node 0             0x100 .. 0x180
//               parse (line 7)     node 1, parent 0   0x110 .. 0x150
//                  skip (line 20)  node 2, parent 1   0x120 .. 0x130, 0x140 .. 0x148
//
// The ranges flattened (interval_index.h) give the innermost node of an address,
// its parents give the chain. Where a frame stands in the source is told by the
// line table for the innermost one, and for the others by the call inside it.
//
// Units are found in the same way, by their ranges: not by .debug_aranges, which
// clang does not write.
//
// Linkers leave the entries of discarded functions in place, at address 0 or near
// it; ranges that do not begin in the module's code are dropped everywhere.

#include "symbols/dwarf_index.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "symbols/die_names.h"
#include "symbols/die_walk.h"
#include "symbols/interval_index.h"

namespace malloscope::symbols {

namespace {

constexpr uint32_t kNone = IntervalIndex::kNone;

struct Node {
  Dwarf_Die die;
  uint32_t parent;  // The function or call that this one is inlined into; kNone for a function.
  uint32_t call_file;
  uint32_t call_line;
  uint32_t call_column;
};

struct Row {
  uint64_t address;
  uint32_t file : 20;
  uint32_t column : 12;  // 0: not known, or too large.
  uint32_t line : 31;
  uint32_t ends : 1;  // The first address behind a stretch of code.
};

struct Unit {
  Dwarf_Die lines_die;  // Differ if the entries are in a file of their own (split DWARF).
  Dwarf_Die tree_die;
  std::string_view folder;  // Where it was compiled.
  bool indexed = false;

  std::vector<Node> nodes;
  IntervalIndex innermost;
  std::vector<Row> rows;
  Dwarf_Files* row_files = nullptr;
  Dwarf_Files* call_files = nullptr;
};

uint32_t number(Dwarf_Die die, unsigned attribute) {
  Dwarf_Attribute a;
  Dwarf_Word value = 0;
  if (!dwarf_attr(&die, attribute, &a) || dwarf_formudata(&a, &value) != 0) return 0;
  return value <= INT32_MAX ? static_cast<uint32_t>(value) : 0;
}

// libdw puts the include directory before the name, and the directory of the
// compilation only sometimes.
std::string file_name(Dwarf_Files* files, size_t index, std::string_view folder) {
  const char* name = files ? dwarf_filesrc(files, index, nullptr, nullptr) : nullptr;
  if (!name || !*name || std::string_view(name) == "???") return "";
  std::string path = name;
  bool complete = path.starts_with('/') || folder.empty() ||
                  (path.starts_with(folder) && path[folder.size()] == '/');
  if (!complete) path = std::string(folder) + "/" + path;
  return std::filesystem::path(path).lexically_normal().string();
}

}  // namespace

struct DwarfIndex::State {
  struct End {
    void operator()(Dwarf* handle) const { dwarf_end(handle); }
  };
  std::unique_ptr<Dwarf, End> dwarf;
  std::vector<ElfFile::Range> code;
  DieNames names;
  std::vector<Unit> units;
  IntervalIndex unit_of;

  explicit State(const SymbolTable& symbols) : names(symbols) {}

  void list_units();
  void index(Unit* unit);
  void index_functions(Unit* unit);
  void index_lines(Unit* unit);

  // Adds the entry's ranges of addresses; returns the lowest, if there is any.
  std::optional<uint64_t> add_ranges(Dwarf_Die die, uint32_t value,
                                     std::vector<IntervalIndex::Interval>* intervals) {
    std::optional<uint64_t> lowest;
    Dwarf_Addr base, start, end;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &start, &end)) > 0;) {
      if (start >= end || !contains(code, start)) continue;
      intervals->push_back({start, end, value});
      lowest = std::min<uint64_t>(start, lowest.value_or(start));
    }
    return lowest;
  }
};

DwarfIndex::DwarfIndex(std::unique_ptr<State> state) : state_(std::move(state)) {}
DwarfIndex::~DwarfIndex() = default;

std::unique_ptr<DwarfIndex> DwarfIndex::open(const ElfFile& file, std::vector<ElfFile::Range> code,
                                             const SymbolTable& symbols) {
  auto state = std::make_unique<State>(symbols);
  state->dwarf.reset(dwarf_begin_elf(file.elf(), DWARF_C_READ, nullptr));
  if (!state->dwarf) return nullptr;
  state->code = std::move(code);
  state->list_units();
  if (state->unit_of.empty()) return nullptr;
  return std::unique_ptr<DwarfIndex>(new DwarfIndex(std::move(state)));
}

void DwarfIndex::State::list_units() {
  std::vector<IntervalIndex::Interval> intervals;
  Dwarf_CU* cu = nullptr;
  Dwarf_Die die, split;
  uint8_t type;
  while (dwarf_get_units(dwarf.get(), cu, &cu, nullptr, &type, &die, &split) == 0) {
    if (type != DW_UT_compile && type != DW_UT_skeleton) continue;
    if (!add_ranges(die, static_cast<uint32_t>(units.size()), &intervals)) continue;
    Unit unit{};
    unit.lines_die = die;
    Dwarf_Attribute folder;
    const char* folder_name = nullptr;
    if (dwarf_attr(&die, DW_AT_comp_dir, &folder)) folder_name = dwarf_formstring(&folder);
    if (folder_name) unit.folder = folder_name;
    unit.tree_die = type == DW_UT_skeleton && split.addr ? split : die;
    units.push_back(std::move(unit));
  }
  // Of an inline function that several units have, the linker keeps the first, and may leave the
  // others claiming its address.
  std::ranges::reverse(intervals);
  unit_of = IntervalIndex(std::move(intervals));
}

void DwarfIndex::State::index(Unit* unit) {
  unit->indexed = true;
  index_functions(unit);
  index_lines(unit);
}

void DwarfIndex::State::index_functions(Unit* unit) {
  std::vector<IntervalIndex::Interval> intervals;
  std::vector<Node>& nodes = unit->nodes;
  // Classes are many and seldom have code inside; GCC puts it there for those in functions, as
  // lambdas are, even if the function around has no code of its own.
  struct Place {
    uint32_t owner;  // A node, or kNone.
    bool in_function;
  };
  walk_below(unit->tree_die, Place{kNone, false},
             [&](Dwarf_Die die, Place outer) -> std::optional<Place> {
               uint32_t node = static_cast<uint32_t>(nodes.size());
               switch (dwarf_tag(&die)) {
                 case DW_TAG_subprogram:
                   if (auto start = add_ranges(die, node, &intervals)) {
                     nodes.push_back({die, kNone, 0, 0, 0});
                     names.note_code(die, *start);
                     return Place{node, true};
                   }
                   return Place{kNone, true};
                 case DW_TAG_inlined_subroutine:
                   add_ranges(die, node, &intervals);
                   nodes.push_back({die, outer.owner, number(die, DW_AT_call_file),
                                    number(die, DW_AT_call_line), number(die, DW_AT_call_column)});
                   return Place{node, true};
                 case DW_TAG_class_type:
                 case DW_TAG_structure_type:
                 case DW_TAG_union_type:
                   return outer.in_function ? std::optional(outer) : std::nullopt;
                 case DW_TAG_lexical_block:
                 case DW_TAG_namespace:
                 case DW_TAG_module:
                 case DW_TAG_try_block:
                 case DW_TAG_catch_block:
                   return outer;
                 default:
                   return std::nullopt;
               }
             });
  unit->innermost = IntervalIndex(std::move(intervals));
  size_t count = 0;
  dwarf_getsrcfiles(&unit->tree_die, &unit->call_files, &count);
}

void DwarfIndex::State::index_lines(Unit* unit) {
  Dwarf_Lines* lines = nullptr;
  size_t count = 0, file_count = 0;
  if (dwarf_getsrclines(&unit->lines_die, &lines, &count) != 0) return;
  dwarf_getsrcfiles(&unit->lines_die, &unit->row_files, &file_count);
  unit->rows.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    Dwarf_Line* line = dwarf_onesrcline(lines, i);
    Dwarf_Addr address;
    bool ends = false;
    int row_line = 0, row_column = 0;
    Dwarf_Files* files;
    size_t file = 0;
    if (!line || dwarf_lineaddr(line, &address) != 0) continue;
    dwarf_lineendsequence(line, &ends);
    if (!contains(code, address) && !(ends && contains(code, address - 1))) continue;
    dwarf_lineno(line, &row_line);
    dwarf_linecol(line, &row_column);
    dwarf_line_file(line, &files, &file);
    // Of rows for the same address the last counts.
    if (!unit->rows.empty() && unit->rows.back().address == address) unit->rows.pop_back();
    constexpr uint32_t kMaxFile = (1 << 20) - 1, kMaxColumn = (1 << 12) - 1;
    auto column = static_cast<uint32_t>(row_column);
    unit->rows.push_back({address, (file <= kMaxFile ? static_cast<uint32_t>(file) : 0) & kMaxFile,
                          (column <= kMaxColumn ? column : 0) & kMaxColumn,
                          static_cast<uint32_t>(row_line) & INT32_MAX, ends});
  }
}

std::vector<SymbolFrame> DwarfIndex::frames(uint64_t address) {
  std::vector<SymbolFrame> frames;
  uint32_t found = state_->unit_of.find(address);
  if (found == kNone) return frames;
  Unit& unit = state_->units[found];
  if (!unit.indexed) state_->index(&unit);

  SymbolFrame frame;
  auto after = std::ranges::upper_bound(unit.rows, address, {}, &Row::address);
  if (after != unit.rows.begin() && !std::prev(after)->ends) {
    const Row& row = *std::prev(after);
    frame.file = file_name(unit.row_files, row.file, unit.folder);
    frame.line = static_cast<int>(row.line);
    frame.column = static_cast<int>(row.column);
  }
  uint32_t at = unit.innermost.find(address);
  if (at == kNone && frame.line == 0) return frames;
  while (at != kNone) {
    const Node& node = unit.nodes[at];
    frame.function = state_->names.function_name(node.die);
    frames.push_back(std::move(frame));
    frame = {};
    if (node.parent == kNone) return frames;
    frame.file = file_name(unit.call_files, node.call_file, unit.folder);
    frame.line = static_cast<int>(node.call_line);
    frame.column = static_cast<int>(node.call_column);
    at = node.parent;
  }
  frames.push_back(std::move(frame));
  return frames;
}

}  // namespace malloscope::symbols
