import { MantineProvider } from '@mantine/core';
import { cleanup, render } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import type { Sweep } from '@/api/sweeps';
import { SweepState } from './SweepState';

afterEach(cleanup);

const shown = (state: Sweep['state'], runs: Sweep['runs']): string | null => {
  const sweep = { state, state_reason: 'created', runs } as Sweep;
  return (
    render(<SweepState sweep={sweep} />, { wrapper: MantineProvider }).container.querySelector('span')
      ?.textContent ?? null
  );
};

it.each([
  ['running', { queued: 10, finished: 2 }, 'queued'],
  ['running', { queued: 9, running: 1 }, 'running'],
  ['running', {}, 'running'],
  ['stopped', { queued: 1 }, 'stopped'],
] as const)('a sweep that is %s with the runs %o is shown as %s', (state, runs, text) =>
  expect(shown(state, runs)).toBe(text),
);
