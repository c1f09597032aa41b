// SPDX-License-Identifier: Apache-2.0
// A folder of files that can be made again: anything in it may go at any time. For the tools.

#pragma once

#include <cstdint>
#include <string>

namespace malloscope {

// For the user alone. False if it is not there and cannot be made.
bool make_cache_folder(const std::string& folder);

// Deletes the oldest of the files with `mark` in their names, until the rest has no more than
// `most_bytes`. `spared` stays and does not count.
void make_room(const std::string& folder, const std::string& mark, uint64_t most_bytes,
               const std::string& spared = {});

}  // namespace malloscope
