import { Button, Code, CopyButton, NativeSelect, TextInput } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { accountActions, ROLES, tokensQuery, useAccountChange, type Role, type Token } from '@/api/account';
import { BusyButton } from '@/components/BusyButton';
import { Confirm } from '@/components/Confirm';
import { Empty, Loading, Problem } from '@/components/feedback';
import { RunName } from '@/components/RunName';
import { Time } from '@/components/Time';
import { formatDay } from '@/lib/format';
import classes from './account.module.css';

const LIFETIMES = [
  { value: '30', label: '30 days' },
  { value: '365', label: 'a year' },
  { value: '', label: 'for ever' },
];

/** Keys for scripts: made, shown once, revoked. */
export function TokensPanel({ role: mine }: { role: Role }) {
  const { data, error, refetch } = useInfiniteQuery(tokensQuery);
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role>(mine);
  const [days, setDays] = useState('30');
  const [leaving, setLeaving] = useState<Token | null>(null);
  const panel = useRef<HTMLElement>(null);
  const blank = name !== '' && name.trim() === '';
  const create = useAccountChange(() =>
    accountActions.createToken({ name: name.trim(), role, expires_in_days: days ? Number(days) : null }),
  );
  const tokens = data?.pages.flatMap(({ items }) => items);
  const allowed = ROLES.slice(0, ROLES.indexOf(mine) + 1);
  return (
    <section ref={panel} tabIndex={-1} className={`panel ${classes.panel}`} aria-label="Tokens">
      <h2 className="section-title">Tokens for scripts</h2>
      <form
        className={classes.line}
        onSubmit={(event) => {
          event.preventDefault();
          if (!blank) create.mutate(undefined, { onSuccess: () => setName('') });
        }}
      >
        <TextInput
          label="What it is for"
          required
          maxLength={100}
          value={name}
          error={blank && 'Say what it is for.'}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
        <NativeSelect
          size="xs"
          label="May do as much as"
          data={allowed}
          value={role}
          onChange={({ currentTarget }) => setRole(currentTarget.value as Role)}
        />
        <NativeSelect
          size="xs"
          label="Works for"
          data={LIFETIMES}
          value={days}
          onChange={({ currentTarget }) => setDays(currentTarget.value)}
        />
        <BusyButton type="submit" variant="default" loading={create.isPending}>
          Make a token
        </BusyButton>
      </form>
      {create.isError && <Problem error={create.error} />}
      {create.data && (
        <div className={classes.secret} role="status">
          <span>
            The token “{create.data.name}”. It is shown only now; send it as{' '}
            <Code>Authorization: Bearer</Code>.
          </span>
          <Code block>{create.data.token}</Code>
          <CopyButton value={create.data.token}>
            {({ copied, copy }) => (
              <Button variant="default" onClick={copy}>
                {copied ? 'Copied' : 'Copy'}
              </Button>
            )}
          </CopyButton>
        </div>
      )}
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!tokens && !error && <Loading label="Loading the tokens" lines={2} />}
      {tokens?.length === 0 && <Empty>You have no token.</Empty>}
      {tokens && tokens.length > 0 && (
        <div className={classes.table}>
          <table className="grid">
            <thead>
              <tr>
                <th>For</th>
                <th>Role</th>
                <th>Made</th>
                <th>Works until</th>
                <th>
                  <span className="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {tokens.map((token) => (
                <tr key={token.id}>
                  <td className={classes.name} title={token.name}>
                    <RunName name={token.name} />
                  </td>
                  <td>{token.role}</td>
                  <td>
                    <Time at={token.created_at} />
                  </td>
                  <td>{token.expires_at ? formatDay(token.expires_at) : 'it is revoked'}</td>
                  <td className="right">
                    <Button
                      size="compact-xs"
                      variant="default"
                      aria-label={`Revoke ${token.name}`}
                      onClick={() => setLeaving(token)}
                    >
                      Revoke
                    </Button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <Revoke
        token={leaving}
        onClose={() => setLeaving(null)}
        // Its row, and with it the button that had the focus, is gone.
        onRevoked={() => panel.current?.focus()}
      />
    </section>
  );
}

type RevokeProps = { token: Token | null; onClose: () => void; onRevoked: () => void };

function Revoke({ token, onClose, onRevoked }: RevokeProps) {
  const revoke = useAccountChange((id: string) => accountActions.revokeToken(id));
  return (
    <Confirm
      opened={token !== null}
      onClose={onClose}
      title={`Revoke the token “${token?.name ?? ''}”`}
      action="Revoke"
      danger
      onConfirm={async () => {
        if (token) await revoke.mutateAsync(token.id);
        onRevoked();
      }}
    >
      Scripts that use it are refused from now on. This cannot be undone; make another token for them.
    </Confirm>
  );
}
