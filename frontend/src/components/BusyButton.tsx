import { Button, type ButtonProps } from '@mantine/core';
import type { ComponentPropsWithRef } from 'react';

type Props = Omit<ButtonProps, 'disabled'> & Omit<ComponentPropsWithRef<'button'>, keyof ButtonProps>;

/** A button that keeps the focus while its work is under way: the kit's is disabled then, and loses it. */
export function BusyButton({ loading = false, onClick, ...props }: Props) {
  return (
    <Button
      {...props}
      loading={loading}
      aria-disabled={loading}
      renderRoot={(root) => <button {...root} disabled={false} />}
      onClick={(event) => (loading ? event.preventDefault() : onClick?.(event))}
    />
  );
}
