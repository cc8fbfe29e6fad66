import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { Readout } from './Readout';

afterEach(cleanup);

const entries = Array.from({ length: 20 }, (_, n) => ({
  name: `run ${n}`,
  series: undefined,
  colour: '#123456',
  value: 20 - n,
  details: undefined,
  note: undefined,
}));

it('Readout shows how many lines it has no room for', () => {
  render(<Readout heading="Agent steps 1" entries={entries} room={11} percent={false} style={{}} />);
  const lines = screen.getAllByRole('listitem', { hidden: true }).map(({ textContent }) => textContent);
  expect(lines).toHaveLength(11);
  expect(lines.slice(-2)).toEqual(['run 911', 'and 10 more']);
});

it('Readout shows all lines that fit', () => {
  render(<Readout heading="Agent steps 1" entries={entries} room={20} percent={false} style={{}} />);
  expect(screen.getAllByRole('listitem', { hidden: true })).toHaveLength(20);
  expect(screen.queryByText(/more/)).toBeNull();
});

it('Readout marks the nearest line, and has its range', () => {
  const [, ...others] = entries.slice(0, 3);
  const first = {
    name: 'run 0',
    series: undefined,
    colour: '#123456',
    value: 20,
    details: [1, 30, 8] as const,
    note: undefined,
  };
  const all = [first, ...others];
  const card = { entries: all, nearest: first, room: 5, percent: false, style: {} };
  const { container, rerender } = render(<Readout heading="Agent steps 1" {...card} />);
  expect(container.querySelector('[data-nearest]')?.textContent).toBe('run 020');
  expect(screen.getByText('1 to 30, n = 8')).toBeTruthy();
  rerender(<Readout {...card} nearest={undefined} />);
  expect(container.querySelector('[data-nearest]')).toBeNull();
  expect(screen.queryByText('1 to 30, n = 8')).toBeNull();
});
