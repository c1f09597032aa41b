// SPDX-License-Identifier: Apache-2.0
// The contract with other programs: `report --json` and `info --json`.

#pragma once

#include <cstddef>

#include "analyze/reading.h"
#include "output/json_writer.h"
#include "output/sink.h"

namespace malloscope::output {

inline constexpr int kJsonSchema = 1;

// One object. `most_sites` 0 is all of them.
void write_report_json(analyze::Reading* reading, size_t most_sites, Sink* sink);

// The members that every JSON object of ours begins with: `malloscope` and `trace`.
void write_json_preamble(const analyze::Reading& reading, JsonWriter* json);

// The same object with the settings, and every image with its threads and modules.
void write_info_json(analyze::Reading* reading, Sink* sink);

}  // namespace malloscope::output
