import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import { Name, Score } from './text';

afterEach(cleanup);

it('Name breaks between its parts, and within long ones only', () => {
  const name = `lr 0.001 · ${'a'.repeat(30)} · seed 3`;
  render(<Name name={name} title="mine" />);
  const shown = screen.getByTitle('mine');
  expect(shown.textContent).toBe(name); // search and copying have all of it
  const unbroken = Array.from(shown.querySelectorAll('.nowrap'), ({ textContent }) => textContent);
  expect(unbroken).toEqual(['lr 0.001 ·', 'seed 3']);
});

it.each([
  [3.95, '3.95', ''],
  [76, '76.0', '0'],
  [12_345, '12,345', '.00'],
  [null, '–', '.00'],
])('Score %d leaves room for the decimals that it lacks', (value, text, room) => {
  render(<Score value={value} />);
  expect(screen.getByText(text).dataset.room).toBe(room);
});
