// SPDX-License-Identifier: Apache-2.0
// What was never freed, what grows first; a row opens its stack.

import { AnswerView } from "./answer_table";

export function LeaksView() {
  return <AnswerView name="leaks" />;
}
