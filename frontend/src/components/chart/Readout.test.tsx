import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { Readout } from './Readout';

afterEach(cleanup);

const entries = Array.from({ length: 20 }, (_, n) => ({
  name: `run ${n}`,
  colour: '#123456',
  value: 20 - n,
  details: undefined,
  note: undefined,
}));

it('Readout shows how many lines it has no room for', () => {
  render(<Readout heading="Agent steps 1" entries={entries} room={11} above={false} percent={false} />);
  const lines = screen.getAllByRole('listitem', { hidden: true }).map(({ textContent }) => textContent);
  expect(lines).toHaveLength(11);
  expect(lines.slice(-2)).toEqual(['run 911', 'and 10 more']);
});

it('Readout shows all lines that fit', () => {
  render(<Readout heading="Agent steps 1" entries={entries} room={20} above={false} percent={false} />);
  expect(screen.getAllByRole('listitem', { hidden: true })).toHaveLength(20);
  expect(screen.queryByText(/more/)).toBeNull();
});
