import { Menu } from '@mantine/core';
import { useWindowEvent } from '@mantine/hooks';
import { type ComponentType, useState } from 'react';
import { asProblem } from '@/api/problem';
import { Keys } from '@/components/Keys';
import { showToast } from '@/components/toasts';
import { isDialogOpen } from '@/lib/hooks';
import { GLOBAL, pressKey } from '@/lib/shortcuts';

/** `opens` grows with each time that the dialog is asked for. */
type Dialog = ComponentType<{ opens: number }>;

type Props = {
  isKey: (event: KeyboardEvent) => boolean;
  load: () => Promise<Dialog>;
};

/** A dialog that a key opens on every page. Its script is loaded with the first use. */
function KeyedDialog({ isKey, load }: Props) {
  const [Loaded, setLoaded] = useState<Dialog>();
  const [opens, setOpens] = useState(0);
  useWindowEvent('keydown', (event) => {
    if (!isKey(event)) return;
    event.preventDefault(); // browsers have a use for some of them
    if (isDialogOpen()) return;
    setOpens((n) => n + 1);
    if (Loaded) return;
    load().then(
      (dialog) => setLoaded(() => dialog),
      (error: unknown) => showToast(`The dialog was not loaded: ${asProblem(error).message}`),
    );
  });
  return Loaded && <Loaded opens={opens} />;
}

const FIELDS = 'input, textarea, select, [contenteditable]';

const isPaletteKey = ({ key, ctrlKey, metaKey, altKey, shiftKey }: KeyboardEvent): boolean =>
  key.toLowerCase() === 'k' && (ctrlKey || metaKey) && !altKey && !shiftKey;

const isShortcutsKey = ({ key, ctrlKey, metaKey, altKey, target }: KeyboardEvent): boolean =>
  key === GLOBAL.shortcuts.press &&
  !(ctrlKey || metaKey || altKey) &&
  !(target as HTMLElement).matches(FIELDS);

/** The palette and the list of shortcuts. */
export const KeyedDialogs = () => (
  <>
    <KeyedDialog isKey={isPaletteKey} load={async () => (await import('./Palette')).Palette} />
    <KeyedDialog
      isKey={isShortcutsKey}
      load={async () => (await import('@/components/Shortcuts')).ShortcutsDialog}
    />
  </>
);

export const openPalette = (): void => pressKey('k', { ctrlKey: true });

/** Opens the palette from a menu. */
export const PaletteItem = () => (
  <Menu.Item rightSection={<Keys keys={GLOBAL.palette.keys} />} onClick={openPalette}>
    Go to…
  </Menu.Item>
);

/** Lists all keys from a menu. */
export const ShortcutsItem = () => (
  <Menu.Item
    rightSection={<Keys keys={GLOBAL.shortcuts.keys} />}
    onClick={() => pressKey(GLOBAL.shortcuts.press)}
  >
    Keyboard shortcuts
  </Menu.Item>
);
