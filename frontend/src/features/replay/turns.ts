/** Who made the decisions of a joint game. */

import type { components } from '@/api/generated';
import { formatInteger } from '@/lib/format';

export type Actor = components['schemas']['ActorOut'];

export type Played = {
  actors: readonly Actor[];
  /** One stretch of decisions after the other: index of the actor, number of decisions. */
  turns: readonly (readonly number[])[];
};

type Span = { actor: number; start: number; end: number };

/** The stretches of decisions, with their first decision and the one after their last. */
export function spansOf(turns: Played['turns']): Span[] {
  let start = 0;
  return turns.map(([actor = 0, n = 0]) => {
    const span = { actor, start, end: start + n };
    start += n;
    return span;
  });
}

/** The player has the accent; agents and others follow, in colours that the timeline does not use. */
const COLOURS = ['var(--accent)', 'var(--actor-1)', 'var(--actor-2)', 'var(--actor-3)'];

export const colourOf = (actor: number): string =>
  COLOURS[actor === 0 ? 0 : 1 + ((actor - 1) % (COLOURS.length - 1))] ?? '';

/** An actor in words. */
export function actorName(actor: Actor | undefined): string {
  if (actor === undefined) return 'unknown';
  const { kind, name, agent_steps: steps } = actor;
  if (kind === 'person') return name ?? 'a deleted user';
  if (kind === 'script') return `script of ${name ?? 'a deleted user'}`;
  const trained = typeof steps === 'number' ? ` at ${formatInteger(steps)} agent steps` : '';
  // The agent of a recorded training episode has none: its parameters were between two checkpoints.
  const saved = actor.checkpoint_id == null ? '' : ' (checkpoint)';
  return `agent of ${name ?? 'a deleted run'}${trained}${saved}`;
}
