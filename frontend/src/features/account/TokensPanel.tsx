import { Button, Code, NativeSelect, TextInput } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { accountActions, ROLES, tokensQuery, useAccountMutation, type Role, type Token } from '@/api/account';
import { ConfirmDialog } from '@/components/ConfirmDialog';
import { LoadingButton, ShowMore } from '@/components/controls';
import { CopyButton } from '@/components/CopyButton';
import { Empty, Loading, Problem } from '@/components/feedback';
import { RelativeTime } from '@/components/text';
import { formatDay } from '@/lib/format';
import classes from './account.module.css';
import { creatorName } from './names';

const LIFETIMES = [
  { value: '30', label: 'In 30 days' },
  { value: '365', label: 'In 1 year' },
  { value: '', label: 'Never' },
];

const EXTERNAL_RUNS = 'external_runs';
const EXTERNAL_ROLE = 'own external runs only';
/** Scope of the token that the script of a command has. */
const RUN = 'run';

function roleName({ scope, role }: Token): string {
  if (scope === RUN) return 'writes this run only';
  return scope === EXTERNAL_RUNS ? EXTERNAL_ROLE : role;
}

function expiry({ scope, expires_at: at }: Token): string {
  if (at) return formatDay(at);
  return scope === RUN ? 'With its script' : 'Never';
}

/** API tokens: created, shown once, revoked. */
export function TokensPanel({ role: ownRole }: { role: Role }) {
  const pages = useInfiniteQuery(tokensQuery);
  const { data, error, refetch } = pages;
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role | typeof EXTERNAL_RUNS>(ownRole);
  const [days, setDays] = useState('30');
  const [revoking, setRevoking] = useState<Token | null>(null);
  const panel = useRef<HTMLElement>(null);
  const shownToken = useRef<HTMLElement>(null);
  const blank = name !== '' && name.trim() === '';
  const create = useAccountMutation(() =>
    accountActions.createToken({
      name: name.trim(),
      ...(role === EXTERNAL_RUNS ? { role: 'operator', scope: role } : { role }),
      expires_in_days: days ? Number(days) : null,
    }),
  );
  const tokens = data?.pages.flatMap(({ items }) => items);
  const allowed = ROLES.slice(0, ROLES.indexOf(ownRole) + 1);
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
          label="Name"
          required
          maxLength={100}
          value={name}
          error={blank && 'Enter a name.'}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
        />
        <NativeSelect
          label="Role"
          data={[
            ...allowed,
            ...(allowed.includes('operator') ? [{ value: EXTERNAL_RUNS, label: EXTERNAL_ROLE }] : []),
          ]}
          value={role}
          onChange={({ currentTarget }) => setRole(currentTarget.value as typeof role)}
        />
        <NativeSelect
          label="Expires"
          data={LIFETIMES}
          value={days}
          onChange={({ currentTarget }) => setDays(currentTarget.value)}
        />
        <LoadingButton type="submit" variant="default" loading={create.isPending}>
          Create token
        </LoadingButton>
      </form>
      {create.isError && <Problem error={create.error} />}
      {create.data && (
        <div className={classes.secret} role="status">
          <span>
            Token “{create.data.name}”. Copy it now; it will not be shown again. Send it in the header{' '}
            <Code>Authorization: Bearer …</Code>
          </span>
          <Code ref={shownToken} block>
            {create.data.token}
          </Code>
          <CopyButton value={create.data.token} shown={shownToken}>
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
      {tokens?.length === 0 && <Empty>You have no tokens.</Empty>}
      {tokens && tokens.length > 0 && (
        <div className="scroll-x">
          <table className="grid">
            <thead>
              <tr>
                <th>Name</th>
                <th>Role</th>
                <th className="wide">Created</th>
                <th className="wide">Created with</th>
                <th className="wide">Last used</th>
                <th>Expires</th>
                <th className="actions">
                  <span className="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {tokens.map((token) => (
                <tr key={token.id}>
                  <td className={classes.name}>
                    <span className="whole">{token.name}</span>
                  </td>
                  <td>{roleName(token)}</td>
                  <td className="wide">
                    <RelativeTime at={token.created_at} />
                  </td>
                  <td className="wide">{creatorName(token)}</td>
                  <td
                    className="wide"
                    title={token.last_used_address ? `From ${token.last_used_address}` : undefined}
                  >
                    {token.last_used_at ? <RelativeTime at={token.last_used_at} /> : 'Never'}
                  </td>
                  <td>{expiry(token)}</td>
                  <td className="actions">
                    <Button
                      size="compact-xs"
                      variant="default"
                      aria-label={`Revoke ${token.name}`}
                      onClick={() => setRevoking(token)}
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
      <ShowMore query={pages} />
      <Revoke
        token={revoking}
        onClose={() => setRevoking(null)}
        // Its row is gone, and with it the button that had the focus.
        onRevoked={() => panel.current?.focus()}
      />
    </section>
  );
}

type RevokeProps = { token: Token | null; onClose: () => void; onRevoked: () => void };

function Revoke({ token, onClose, onRevoked }: RevokeProps) {
  const revoke = useAccountMutation((id: string) => accountActions.revokeToken(id));
  return (
    <ConfirmDialog
      opened={token !== null}
      onClose={onClose}
      title={`Revoke token “${token?.name ?? ''}”`}
      action="Revoke"
      danger
      onConfirm={async () => {
        if (token) await revoke.mutateAsync(token.id);
        onRevoked();
      }}
    >
      {token?.scope === RUN
        ? 'The script of this run goes on, but nothing more that it logs is stored. This cannot be undone.'
        : 'Requests that use this token, or a token created with it, will be rejected. This cannot be undone; ' +
          'scripts that use it need a new token.'}
    </ConfirmDialog>
  );
}
