import { Button, NativeSelect, TextInput } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useState } from 'react';
import { auditExportUrl, type AuditFilter } from '@/api/audit';
import { withTicket } from '@/api/session';
import { useDownload } from '@/components/download';
import classes from './audit.module.css';
import { auditSearch } from './search';

const TYPING_MS = 400;
const WRONG_YEAR = 'Enter a year from 1971 to 9997.';

const NAMES = ['user', 'address', 'from', 'to'] as const;
type Typed = Record<(typeof NAMES)[number], string>;

const typedOf = ({ user = '', address = '', from = '', to = '' }: AuditFilter): Typed => ({
  user,
  address,
  from,
  to,
});
const isSame = (a: Typed, b: Typed): boolean => NAMES.every((name) => a[name] === b[name]);

type Props = {
  filter: AuditFilter;
  /** The actions to choose from; that of the filter is added if it is missing. */
  actions: readonly string[];
  onChange: (changed: AuditFilter) => void;
};

/** Filters the audit trail, and downloads what matches. */
export function AuditFilterForm({ filter, actions, onChange }: Props) {
  const { action = '' } = filter;
  const current = typedOf(filter);
  const [typed, setTyped] = useState(current);
  const [previous, setPrevious] = useState(current);
  const [submitted, setSubmitted] = useState(current);
  const trimmed = { ...typed, user: typed.user.trim(), address: typed.address.trim() };
  // Navigating back or forward replaces the text; what the form has submitted may have been extended since.
  if (!isSame(previous, current)) {
    setPrevious(current);
    if (!isSame(submitted, current)) {
      setSubmitted(current);
      setTyped(current);
    }
  }
  // All fields together: another one may have been typed within the delay.
  const apply = useDebouncedCallback(() => {
    setSubmitted(typedOf(auditSearch(trimmed)));
    onChange(trimmed);
  }, TYPING_MS);
  const type = (name: keyof Typed, value: string) => {
    setTyped({ ...typed, [name]: value });
    apply();
  };
  const { from, to } = auditSearch(typed);
  const { onClick, problem } = useDownload();
  return (
    <div role="search" aria-label="Filter the audit trail" className={classes.filter}>
      <TextInput
        label="User"
        value={typed.user}
        maxLength={100}
        onChange={({ currentTarget }) => type('user', currentTarget.value)}
      />
      <NativeSelect
        label="Action"
        value={action}
        data={[
          { value: '', label: 'All actions' },
          ...(action === '' || actions.includes(action) ? [] : [action]),
          ...actions,
        ]}
        onChange={({ currentTarget }) => onChange({ action: currentTarget.value })}
      />
      <TextInput
        label="Address"
        value={typed.address}
        maxLength={64}
        onChange={({ currentTarget }) => type('address', currentTarget.value)}
      />
      <TextInput
        type="date"
        label="From"
        value={typed.from}
        error={typed.from !== '' && from === undefined && WRONG_YEAR}
        onChange={({ currentTarget }) => type('from', currentTarget.value)}
      />
      <TextInput
        type="date"
        label="To"
        value={typed.to}
        error={typed.to !== '' && to === undefined && WRONG_YEAR}
        onChange={({ currentTarget }) => type('to', currentTarget.value)}
      />
      <div className={`row ${classes.export}`}>
        <Button
          component="a"
          variant="default"
          href={withTicket(auditExportUrl(filter, 'csv'))}
          download
          onClick={onClick}
        >
          Export CSV
        </Button>
        <Button
          component="a"
          variant="default"
          href={withTicket(auditExportUrl(filter, 'json'))}
          download
          onClick={onClick}
        >
          Export JSON
        </Button>
        {problem}
      </div>
    </div>
  );
}
