import { describe, expect, it } from 'vitest';
import type { Environment } from '@/api/catalogue';
import type { Host } from '@/api/hosts';
import { newDraft, type Draft } from './draft';
import { CROP, notesOf, PRECISION } from './notes';

const PACMAN = { title: 'Ms. Pac-Man', crop_hides: 0.236 } as Environment;

const draft = (change: Partial<Draft> = {}): Draft => ({
  ...newDraft({ algorithms: [], environments: [] }, {}),
  ...change,
});

const host = (id: string, cpu: string, ...gpus: string[]): Host =>
  ({ id, alive: true, queues: ['cpu'], devices: [cpu, ...gpus] }) as Host;

describe('the note on the crop', () => {
  it('shows what share of the moving pixels it hides', () =>
    expect(notesOf(draft({ raw: { [CROP]: true } }), PACMAN, []).get(CROP)?.text).toContain('hides 24 %'));

  it('is absent without the crop or a measurement', () => {
    expect(notesOf(draft({ raw: { [CROP]: false } }), PACMAN, []).size).toBe(0);
    const unknown = { ...PACMAN, crop_hides: null };
    expect(notesOf(draft({ raw: { [CROP]: true } }), unknown, []).size).toBe(0);
  });
});

describe('the note on the precision', () => {
  const zen3 = host('zen3', 'cpu');
  const zen4 = host('zen4', 'cpu (avx512_bf16)');
  const precision = (hosts: Host[], change: Partial<Draft> = {}) =>
    notesOf(draft(change), undefined, hosts).get(PRECISION);

  it('makes bf16 unavailable where no host has it', () =>
    expect(precision([zen3])).toMatchObject({ unavailable: 'bf16' }));

  it('is absent where every host has it, or none is known', () => {
    expect(precision([zen4, host('gpu', 'cpu', 'cuda:0 (NVIDIA H200)')])).toBeUndefined();
    expect(precision([])).toBeUndefined();
  });

  it('names the hosts that have it, and judges the chosen one', () => {
    expect(precision([zen3, zen4])?.text).toContain('choose one of: zen4');
    expect(precision([zen3, zen4])?.unavailable).toBeUndefined();
    expect(precision([zen3, zen4], { host: 'zen3' })?.unavailable).toBe('bf16');
    expect(precision([zen3, zen4], { host: 'zen4' })).toBeUndefined();
  });

  it('ignores hosts that are offline or serve another queue', () =>
    expect(precision([zen4, { ...zen3, alive: false }, { ...zen3, queues: ['gpu'] }])).toBeUndefined());
});
