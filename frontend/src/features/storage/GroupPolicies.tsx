import { TextInput } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { MAX_GROUP } from '@/lib/runBounds';
import { useDeleteGroupRetention, type Policy, type Retention } from '@/api/storage';
import { ConfirmDialog } from '@/components/ConfirmDialog';
import { Empty } from '@/components/feedback';
import { PermittedButton, useDenied } from '@/components/permission';
import { ScrollPanel } from '@/components/ScrollPanel';
import { describePolicy } from './policy';
import { PolicyForm } from './PolicyForm';
import classes from './storage.module.css';

type Editing = { group: string | null; policy: Policy };

/** Adds, changes and removes the retention policies of groups. */
export function GroupPolicies({ retention }: { retention: Retention }) {
  const { installation, groups } = retention;
  const denied = useDenied();
  const [editing, setEditing] = useState<Editing | null>(null);
  const [removing, setRemoving] = useState<string | null>(null);
  const remove = useDeleteGroupRetention();
  const panel = useRef<HTMLElement>(null);
  const stop = () => {
    setEditing(null);
    // The form had the focus.
    panel.current?.focus();
  };
  return (
    <section ref={panel} tabIndex={-1} className={classes.section} aria-label="Group retention policies">
      <h2 className="section-title">Group retention policies</h2>
      <p className={`muted ${classes.note}`}>A group’s policy replaces the installation’s for its runs.</p>
      {groups.length === 0 ? (
        <div className="panel">
          <Empty>No group has its own policy.</Empty>
        </div>
      ) : (
        <ScrollPanel label="Groups with a retention policy">
          <table className="grid">
            <thead>
              <tr>
                <th>Group</th>
                <th>Settings</th>
                <th className="actions">
                  <span className="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {groups.map(({ group, policy }) => (
                <tr key={group}>
                  <td className={classes.name}>
                    <span className="whole">{group}</span>
                  </td>
                  <td className={classes.settings}>{describePolicy(policy).join('; ')}</td>
                  <td className="actions">
                    <span className={classes.buttons}>
                      <PermittedButton
                        size="compact-xs"
                        variant="default"
                        denied={denied}
                        aria-label={`Change ${group}`}
                        onClick={() => setEditing({ group, policy })}
                      >
                        Change
                      </PermittedButton>
                      <PermittedButton
                        size="compact-xs"
                        variant="default"
                        denied={denied}
                        aria-label={`Remove ${group}`}
                        onClick={() => setRemoving(group)}
                      >
                        Remove
                      </PermittedButton>
                    </span>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </ScrollPanel>
      )}
      {editing ? (
        <GroupForm
          key={editing.group ?? ''}
          editing={editing}
          taken={groups.map(({ group }) => group)}
          denied={denied}
          onClose={stop}
        />
      ) : (
        <PermittedButton
          variant="default"
          denied={denied}
          style={{ justifySelf: 'start' }}
          onClick={() => setEditing({ group: null, policy: installation })}
        >
          Add group policy
        </PermittedButton>
      )}
      <ConfirmDialog
        opened={removing !== null}
        onClose={() => setRemoving(null)}
        title="Remove group policy"
        action="Remove"
        danger
        onConfirm={async () => {
          if (removing !== null) await remove.mutateAsync(removing);
          if (editing?.group === removing) setEditing(null);
          // Its row is gone, and with it the button that had the focus.
          panel.current?.focus();
        }}
      >
        The installation’s policy will apply to the runs of <b className={classes.long}>{removing}</b>, and
        clean-up may remove more of their data.
      </ConfirmDialog>
    </section>
  );
}

type FormProps = {
  /** `group` is null for a new policy, whose fields begin with the installation's. */
  editing: Editing;
  /** The groups that have a policy. */
  taken: readonly string[];
  denied: string | undefined;
  onClose: () => void;
};

function GroupForm({ editing: { group, policy }, taken, denied, onClose }: FormProps) {
  const [typed, setTyped] = useState('');
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  const name = group ?? typed.trim();
  const groupError =
    name === ''
      ? 'Enter the name of a group.'
      : group === null && taken.includes(name)
        ? 'This group already has a policy: change it in the list.'
        : undefined;
  return (
    <div className={`panel ${classes.panel}`}>
      <h3 ref={heading} tabIndex={-1} className={`section-title ${classes.long}`}>
        {group === null ? 'New group policy' : `Policy of ${group}`}
      </h3>
      <PolicyForm
        policy={policy}
        group={name}
        groupError={groupError}
        {...(group === null
          ? {
              groupField: (error: string | undefined, onChange: () => void) => (
                <TextInput
                  label="Group"
                  description="Its name, as in the list of runs. The fields are prefilled with the installation’s policy."
                  required
                  maxLength={MAX_GROUP}
                  autoComplete="off"
                  value={typed}
                  error={error}
                  onChange={({ currentTarget }) => {
                    setTyped(currentTarget.value);
                    onChange();
                  }}
                />
              ),
            }
          : {})}
        denied={denied}
        onSaved={onClose}
        onCancel={onClose}
      />
    </div>
  );
}
