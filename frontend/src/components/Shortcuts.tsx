import { Modal } from '@mantine/core';
import { useState } from 'react';
import classes from './feedback.module.css';
import { Keys } from './Keys';
import { SHORTCUTS } from './shortcutTable';

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
                  <Keys keys={keys} />
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

/** The list of shortcuts as a dialog. `opens` grows with each time that it is asked for. */
export function ShortcutsDialog({ opens }: { opens: number }) {
  const [closed, setClosed] = useState(0);
  return (
    <Modal opened={opens > closed} onClose={() => setClosed(opens)} title="Keyboard shortcuts" size="md">
      <ShortcutList />
    </Modal>
  );
}
