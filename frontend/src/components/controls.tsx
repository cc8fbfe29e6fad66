import {
  ActionIcon,
  type ActionIconProps,
  Anchor,
  type AnchorProps,
  Button,
  type ButtonProps,
  Menu,
  type MenuItemProps,
  PasswordInput,
  type PasswordInputProps,
} from '@mantine/core';
import type { UseInfiniteQueryResult } from '@tanstack/react-query';
import { createLink } from '@tanstack/react-router';
import type { AnchorHTMLAttributes, ComponentPropsWithRef, Ref } from 'react';

type Props = Omit<ButtonProps, 'disabled'> &
  Omit<ComponentPropsWithRef<'button'>, keyof ButtonProps> & {
    /** Whether it does nothing now; unlike a disabled button it can be focused, so that its reason is read. */
    unavailable?: boolean;
  };

/** A button that keeps focus while loading; Mantine's own is disabled then and loses it. */
export function LoadingButton({ loading = false, unavailable = false, onClick, ...props }: Props) {
  return (
    <Button
      {...props}
      loading={loading}
      {...(unavailable ? { 'data-disabled': true } : {})}
      aria-disabled={loading || unavailable}
      renderRoot={(root) => <button {...root} disabled={false} />}
      onClick={(event) => (loading || unavailable ? event.preventDefault() : onClick?.(event))}
    />
  );
}

/** Fetches the next page of a list; absent at its end. */
export function ShowMore({
  query: { hasNextPage, isFetchingNextPage, fetchNextPage },
  ...props
}: ButtonProps & {
  query: Pick<UseInfiniteQueryResult, 'hasNextPage' | 'isFetchingNextPage' | 'fetchNextPage'>;
}) {
  return (
    hasNextPage && (
      <LoadingButton
        variant="default"
        style={{ justifySelf: 'start' }}
        {...props}
        loading={isFetchingNextPage}
        onClick={() => void fetchNextPage()}
      >
        Show more
      </LoadingButton>
    )
  );
}

/** Mantine's password input, with its error announced and its visibility toggle reachable by keyboard. */
export function PasswordField({ error, ...props }: PasswordInputProps) {
  return (
    <PasswordInput
      size="xs"
      error={error}
      {...(error ? { 'aria-invalid': true } : {})}
      visibilityToggleFocusable
      visibilityToggleButtonProps={{ 'aria-label': 'Show password' }}
      {...props}
    />
  );
}

/** Mantine's components as links of the router, with type-checked routes. */
type Native<P> = Omit<AnchorHTMLAttributes<HTMLAnchorElement>, keyof P> & { ref?: Ref<HTMLAnchorElement> };

export const ButtonLink = createLink((props: ButtonProps & Native<ButtonProps>) => (
  <Button component="a" {...props} />
));

export const IconLink = createLink((props: ActionIconProps & Native<ActionIconProps>) => (
  <ActionIcon component="a" variant="subtle" color="gray" {...props} />
));

export const MenuLink = createLink((props: MenuItemProps & Native<MenuItemProps>) => (
  <Menu.Item component="a" {...props} />
));

/** As large as the text around it. */
export const TextLink = createLink((props: AnchorProps & Native<AnchorProps>) => (
  <Anchor inherit {...props} />
));
