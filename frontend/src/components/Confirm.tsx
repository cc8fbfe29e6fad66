import { Button, Group, Modal } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { Problem } from './feedback';

type Props = {
  opened: boolean;
  onClose: () => void;
  title: string;
  /** Exactly what will happen. */
  children: ReactNode;
  /** What the button says; the same words as the action's name. Without it there is nothing to do but close. */
  action: string | undefined;
  danger?: boolean;
  disabled?: boolean;
  onConfirm: () => Promise<unknown>;
};

/** Asks before something that cannot be taken back, and stays open to tell if it failed. */
export function Confirm({
  opened,
  onClose,
  title,
  children,
  action,
  danger,
  disabled = false,
  onConfirm,
}: Props) {
  const work = useMutation({ mutationFn: onConfirm, onSuccess: onClose });
  const close = (): void => {
    work.reset();
    onClose();
  };
  return (
    <Modal opened={opened} onClose={close} title={title} size="md">
      <div style={{ display: 'grid', gap: 16 }}>
        <div>{children}</div>
        {work.isError && <Problem error={work.error} />}
        <Group justify="flex-end" gap={8}>
          {action === undefined ? (
            // What had the focus is gone.
            <Button variant="default" onClick={close} autoFocus>
              Close
            </Button>
          ) : (
            <>
              {/* Enter must never delete by accident. */}
              <Button variant="default" onClick={close} data-autofocus={danger ? true : undefined}>
                Cancel
              </Button>
              <Button
                {...(danger ? { color: 'red' } : {})}
                loading={work.isPending}
                // It keeps the focus it has from the beginning, also while it may not be pressed yet.
                data-disabled={disabled}
                aria-disabled={disabled}
                onClick={() => !disabled && work.mutate()}
                data-autofocus={danger ? undefined : true}
              >
                {action}
              </Button>
            </>
          )}
        </Group>
      </div>
    </Modal>
  );
}
