/** The keys of all pages: what `?` lists and the palette presses. Loaded with either. */
import { GLOBAL, type Shortcut } from '@/lib/shortcuts';

type Section = {
  page: string;
  /** The paths of the pages; without it, the keys that the palette presses are those of every page. */
  at?: RegExp;
  shortcuts: readonly Shortcut[];
};

export const SHORTCUTS: readonly Section[] = [
  {
    page: 'Every page',
    shortcuts: [GLOBAL.palette, GLOBAL.search, GLOBAL.shortcuts],
  },
  {
    page: 'Runs',
    at: /^\/$|^\/w\//,
    shortcuts: [
      { keys: ['↑', '↓', 'Home', 'End'], action: 'Move in the list; also J and K' },
      { keys: ['→', '←'], action: 'Move within the row' },
      { keys: ['Space'], action: 'Select the run; also X' },
      { keys: ['Enter'], action: 'Open the run' },
      { keys: ['C'], press: 'c', action: 'Compare the selected runs' },
      { keys: ['Esc'], action: 'Back to the list, or to the row' },
    ],
  },
  {
    page: 'Charts beside the list',
    at: /^\/$|^\/w\//,
    shortcuts: [
      { keys: ['Space'], action: 'Draw or hide; also X' },
      { keys: ['['], press: '[', action: 'Hide or show the list' },
    ],
  },
  {
    page: 'New run',
    shortcuts: [
      { keys: ['↑', '↓'], action: 'Choose environment, algorithm or preset' },
      { keys: ['Enter'], action: 'Start the run, in a field of one line' },
    ],
  },
  {
    page: 'Charts',
    shortcuts: [
      { keys: ['Drag'], action: 'Zoom; with Shift or along an axis, move; double-click to show all' },
      { keys: ['←', '→'], action: 'Move by a tenth, in a focused chart' },
      { keys: ['+', '-', '0'], action: 'Zoom in, zoom out, show all' },
    ],
  },
  {
    page: 'Replay',
    at: /^\/runs\/.|^\/play\/recordings\/./,
    shortcuts: [
      {
        keys: ['F'],
        press: 'f',
        action: 'On a run’s page, the full replay, or a sent video on the whole screen; and back',
      },
      { keys: ['Space'], press: ' ', action: 'Play or pause' },
      { keys: ['←', '→', ',', '.'], action: 'Move by one agent step; on the timeline with Shift by ten' },
      { keys: ['1', '…', '8'], action: 'Set the speed' },
      { keys: ['R'], press: 'r', action: 'Next reward; with Shift the previous one' },
      { keys: ['L'], press: 'l', action: 'Next lost life; with Shift the previous one' },
      { keys: ['E'], press: 'e', action: 'Largest value error' },
    ],
  },
  {
    page: 'Play',
    at: /^\/play\/[^/]+$/,
    shortcuts: [
      { keys: ['←', '→', '↑', '↓'], action: 'Steer; also A, D, W and S; Q and E step aside in a maze' },
      { keys: ['Space'], action: 'Fire' },
      { keys: ['P'], press: 'p', action: 'Pause or continue' },
      { keys: ['N'], press: 'n', action: 'New game' },
      { keys: ['T'], press: 't', action: 'Hand over to the agent, or take over' },
    ],
  },
];

/** The shortcuts that the palette offers on a page. */
export const shortcutsAt = (path: string): Shortcut[] =>
  SHORTCUTS.filter(({ at }) => at === undefined || at.test(path)).flatMap(({ shortcuts }) =>
    shortcuts.filter(({ press }) => press !== undefined),
  );
