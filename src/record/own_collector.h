// SPDX-License-Identifier: Apache-2.0
// For a recorder that was loaded by LD_PRELOAD alone: starts a collector.

#pragma once

namespace malloscope::record {

// This end of a socket to the new collector, or -1 if there can be none.
int start_own_collector();

}  // namespace malloscope::record
