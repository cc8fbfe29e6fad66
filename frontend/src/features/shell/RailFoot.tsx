import { Menu } from '@mantine/core';
import { IconMoon, IconSun } from '@tabler/icons-react';
import { useMutation, useQuery } from '@tanstack/react-query';
import { logOut, meQuery } from '@/api/account';
import { asProblem } from '@/api/problem';
import { MenuLink } from '@/components/controls';
import { showToast } from '@/components/toasts';
import { served } from '@/lib/base';
import { ShortcutsItem } from './KeyedDialogs';
import { useTheme } from './theme';
import classes from './shell.module.css';

/** The foot of the navigation: the theme and the account. On a phone they are under More. */
export function RailFoot() {
  const { other, label, toggle } = useTheme();
  const { data: me } = useQuery(meQuery);
  const Icon = other === 'dark' ? IconMoon : IconSun;
  return (
    <div className={classes.foot}>
      <button type="button" className={classes.navItem} aria-label={label} title={label} onClick={toggle}>
        <Icon size={20} stroke={1.75} aria-hidden="true" />
        Theme
      </button>
      <Menu position="right-end" withinPortal>
        <Menu.Target>
          <button type="button" className={classes.navItem}>
            <span className={classes.initial} aria-hidden="true">
              {me?.name.charAt(0).toUpperCase()}
            </span>
            Account
          </button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Label>{me ? `${me.name}, ${me.role}` : 'Signed in'}</Menu.Label>
          <MenuLink to="/settings">Settings</MenuLink>
          <MenuLink to="/settings/storage">Storage</MenuLink>
          <ShortcutsItem />
          <SignOutItem />
        </Menu.Dropdown>
      </Menu>
    </div>
  );
}

/** Switches to the other theme. */
export function ThemeItem() {
  const { label, toggle } = useTheme();
  return <Menu.Item onClick={toggle}>{label}</Menu.Item>;
}

/** Ends the session. */
export function SignOutItem() {
  // A full page load, so that nothing of the old session remains.
  const signOut = useMutation({
    mutationFn: logOut,
    onSuccess: () => location.assign(served('/login')),
    // The menu is closed by then.
    onError: (error) => showToast(`You are still signed in: ${asProblem(error).message}`),
  });
  return <Menu.Item onClick={() => signOut.mutate()}>Sign out</Menu.Item>;
}
