import { Button, Checkbox, Code, Modal, NativeSelect, TextInput } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { type FrozenRequest, createShare, freezePage, revokeShare, sharesQuery } from '@/api/shares';
import { LoadingButton } from '@/components/controls';
import { CopyButton } from '@/components/CopyButton';
import { Problem } from '@/components/feedback';
import { useDenied } from '@/components/permission';
import { served } from '@/lib/base';
import { formatDay, plural } from '@/lib/format';
import classes from './shares.module.css';

const LIFETIMES = [
  { value: '1', label: '1 day' },
  { value: '7', label: '7 days' },
  { value: '30', label: '30 days' },
  { value: '90', label: '90 days' },
];

const LOOPBACK = /^(localhost|127\..*|\[::1\])$/;

type Props = {
  /** What the page shows. */
  page: Omit<FrozenRequest, 'names'>;
  onClose: () => void;
};

/** Shows a page to others: by a link without a login, or as one HTML file. */
export function ShareDialog({ page, onClose }: Props) {
  const client = useQueryClient();
  const denied = useDenied();
  const isAdmin = useDenied('admin') === undefined;
  const [names, setNames] = useState(true);
  const [title, setTitle] = useState(page.title);
  const isBlank = title.trim() === '';
  const shared = { ...page, title: title.trim(), names };
  const [days, setDays] = useState('7');
  const shown = useRef<HTMLElement>(null);
  const isLocal = LOOPBACK.test(location.hostname);
  const refetch = () => client.invalidateQueries({ queryKey: sharesQuery(isAdmin).queryKey });
  const create = useMutation({
    mutationFn: () => createShare({ ...shared, expires_in_days: Number(days) }),
    onSuccess: refetch,
  });
  const freeze = useMutation({
    mutationFn: async () => save(await freezePage(shared), names ? `${shared.title}.html` : 'callboard.html'),
  });
  const link = create.data && new URL(served(create.data.path), location.origin).href;
  const error = create.error ?? freeze.error;
  return (
    <Modal opened onClose={onClose} title="Share" size="lg">
      <div className={classes.dialog}>
        <p>
          Shows verdict, curves, scores, runs and commands of this page, read-only. A link needs no login,
          shows the runs as they are when it is opened, and gives access to nothing else; runs that match
          later are not added. A file has everything inside and stays as it is.
        </p>
        <TextInput
          label="Title"
          description={names ? undefined : 'Shown in your list of links alone: the page has no names'}
          value={title}
          maxLength={100}
          error={isBlank && 'A page needs a title.'}
          onChange={({ currentTarget }) => setTitle(currentTarget.value)}
        />
        <div className={classes.fields}>
          <NativeSelect
            label="The link works for"
            data={LIFETIMES}
            value={days}
            onChange={({ currentTarget }) => setDays(currentTarget.value)}
          />
          <Checkbox
            size="xs"
            label="Without names"
            description="Names of runs, groups, people and hosts, paths and notes are replaced"
            checked={!names}
            onChange={({ currentTarget }) => setNames(!currentTarget.checked)}
          />
        </div>
        {isLocal && (
          <p role="note">
            Callboard is open at {location.hostname}: nobody on another machine can open a link to it. Send a
            file instead.
          </p>
        )}
        <div className={classes.actions}>
          <LoadingButton
            variant={isLocal ? 'filled' : 'default'}
            loading={freeze.isPending}
            unavailable={isBlank}
            onClick={() => freeze.mutate()}
          >
            Freeze as a file
          </LoadingButton>
          <LoadingButton
            variant={isLocal ? 'default' : 'filled'}
            loading={create.isPending}
            unavailable={denied !== undefined || isBlank}
            title={denied}
            onClick={() => create.mutate()}
          >
            Create link
          </LoadingButton>
        </div>
        {error && <Problem error={error} />}
        {link !== undefined && (
          <div className={classes.link} role="status">
            <span>
              {plural(create.data?.runs.length ?? 0, 'run')}, until {formatDay(create.data?.expires_at ?? '')}
              . Copy the link now; it will not be shown again.
            </span>
            <Code ref={shown} block>
              {link}
            </Code>
            <CopyButton value={link} shown={shown}>
              {({ copied, copy }) => (
                <Button variant="default" onClick={copy}>
                  {copied ? 'Copied' : 'Copy'}
                </Button>
              )}
            </CopyButton>
          </div>
        )}
        <Links everyone={isAdmin} onRevoked={refetch} />
      </div>
    </Modal>
  );
}

/** Lets the browser save a file that the page has. */
function save(file: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(file);
  link.download = name.replaceAll(/[/\\:*?"<>|]/g, ' ');
  link.click();
  URL.revokeObjectURL(link.href);
}

type LinksProps = { everyone: boolean; onRevoked: () => void };

/** The links that work, each of which can be revoked. */
function Links({ everyone, onRevoked }: LinksProps) {
  const { data: links = [], error } = useQuery(sharesQuery(everyone));
  const revoke = useMutation({ mutationFn: revokeShare, onSettled: onRevoked });
  if (error) return <Problem error={error} />;
  if (links.length === 0) return null;
  return (
    <section aria-label="Links">
      <h3 className="section-title">{everyone ? 'Links of all users' : 'Your links'}</h3>
      {revoke.isError && <Problem error={revoke.error} />}
      <ul className={classes.links}>
        {links.map(({ id, title, owner, runs, names, expires_at }) => (
          <li key={id}>
            <span className={classes.title}>
              {title}
              <span className="muted">
                {' '}
                {[
                  plural(runs.length, 'run'),
                  ...(names ? [] : ['without names']),
                  ...(everyone ? [`by ${owner}`] : []),
                  `until ${formatDay(expires_at)}`,
                ].join(' · ')}
              </span>
            </span>
            <Button
              size="compact-xs"
              variant="default"
              aria-label={`Revoke the link to ${title}`}
              onClick={() => revoke.mutate(id)}
            >
              Revoke
            </Button>
          </li>
        ))}
      </ul>
    </section>
  );
}
