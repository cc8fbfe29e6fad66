import { PasswordInput, type PasswordInputProps } from '@mantine/core';

/** The kit's field, which by itself tells no screen reader that it is refused and shows nothing by keyboard. */
export function PasswordField({ error, ...props }: PasswordInputProps) {
  return (
    <PasswordInput
      size="xs"
      error={error}
      {...(error ? { 'aria-invalid': true } : {})}
      visibilityToggleFocusable
      visibilityToggleButtonProps={{ 'aria-label': 'Show what is typed' }}
      {...props}
    />
  );
}
