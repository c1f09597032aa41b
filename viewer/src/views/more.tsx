// SPDX-License-Identifier: Apache-2.0
// The other questions of `malloscope report --view`, each as the command line answers it.

import { usePage } from "../page";
import { Choice } from "../widgets/bits";
import { AnswerView } from "./answer_table";

const answers = [
  ["churn", "Churn"],
  ["growth", "Growth"],
  ["rss", "RSS"],
  ["mappings", "Mappings"],
  ["pages", "Pages"],
] as const;

export function MoreView() {
  const { state, change, source } = usePage();
  return (
    <>
      <div class="toolbar outer">
        <Choice
          label="Answer"
          value={state.answer}
          onChange={(answer) => change({ answer })}
          options={answers.map(([key, title]) => [key as string, title, source.refusal("answer", key)] as const)}
        />
      </div>
      <AnswerView key={state.answer} name={state.answer} />
    </>
  );
}
