// SPDX-License-Identifier: Apache-2.0
// Where the debug information of a stripped file is kept.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "symbols/elf_file.h"

namespace malloscope::symbols {

// Paths that were looked at, whether there was anything or not.
using Looked = std::vector<std::string>;

// The file dir/.build-id/ab/cdef….debug of the first of `debug_dirs` that has it.
std::optional<ElfFile> find_by_build_id(const std::string& build_id,
                                        const std::vector<std::string>& debug_dirs,
                                        Looked* looked = nullptr);

// A file of this build-id that somebody put into one of `debug_dirs`, under its own name or its
// whole path: an older build, or one from another machine.
std::optional<ElfFile> find_by_name(const std::string& path, const std::string& build_id,
                                    const std::vector<std::string>& debug_dirs,
                                    Looked* looked = nullptr);

// The separate debug file of `stripped`: by its build-id, else by its .gnu_debuglink.
// Files on this machine only; nothing is ever fetched.
std::optional<ElfFile> find_debug_file(const ElfFile& stripped,
                                       const std::vector<std::string>& debug_dirs,
                                       Looked* looked = nullptr);

}  // namespace malloscope::symbols
