import { Button, Group, Modal } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import type { ReactNode, SubmitEvent } from 'react';
import { Problem } from './feedback';

type Props = {
  opened: boolean;
  onClose: () => void;
  title: string;
  /** What exactly will happen. */
  children: ReactNode;
  /** The label of the confirming button; without it the dialog can only be closed. */
  action: string | undefined;
  /** The label of the dismissing button. */
  dismiss?: string;
  danger?: boolean;
  disabled?: boolean;
  onConfirm: () => Promise<unknown>;
};

/** Asks for confirmation, and stays open to show the error when the action fails. */
export function ConfirmDialog({
  opened,
  onClose,
  title,
  children,
  action,
  dismiss = 'Cancel',
  danger,
  disabled = false,
  onConfirm,
}: Props) {
  const work = useMutation({ mutationFn: onConfirm, onSuccess: onClose });
  const close = (): void => {
    if (work.isPending) return; // else nobody would see its error
    work.reset();
    onClose();
  };
  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault();
    event.stopPropagation(); // else a form around this dialog would submit, too
    if (action !== undefined && !disabled && !work.isPending) work.mutate();
  };
  return (
    <Modal opened={opened} onClose={close} title={title} size="md">
      <form noValidate onSubmit={submit} style={{ display: 'grid', gap: 16 }}>
        <div>{children}</div>
        {work.isError && <Problem error={work.error} />}
        <Group justify="flex-end" gap={8}>
          {action === undefined ? (
            // The button that had the focus is gone.
            <Button variant="default" onClick={close} autoFocus>
              Close
            </Button>
          ) : (
            <>
              {/* A stray Enter must not delete anything. */}
              <Button variant="default" onClick={close} data-autofocus={danger ? true : undefined}>
                {dismiss}
              </Button>
              <Button
                {...(danger ? { color: 'red' } : {})}
                loading={work.isPending}
                // Not `disabled`: it keeps its initial focus while it cannot be pressed yet.
                data-disabled={disabled}
                aria-disabled={disabled}
                type="submit"
                data-autofocus={danger ? undefined : true}
              >
                {action}
              </Button>
            </>
          )}
        </Group>
      </form>
    </Modal>
  );
}
