import { expect, test } from 'vitest';
import { pictureOf } from './pictures';

test('every kind of world has a picture, a world of a host has none', () => {
  for (const id of [
    'ALE/Pong-v5',
    'HalfCheetah-Pixels-v5',
    'Labyrinth-Small-v0',
    'Racing-Fast-v0',
    'CartPole-v1',
  ]) {
    expect(pictureOf(id)).toMatch(/\.webp/);
  }
  expect(pictureOf('Own/Line-v0')).toBeUndefined();
});
