import { expect, it } from 'vitest';
import { readPicture } from './livePicture';

it('reads the agent step and the picture', async () => {
  const bytes = new Uint8Array([0x40, 0xe2, 0x01, 0, 0, 0, 0, 0, 0xff, 0xd8, 0xff]);
  const picture = readPicture(bytes.buffer);
  expect(picture?.agentSteps).toBe(123_456);
  expect(new Uint8Array((await picture?.jpeg.arrayBuffer()) ?? [])).toEqual(
    new Uint8Array([0xff, 0xd8, 0xff]),
  );
});

it('passes over what is no picture', () => expect(readPicture(new ArrayBuffer(8))).toBeNull());
