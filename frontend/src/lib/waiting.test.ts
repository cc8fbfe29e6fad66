import { expect, it } from 'vitest';
import { whyWaiting } from './waiting';

const host = { id: 'a', queues: ['cpu'], alive: true, draining: false, slots: 1, runs: [] as unknown[] };

it.each([
  ['no host serves it', [], ': no host serves it.'],
  ['wrong queue', [{ ...host, queues: ['gpu'] }], ': no host serves it.'],
  ['dead host', [{ ...host, alive: false }], ': no host that serves it answers.'],
  ['draining host', [{ ...host, draining: true }], ': every host that serves it is draining.'],
  ['full host', [{ ...host, runs: [1] }], ': every slot is taken.'],
  ['free host', [host], ': a host is about to take it.'],
])('%s', (_, hosts, words) => expect(whyWaiting(hosts, 'cpu')).toBe(words));

it('names the host that was asked for', () => {
  expect(whyWaiting([host], 'cpu', 'b')).toBe(': the host b it asks for is not known.');
  expect(whyWaiting([{ ...host, alive: false }], 'cpu', 'a')).toBe(': a does not answer.');
});
