import { Button, Menu } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { COLUMNS, type Column } from './columns';

const KEY = 'callboard-run-columns';
const FIXED: ReadonlySet<string> = new Set(['state', 'name', 'actions']);

/** The columns someone chose, remembered in this browser. */
export function useColumns(): {
  columns: readonly Column[];
  hidden: string[];
  setHidden: (ids: string[]) => void;
} {
  const [hidden, setHidden] = useLocalStorage<string[]>({
    key: KEY,
    defaultValue: [],
    getInitialValueInEffect: false,
  });
  return { columns: COLUMNS.filter(({ id }) => !hidden.includes(id)), hidden, setHidden };
}

type Props = { hidden: readonly string[]; onHidden: (ids: string[]) => void };

/** Chooses the columns. */
export function ColumnMenu({ hidden, onHidden }: Props) {
  return (
    <Menu closeOnItemClick={false} position="bottom-end">
      <Menu.Target>
        <Button variant="default" visibleFrom="sm">
          Columns
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {COLUMNS.filter(({ id }) => !FIXED.has(id)).map(({ id, title }) => {
          const shown = !hidden.includes(id);
          return (
            <Menu.CheckboxItem
              key={id}
              checked={shown}
              onChange={() => onHidden(shown ? [...hidden, id] : hidden.filter((each) => each !== id))}
            >
              {title}
            </Menu.CheckboxItem>
          );
        })}
      </Menu.Dropdown>
    </Menu>
  );
}
