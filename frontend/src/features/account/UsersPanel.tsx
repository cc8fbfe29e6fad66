import { Button, NativeSelect, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { accountActions, ROLES, useAccountChange, usersQuery, type Role, type User } from '@/api/account';
import { asProblem } from '@/api/problem';
import { BusyButton } from '@/components/BusyButton';
import { Confirm } from '@/components/Confirm';
import { Loading, Problem } from '@/components/feedback';
import { PasswordField } from '@/components/PasswordField';
import { RunName } from '@/components/RunName';
import { Time } from '@/components/Time';
import classes from './account.module.css';

/** Who may come in, and what they may do. For admins. */
export function UsersPanel({ me }: { me: string }) {
  const { data: users, error, refetch } = useQuery(usersQuery);
  const [leaving, setLeaving] = useState<User | null>(null);
  const panel = useRef<HTMLElement>(null);
  const change = useAccountChange(({ id, role }: { id: string; role: Role }) =>
    accountActions.changeUser(id, role),
  );
  const remove = useAccountChange((id: string) => accountActions.deleteUser(id));
  return (
    <section ref={panel} tabIndex={-1} className={`panel ${classes.panel}`} aria-label="Users">
      <h2 className="section-title">Users</h2>
      <NewUser />
      {change.isError && <Problem error={change.error} />}
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!users && !error && <Loading label="Loading the users" lines={2} />}
      {users && (
        <div className={classes.table}>
          <table className="grid">
            <thead>
              <tr>
                <th>Name</th>
                <th>Role</th>
                <th>Since</th>
                <th>
                  <span className="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {users.map((user) => (
                <tr key={user.id}>
                  <td className={classes.name} title={user.name}>
                    <RunName name={user.name} />
                    {user.id === me && <span className="muted"> (you)</span>}
                  </td>
                  <td>
                    {user.id === me ? (
                      user.role
                    ) : (
                      <NativeSelect
                        size="xs"
                        aria-label={`Role of ${user.name}`}
                        data={[...ROLES]}
                        value={user.role}
                        onChange={({ currentTarget }) =>
                          change.mutate({ id: user.id, role: currentTarget.value as Role })
                        }
                      />
                    )}
                  </td>
                  <td>
                    <Time at={user.created_at} />
                  </td>
                  <td className="right">
                    {user.id !== me && (
                      <Button
                        size="compact-xs"
                        variant="default"
                        aria-label={`Remove ${user.name}`}
                        onClick={() => setLeaving(user)}
                      >
                        Remove
                      </Button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <Confirm
        opened={leaving !== null}
        onClose={() => setLeaving(null)}
        title={`Remove ${leaving?.name ?? ''}`}
        action="Remove"
        danger
        onConfirm={async () => {
          if (leaving) await remove.mutateAsync(leaving.id);
          // Their row, and with it the button that had the focus, is gone.
          panel.current?.focus();
        }}
      >
        They are signed out and their tokens are refused. The runs they started stay.
      </Confirm>
    </section>
  );
}

function NewUser() {
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const [role, setRole] = useState<Role>('operator');
  const create = useAccountChange(() => accountActions.createUser({ name: name.trim(), password, role }));
  const problem = asProblem(create.error);
  const blank = name !== '' && name.trim() === '';
  const told = new Map(problem.fields.map(({ field, message }) => [field, message]));
  return (
    <form
      className={classes.line}
      onSubmit={(event) => {
        event.preventDefault();
        if (blank) return;
        create.mutate(undefined, {
          onSuccess: () => {
            setName('');
            setPassword('');
          },
        });
      }}
    >
      <TextInput
        label="Name"
        required
        autoComplete="off"
        maxLength={100}
        value={name}
        error={
          blank
            ? 'Give a name.'
            : (told.get('name') ?? (create.isError && told.size === 0 ? problem.message : undefined))
        }
        onChange={({ currentTarget }) => setName(currentTarget.value)}
      />
      <PasswordField
        label="First password"
        required
        autoComplete="new-password"
        value={password}
        error={told.get('password')}
        onChange={({ currentTarget }) => setPassword(currentTarget.value)}
      />
      <NativeSelect
        size="xs"
        label="Role"
        data={[...ROLES]}
        value={role}
        onChange={({ currentTarget }) => setRole(currentTarget.value as Role)}
      />
      <BusyButton type="submit" variant="default" loading={create.isPending}>
        Add user
      </BusyButton>
    </form>
  );
}
