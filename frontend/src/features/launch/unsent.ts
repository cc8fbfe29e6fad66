/** What was entered in the launch form and not started yet. It stays in its tab until the tab is closed. */
import { algorithmOf, environmentOf, type Catalogue, type Draft } from './draft';

export type Unsent = {
  draft: Draft;
  /** The fields that were edited. */
  edited: readonly string[];
  /** Of a fork, the checkpoint of the address and the one that was chosen; null is the latest. */
  checkpoint: { from: string | null; chosen: string | null };
};

const keyOf = (form: string): string => `callboard-launch-${form}`;

/** What was entered in a form; null if nothing was, or if its algorithm or environment no longer exists. */
export function unsent(form: string, catalogue: Catalogue): Unsent | null {
  const stored = sessionStorage.getItem(keyOf(form));
  if (stored === null) return null;
  const entered = JSON.parse(stored) as Unsent;
  return environmentOf(catalogue, entered.draft) && algorithmOf(catalogue, entered.draft) ? entered : null;
}

export const keepUnsent = (form: string, entered: Unsent): void =>
  sessionStorage.setItem(keyOf(form), JSON.stringify(entered));

export const forgetUnsent = (form: string): void => sessionStorage.removeItem(keyOf(form));
