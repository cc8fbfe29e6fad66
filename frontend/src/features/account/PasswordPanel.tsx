import { Button } from '@mantine/core';
import { useState } from 'react';
import { accountActions, useAccountMutation } from '@/api/account';
import { asProblem } from '@/api/problem';
import { PasswordField } from '@/components/controls';
import classes from './account.module.css';

/** Changes the user's own password; a user who signed in by a link may not have one yet. */
export function PasswordPanel() {
  const [current, setCurrent] = useState('');
  const [next, setNext] = useState('');
  const change = useAccountMutation(async () => {
    await accountActions.changePassword(current, next);
    setCurrent('');
    setNext('');
  });
  const fieldErrors = new Map(asProblem(change.error).fields.map(({ field, message }) => [field, message]));
  const otherError = change.isError && fieldErrors.size === 0 ? asProblem(change.error).message : undefined;
  return (
    <form
      className={`panel ${classes.panel}`}
      onSubmit={(event) => {
        event.preventDefault();
        change.mutate(undefined);
      }}
    >
      <h2 className="section-title">Password</h2>
      <PasswordField
        label="Current password"
        description="Leave empty if you have none yet."
        autoComplete="current-password"
        value={current}
        error={fieldErrors.get('current')}
        onChange={({ currentTarget }) => setCurrent(currentTarget.value)}
      />
      <PasswordField
        label="New password"
        autoComplete="new-password"
        required
        value={next}
        error={fieldErrors.get('new') ?? otherError}
        onChange={({ currentTarget }) => setNext(currentTarget.value)}
      />
      <div className="row">
        <Button type="submit" variant="default" loading={change.isPending} disabled={next === ''}>
          Change password
        </Button>
        <span role="status" className="muted">
          {change.isSuccess ? 'Password changed. Your other sessions are signed out.' : ''}
        </span>
      </div>
    </form>
  );
}
