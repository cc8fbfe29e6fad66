import { MantineProvider } from '@mantine/core';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { afterEach, expect, it } from 'vitest';
import glossary from '@/lib/glossary.json';
import { entryOf, type TermId } from './glossary';
import { Term, Terms } from './Term';

afterEach(cleanup);

const show = (children: React.ReactNode) => render(<MantineProvider>{children}</MantineProvider>);

/** Terms that a newcomer meets in the first minutes, as pages write them. */
const TERMS = [
  ...['PAAC', 'GA3C', 'Gorila DQN', 'Preset', 'Cropped frame', 'Agent steps', 'Frames', 'Score'],
  ...['Best return', 'EMA over points', 'EMA over x', 'Window of x', 'min–max', 'standard resets', 'Attempt'],
  ...['Group', 'Priority', 'Parameters from agent step', 'Value V', 'discounted return', 'value error'],
  ...['no-op', 'racing', 'Interquartile mean', 'not eliminated', 'Drain', 'Slots'],
];

it.each(TERMS)('explains %s in a popover', async (name) => {
  show(<Term>{name}</Term>);
  const button = screen.getByRole('button', { name });
  expect(screen.queryByRole('dialog')).toBeNull();
  fireEvent.click(button);
  expect((await screen.findByRole('dialog')).textContent).toMatch(/\.More in the documentation$/);
  fireEvent.keyDown(document.activeElement ?? button, { key: 'Escape' });
});

/** By path, the texts of the components that have terms. */
const COMPONENTS = Object.entries(
  import.meta.glob<string>(['@/**/*.tsx', '!@/**/*.test.tsx'], {
    query: '?raw',
    import: 'default',
    eager: true,
  }),
).filter(([, text]) => /<Terms?\b/.test(text));

/** Whether a component names an entry, by its id or by a name, between quotes or tags. */
const isShown = (id: string): boolean => {
  const { term, also = [] } = entryOf(id, '') ?? { term: id };
  const names = [term, ...also].map((name) => name.toLowerCase());
  return COMPONENTS.some(([, text]) =>
    [...text.matchAll(/(?<=['">])[^'"<>\n]+(?=['"<])/g)].some(
      ([word]) => word === id || names.includes(word.toLowerCase()),
    ),
  );
};

/** Of the list above without the algorithms, which the form of a new run shows by their ids. */
const IDS: readonly TermId[] = [
  ...(['preset', 'cropped_frame', 'agent_steps', 'frames', 'score', 'best_return', 'smoothing'] as const),
  ...(['band', 'evaluation', 'attempt', 'group', 'priority', 'live_parameters', 'value'] as const),
  ...(['discounted_return', 'value_error', 'no_op', 'racing', 'iqm', 'not_eliminated'] as const),
  ...(['drain', 'slots'] as const),
];

it.each(IDS)('a page explains %s', (id) => {
  expect(isShown(id)).toBe(true);
});

it('leaves a text that the glossary lacks as it is', () => {
  show(<Term>Training time</Term>);
  expect(screen.queryByRole('button')).toBeNull();
  expect(screen.getByText('Training time')).toBeTruthy();
});

it('lists several terms in a line', () => {
  show(<Terms ids={['racing', 'iqm', 'a3c']} />);
  expect(screen.getByText(/^Terms/).textContent).toBe('Terms: Racing, Interquartile mean, A3C');
});

it('has one entry for a name, in short sentences', () => {
  const names = Object.values(glossary).flatMap((entry) => [
    entry.term,
    ...('also' in entry ? entry.also : []),
  ]);
  const lower = names.map((name) => name.toLowerCase());
  expect(new Set(lower).size).toBe(names.length);
  for (const { text } of Object.values(glossary)) expect(text.length).toBeLessThan(320);
});
