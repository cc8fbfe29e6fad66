import { Button } from '@mantine/core';
import { useState } from 'react';
import { accountActions, useAccountChange } from '@/api/account';
import { asProblem } from '@/api/problem';
import { PasswordField } from '@/components/PasswordField';
import classes from './account.module.css';

/** Changes one's own password; someone who came in by a link may have none yet. */
export function PasswordPanel() {
  const [current, setCurrent] = useState('');
  const [next, setNext] = useState('');
  const change = useAccountChange(async () => {
    await accountActions.changePassword(current, next);
    setCurrent('');
    setNext('');
  });
  const fields = new Map(asProblem(change.error).fields.map(({ field, message }) => [field, message]));
  const failed = change.isError && fields.size === 0 ? asProblem(change.error).message : undefined;
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
        label="Present password"
        description="Leave it empty if you have none yet."
        autoComplete="current-password"
        value={current}
        error={fields.get('current')}
        onChange={({ currentTarget }) => setCurrent(currentTarget.value)}
      />
      <PasswordField
        label="New password"
        autoComplete="new-password"
        required
        value={next}
        error={fields.get('new') ?? failed}
        onChange={({ currentTarget }) => setNext(currentTarget.value)}
      />
      <div className="row">
        <Button type="submit" variant="default" loading={change.isPending} disabled={next === ''}>
          Change password
        </Button>
        <span role="status" className="muted">
          {change.isSuccess ? 'Changed. Your other browsers are signed out.' : ''}
        </span>
      </div>
    </form>
  );
}
