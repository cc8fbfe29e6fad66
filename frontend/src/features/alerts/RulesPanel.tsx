import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { alertActions, rulesQuery, targetsQuery, useAlertMutation, type Rule } from '@/api/alerts';
import { ConfirmDialog } from '@/components/ConfirmDialog';
import { Empty, Loading, Problem } from '@/components/feedback';
import classes from './alerts.module.css';
import { RuleDialog, type RuleDraft } from './RuleDialog';
import { describeKinds, describeScope } from './words';

type Props = {
  /** The run that a new rule is about: its dialog opens with the page. */
  run: string | undefined;
  onClosed: () => void;
};

/** The user's rules: listed, created, changed and deleted. */
export function RulesPanel({ run, onClosed }: Props) {
  const { data: rules, error, refetch } = useQuery(rulesQuery);
  const { data: targets } = useQuery(targetsQuery);
  const [edited, setEdited] = useState<RuleDraft | null>(run === undefined ? null : { run_id: run });
  const [removed, setRemoved] = useState<Rule | null>(null);
  const panel = useRef<HTMLElement>(null);
  const remove = useAlertMutation((id: string) => alertActions.deleteRule(id));
  const names = new Map(targets?.map(({ id, name }) => [id, name]));
  const close = (): void => {
    setEdited(null);
    onClosed();
  };
  return (
    <section ref={panel} tabIndex={-1} className={`panel ${classes.panel}`} aria-label="Rules">
      <div className={classes.head}>
        <h2 className="section-title">Rules</h2>
        <span className="grow" />
        <Button variant="default" onClick={() => setEdited({})}>
          New rule
        </Button>
      </div>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!rules && !error && <Loading label="Loading the rules" lines={3} />}
      {rules?.length === 0 && (
        <Empty>You have no rules. Each is about what happens after its creation.</Empty>
      )}
      {rules && rules.length > 0 && (
        <ul className={classes.list}>
          {rules.map((rule) => {
            const kinds = describeKinds(rule);
            return (
              <li key={rule.id} className={classes.rule}>
                <div className={classes.body}>
                  <span className={classes.words}>{kinds}</span>
                  <span className={`muted ${classes.words}`}>
                    {describeScope(rule)}
                    {rule.targets.length > 0 && `; to ${rule.targets.map((id) => names.get(id)).join(', ')}`}
                  </span>
                </div>
                <Button
                  size="compact-xs"
                  variant="default"
                  aria-label={`Edit the rule ${kinds}`}
                  onClick={() => setEdited(rule)}
                >
                  Edit
                </Button>
                <Button
                  size="compact-xs"
                  variant="default"
                  aria-label={`Delete the rule ${kinds}`}
                  onClick={() => setRemoved(rule)}
                >
                  Delete
                </Button>
              </li>
            );
          })}
        </ul>
      )}
      {edited && <RuleDialog draft={edited} targets={targets ?? []} onClose={close} />}
      <ConfirmDialog
        opened={removed !== null}
        onClose={() => setRemoved(null)}
        title="Delete rule"
        action="Delete"
        danger
        onConfirm={async () => {
          if (removed) await remove.mutateAsync(removed.id);
          panel.current?.focus();
        }}
      >
        You get no more alerts of {removed && describeKinds(removed)}. Those in the inbox stay.
      </ConfirmDialog>
    </section>
  );
}
