import { describe, expect, it } from 'vitest';
import { readFrame } from './LiveView';

describe('readFrame', () => {
  it('reads the agent step and the JPEG image', async () => {
    const bytes = new Uint8Array([0x40, 0xe2, 0x01, 0, 0, 0, 0, 0, 0xff, 0xd8, 0xff]);
    const frame = readFrame(bytes.buffer);
    expect(frame?.agentSteps).toBe(123_456);
    expect(new Uint8Array((await frame?.jpeg.arrayBuffer()) ?? [])).toEqual(
      new Uint8Array([0xff, 0xd8, 0xff]),
    );
  });

  it('returns null for a message without an image', () => expect(readFrame(new ArrayBuffer(8))).toBeNull());
});
