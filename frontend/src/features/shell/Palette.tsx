import '@mantine/spotlight/styles.css';
import { createSpotlight, Spotlight, useSpotlight } from '@mantine/spotlight';
import { IconSearch } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { meQuery } from '@/api/account';
import { Keys } from '@/components/Keys';
import { useRecent } from '@/lib/recent';
import { pressKey } from '@/lib/shortcuts';
import classes from './palette.module.css';
import { type Item, storedOf, useGo, useItems } from './paletteItems';

const [store, spotlight] = createSpotlight();

/** Goes to what is typed, or acts. `opens` grows with each time that it is asked for. */
export function Palette({ opens }: { opens: number }) {
  /** What had the focus before. */
  const before = useRef<Element>(null);
  const pressed = useRef<string>(undefined);
  useEffect(() => {
    before.current = document.activeElement;
    spotlight.open();
    return spotlight.close;
  }, [opens]);
  return (
    <Spotlight.Root
      store={store}
      shortcut={null}
      attributes={{ content: { 'aria-label': 'Go to' } }}
      classNames={{ action: classes.action }}
      overlayProps={{ backgroundOpacity: 0.35 }}
      yOffset="8vh"
      scrollable
      maxHeight="min(520px, 80dvh)"
      returnFocus={false}
      transitionProps={{
        duration: 80,
        onExited: () => {
          if (before.current instanceof HTMLElement) before.current.focus({ preventScroll: true });
          if (pressed.current !== undefined) pressKey(pressed.current);
          pressed.current = undefined;
        },
      }}
    >
      <Choices
        onPress={(key) => {
          pressed.current = key;
        }}
      />
    </Spotlight.Root>
  );
}

const idOf = (at: number): string => `palette-${at}`;

/** The field and what it matches. */
function Choices({ onPress }: { onPress: (key: string) => void }) {
  const { query, selected, listId } = useSpotlight(store);
  const { data: me } = useQuery(meQuery);
  const [recent, addRecent] = useRecent('places', me?.id);
  const items = useItems(query, recent, me?.role === 'admin');
  const go = useGo();
  // Answers come later: whatever is first is selected as long as nothing else is.
  const at = items.length === 0 ? -1 : Math.min(Math.max(0, selected), items.length - 1);
  useEffect(() => {
    if (at !== selected) store.updateState((state) => ({ ...state, selected: at }));
  }, [at, selected]);
  const choose = ({ place, press, act }: Item): void => {
    if (press !== undefined) onPress(press);
    act?.();
    if (!place) return;
    addRecent(storedOf(place));
    go(place);
  };
  const groups = [...Map.groupBy(items, ({ group }) => group)];
  return (
    <>
      <Spotlight.Search
        placeholder="Page, run, view, action or documentation…"
        aria-label="Go to"
        role="combobox"
        aria-expanded={items.length > 0}
        aria-controls={listId || undefined}
        aria-activedescendant={at < 0 ? undefined : idOf(at)}
        leftSection={<IconSearch size={18} aria-hidden="true" />}
        autoComplete="off"
        spellCheck={false}
      />
      <Spotlight.ActionsList role="listbox" aria-label="Matches">
        {groups.map(([group, members]) => (
          <Spotlight.ActionsGroup key={group} label={group} role="group" aria-label={group}>
            {members.map((item) => {
              const n = items.indexOf(item);
              return (
                <Spotlight.Action
                  key={item.key}
                  ref={(element) => {
                    if (element) element.id = idOf(n); // the component drops the property
                  }}
                  role="option"
                  aria-selected={n === at}
                  data-selected={n === at || undefined}
                  label={item.label}
                  {...(item.description === undefined ? {} : { description: item.description })}
                  rightSection={item.keys && <Keys keys={item.keys} />}
                  onClick={() => choose(item)}
                />
              );
            })}
          </Spotlight.ActionsGroup>
        ))}
      </Spotlight.ActionsList>
      {items.length === 0 && <Spotlight.Empty role="status">Nothing matches.</Spotlight.Empty>}
    </>
  );
}
