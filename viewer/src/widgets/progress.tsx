// SPDX-License-Identifier: Apache-2.0
// How far something is, in words and as a bar; without a share it only says that it goes on.

import { shown } from "../safe_text";

export function Progress({ what, share }: { what: string; share: number | null }) {
  const percent = share === null ? null : Math.round(Math.max(0, Math.min(1, share)) * 100);
  return (
    <div class="progress">
      <span>
        {shown(what)}
        {percent !== null ? `, ${percent} %` : ""}
      </span>
      <div
        class={percent === null ? "progress-bar unknown" : "progress-bar"}
        role="progressbar"
        aria-label={shown(what)}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={percent ?? undefined}
      >
        <span style={{ width: percent === null ? "30%" : `${percent}%` }} />
      </div>
    </div>
  );
}
