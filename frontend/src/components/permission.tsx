import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ComponentProps } from 'react';
import { meQuery, ROLES, type Role } from '@/api/account';

/** A role rarely changes; the service checks it at each request. */
const STALE_MS = 10 * 60_000;

/** Why the user may not do what needs this role; undefined if they may, or as long as the role is unknown. */
export function useDenied(needed: Role = 'operator'): string | undefined {
  const { data } = useQuery({ ...meQuery, staleTime: STALE_MS });
  if (!data || ROLES.indexOf(data.role) >= ROLES.indexOf(needed)) return undefined;
  return `Requires the role ${needed}; your role is ${data.role}.`;
}

type Props = Omit<ComponentProps<typeof Button<'button'>>, 'disabled'> & {
  /** Why it cannot be pressed, shown on hover and to screen readers; it stays focusable. */
  denied: string | undefined;
};

/** A button that a role may not be allowed to press. */
export function PermittedButton({ denied, onClick, title, ...props }: Props) {
  if (denied === undefined) return <Button {...props} title={title} onClick={onClick} />;
  return <Button {...props} title={denied} data-disabled aria-disabled />;
}
