import { expect, it } from 'vitest';
import { looksSame, readMessage, type Status } from './stream';

const STATUS: Status = {
  score: 3,
  lives: 5,
  frames: 120,
  action: null,
  paused: false,
  over: false,
  speed: 1,
  practice: false,
  game: 1,
  acting: 'person',
  loading: false,
  reading: false,
  unavailable: null,
  seq: 9,
};

function message(object: object, image: number[] = []): ArrayBuffer {
  const text = new TextEncoder().encode(JSON.stringify(object));
  const bytes = new Uint8Array([text.length & 255, text.length >> 8, ...text, ...image]);
  return bytes.buffer;
}

it('readMessage splits a frame into status and JPEG, and knows the end of a session', () => {
  const frame = readMessage(message(STATUS, [255, 216, 255]));
  expect(frame).toMatchObject({ status: STATUS });
  expect('jpeg' in frame && frame.jpeg?.size).toBe(3);
  expect(readMessage(message({ ended: 'its player has left' }))).toEqual({ ended: 'its player has left' });
});

it('looksSame ignores what no part of the page shows', () => {
  expect(looksSame(STATUS, { ...STATUS, frames: 121, seq: 10 })).toBe(true);
  expect(looksSame(STATUS, { ...STATUS, score: 4 })).toBe(false);
  expect(looksSame(STATUS, { ...STATUS, acting: 'agent' })).toBe(false);
  expect(looksSame(STATUS, { ...STATUS, loading: true })).toBe(false);
  expect(looksSame(STATUS, { ...STATUS, reading: true })).toBe(false);
  expect(looksSame(STATUS, { ...STATUS, unavailable: 'it crashed' })).toBe(false);
  expect(looksSame(STATUS, { ...STATUS, practice: true })).toBe(false);
  expect(looksSame(null, STATUS)).toBe(false);
});
