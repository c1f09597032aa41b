// SPDX-License-Identifier: Apache-2.0
// What a program that includes malloscope.h says of itself. The header finds this by name.

#include "base/attributes.h"
#include "record/recorder.h"

using namespace malloscope;
using namespace malloscope::record;

MSCOPE_EXPORT void malloscope_record_mark(unsigned kind, const char* name) {
  if (kind == 0 || kind >= wire::kMarkKinds || !name || !*name) return;
  record_mark(static_cast<wire::MarkKind>(kind), MSCOPE_FRAME, name);
}
