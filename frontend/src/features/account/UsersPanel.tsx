import { Button, NativeSelect, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { accountActions, ROLES, useAccountMutation, usersQuery, type Role, type User } from '@/api/account';
import { asProblem } from '@/api/problem';
import { ConfirmDialog } from '@/components/ConfirmDialog';
import { LoadingButton, PasswordField } from '@/components/controls';
import { Loading, Problem } from '@/components/feedback';
import { RelativeTime } from '@/components/text';
import classes from './account.module.css';

/** User accounts and their roles, for admins. */
export function UsersPanel({ me }: { me: string }) {
  const { data: users, error, refetch } = useQuery(usersQuery);
  const [removing, setRemoving] = useState<User | null>(null);
  const [changing, setChanging] = useState<{ user: User; role: Role } | null>(null);
  const panel = useRef<HTMLElement>(null);
  const change = useAccountMutation(({ id, role }: { id: string; role: Role }) =>
    accountActions.changeUser(id, role),
  );
  const remove = useAccountMutation((id: string) => accountActions.deleteUser(id));
  return (
    <section ref={panel} tabIndex={-1} className={`panel ${classes.panel}`} aria-label="Users">
      <NewUser />
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!users && !error && <Loading label="Loading the users" lines={2} />}
      {users && (
        <div className="scroll-x">
          <table className="grid">
            <thead>
              <tr>
                <th>Name</th>
                <th>Role</th>
                <th>Created</th>
                <th>
                  <span className="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {users.map((user) => (
                <tr key={user.id}>
                  <td className={classes.name}>
                    <span className="whole">{user.name}</span>
                    {user.id === me && <span className="muted"> (you)</span>}
                  </td>
                  <td>
                    {user.id === me ? (
                      user.role
                    ) : (
                      <NativeSelect
                        aria-label={`Role of ${user.name}`}
                        data={[...ROLES]}
                        value={user.role}
                        onChange={({ currentTarget }) =>
                          setChanging({ user, role: currentTarget.value as Role })
                        }
                      />
                    )}
                  </td>
                  <td>
                    <RelativeTime at={user.created_at} />
                  </td>
                  <td className="right">
                    {user.id !== me && (
                      <Button
                        size="compact-xs"
                        variant="default"
                        aria-label={`Remove ${user.name}`}
                        onClick={() => setRemoving(user)}
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
      <ConfirmDialog
        opened={changing !== null}
        onClose={() => setChanging(null)}
        title={`Change the role of ${changing?.user.name ?? ''}`}
        action={`Make ${changing?.role ?? ''}`}
        onConfirm={async () => {
          if (changing) await change.mutateAsync({ id: changing.user.id, role: changing.role });
        }}
      >
        The role changes from {changing?.user.role} to {changing?.role}, at once.
        {changing &&
          isLower(changing.role, changing.user.role) &&
          ` The user's tokens of a higher role are lowered to ${changing.role} for good.`}
      </ConfirmDialog>
      <ConfirmDialog
        opened={removing !== null}
        onClose={() => setRemoving(null)}
        title={`Remove user ${removing?.name ?? ''}`}
        action="Remove"
        danger
        onConfirm={async () => {
          if (removing) await remove.mutateAsync(removing.id);
          // Its row is gone, and with it the button that had the focus.
          panel.current?.focus();
        }}
      >
        The user is signed out and their tokens are revoked. Runs they started are kept.
      </ConfirmDialog>
    </section>
  );
}

const isLower = (role: Role, than: Role): boolean => ROLES.indexOf(role) < ROLES.indexOf(than);

function NewUser() {
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const [role, setRole] = useState<Role>('operator');
  const create = useAccountMutation(() => accountActions.createUser({ name: name.trim(), password, role }));
  const problem = asProblem(create.error);
  const blank = name !== '' && name.trim() === '';
  const fieldErrors = new Map(problem.fields.map(({ field, message }) => [field, message]));
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
            ? 'Enter a name.'
            : (fieldErrors.get('name') ??
              (create.isError && fieldErrors.size === 0 ? problem.message : undefined))
        }
        onChange={({ currentTarget }) => setName(currentTarget.value)}
      />
      <PasswordField
        label="Initial password"
        required
        autoComplete="new-password"
        value={password}
        error={fieldErrors.get('password')}
        onChange={({ currentTarget }) => setPassword(currentTarget.value)}
      />
      <NativeSelect
        label="Role"
        data={[...ROLES]}
        value={role}
        onChange={({ currentTarget }) => setRole(currentTarget.value as Role)}
      />
      <LoadingButton type="submit" variant="default" loading={create.isPending}>
        Add user
      </LoadingButton>
    </form>
  );
}
