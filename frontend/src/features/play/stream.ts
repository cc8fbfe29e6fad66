/** The messages of a play session's stream. */

/** What a frame says about the game. */
export type Status = {
  score: number;
  lives: number;
  /** Emulator frames of the game. */
  frames: number;
  /** The action that is held down, or the agent's; null for nothing. */
  action: number | null;
  paused: boolean;
  over: boolean;
  speed: number;
  /** Whether a part of the game was played at another speed than the console's. */
  practice: boolean;
  /** Number of the game in the session, from 1. */
  game: number;
  /** Who acts: the player, or the session's agent. */
  acting: 'person' | 'agent';
  /** Whether the agent has the controls but is still being loaded. */
  loading: boolean;
  /** Whether the agent has the controls but still reads the game up to here. */
  reading: boolean;
  /** Why the agent cannot act in this game; null if it can, or the session has none. */
  unavailable: string | null;
  seq: number;
};

type Message = { status: Status; jpeg: Blob | null } | { ended: string };

/** Parses a binary message: the length of a JSON object, the object, a JPEG. */
export function readMessage(data: ArrayBuffer): Message {
  const length = new DataView(data).getUint16(0, true);
  const text = new TextDecoder().decode(data.slice(2, 2 + length));
  const object = JSON.parse(text) as Status | { ended: string };
  if ('ended' in object) return object;
  const jpeg =
    data.byteLength > 2 + length ? new Blob([data.slice(2 + length)], { type: 'image/jpeg' }) : null;
  return { status: object, jpeg };
}

/** Whether two statuses look the same: a page need not be drawn again for each frame. */
export const looksSame = (a: Status | null, b: Status): boolean =>
  a !== null &&
  (
    [
      'score',
      'lives',
      'action',
      'paused',
      'over',
      'speed',
      'practice',
      'game',
      'acting',
      'loading',
      'reading',
      'unavailable',
    ] as const
  ).every((key) => a[key] === b[key]);
