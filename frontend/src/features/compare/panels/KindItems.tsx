import { Menu } from '@mantine/core';
import { KINDS } from './kinds';

/** The kinds of panels in a menu. */
export const KindItems = ({ onKind }: { onKind: (kind: string) => void }) =>
  [...KINDS].map(([name, { label }]) => (
    <Menu.Item key={name} onClick={() => onKind(name)}>
      {label}
    </Menu.Item>
  ));
