import { Kbd, Modal } from '@mantine/core';
import { useWindowEvent } from '@mantine/hooks';
import { useState } from 'react';
import classes from './feedback.module.css';

type Shortcut = { keys: readonly string[]; action: string };

const SHORTCUTS: readonly { page: string; shortcuts: readonly Shortcut[] }[] = [
  {
    page: 'Every page',
    shortcuts: [
      { keys: ['/'], action: 'Search runs' },
      { keys: ['?'], action: 'Show this list' },
    ],
  },
  {
    page: 'Runs',
    shortcuts: [
      { keys: ['↑', '↓', 'Home', 'End'], action: 'Move in the list; also J and K' },
      { keys: ['→', '←'], action: 'Move within the row' },
      { keys: ['Space'], action: 'Select the run; also X' },
      { keys: ['Enter'], action: 'Open the run' },
      { keys: ['C'], action: 'Compare the selected runs' },
      { keys: ['Esc'], action: 'Back to the list, or to the row' },
    ],
  },
  {
    page: 'Compare',
    shortcuts: [
      { keys: ['↑', '↓', 'Home', 'End'], action: 'Move in the list; also J and K' },
      { keys: ['→', '←'], action: 'Move within the row' },
      { keys: ['Space'], action: 'Draw or hide; also X' },
      { keys: ['Enter'], action: 'Open the run' },
      { keys: ['['], action: 'Hide or show the list' },
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
    shortcuts: [
      {
        keys: ['F'],
        action: 'On a run’s page, the full replay, or a sent video on the whole screen; and back',
      },
      { keys: ['Space'], action: 'Play or pause' },
      { keys: ['←', '→', ',', '.'], action: 'Move by one agent step; on the timeline with Shift by ten' },
      { keys: ['1', '…', '8'], action: 'Set the speed' },
      { keys: ['R'], action: 'Next reward; with Shift the previous one' },
      { keys: ['L'], action: 'Next lost life; with Shift the previous one' },
      { keys: ['E'], action: 'Largest value error' },
    ],
  },
  {
    page: 'Play',
    shortcuts: [
      { keys: ['←', '→', '↑', '↓'], action: 'Steer; also A, D, W and S; Q and E step aside in a maze' },
      { keys: ['Space'], action: 'Fire' },
      { keys: ['P'], action: 'Pause or continue' },
      { keys: ['N'], action: 'New game' },
      { keys: ['T'], action: 'Hand over to the agent, or take over' },
    ],
  },
];

/** All keyboard shortcuts, by page. */
export function ShortcutList() {
  return (
    <div className={classes.shortcuts}>
      {SHORTCUTS.map(({ page, shortcuts }) => (
        <section key={page} aria-label={`Shortcuts: ${page}`}>
          <h2 className="section-title">{page}</h2>
          <dl>
            {shortcuts.map(({ keys, action }) => (
              <div key={action}>
                <dt>
                  {keys.map((key) => (
                    <Kbd key={key} size="xs">
                      {key}
                    </Kbd>
                  ))}
                </dt>
                <dd>{action}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
    </div>
  );
}

/** The list of shortcuts as a dialog, which `?` opens on every page. */
export function ShortcutsDialog() {
  const [opened, setOpened] = useState(false);
  useWindowEvent('keydown', (event) => {
    if (event.key !== '?' || event.ctrlKey || event.altKey || event.metaKey) return;
    if ((event.target as HTMLElement).matches('input, textarea, select, [contenteditable]')) return;
    event.preventDefault();
    setOpened(true);
  });
  return (
    <Modal opened={opened} onClose={() => setOpened(false)} title="Keyboard shortcuts" size="md">
      <ShortcutList />
    </Modal>
  );
}
