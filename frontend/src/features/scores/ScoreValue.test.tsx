import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import type { ScoreCell, ScoreColumn } from '@/api/scores';
import { ScoreValue } from './ScoreValue';

afterEach(cleanup);

it('ScoreValue leads to the comparison from which its score is computed', () => {
  const cell = { runs: ['A', 'B'], value: 18.3, comparable: true, low: null, high: null };
  render(
    <ScoreValue
      cell={cell as unknown as ScoreCell}
      column={{ id: 'paac', title: 'PAAC', source: 'ours' } as unknown as ScoreColumn}
      title="Pong"
      protocol="human_starts:pong@1"
      isNormalised={false}
      follow={() => undefined}
    />,
  );
  const { pathname, searchParams } = new URL(screen.getByRole<HTMLAnchorElement>('link').href);
  expect(pathname).toBe('/');
  expect(Object.fromEntries(searchParams)).toEqual({
    list: 'beside',
    runs: 'A,B',
    score: 'evaluation',
    at: 'end',
    protocol: 'human_starts:pong@1',
  });
});
