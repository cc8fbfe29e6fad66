import { Button, Modal } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { changeSettings, settingsChangesQuery, type SettingsChange } from '@/api/liveSettings';
import { asProblem } from '@/api/problem';
import { useRunChange, type Run } from '@/api/runs';
import { Problem } from '@/components/feedback';
import { SettingField } from '@/components/settings/SettingField';
import { Time } from '@/components/Time';
import { formatCount, formatSetting } from '@/lib/format';
import { parseRaw, toRaw, type Raw, type Setting } from '@/lib/schema';

type Props = { run: Run; settings: readonly Setting[]; onClose: () => void };

/** Changes what may be changed while the run trains. */
export function LiveSettingsDialog({ run, settings, onClose }: Props) {
  const [raw, setRaw] = useState<Record<string, Raw>>({});
  // A field's fallback is what the run has now, so that only real changes are marked and sent.
  const fields = settings.filter(({ live }) => live);
  const changes = fields.flatMap((setting) => {
    const typed = raw[setting.path];
    if (typed === undefined) return [];
    const { value, problem } = parseRaw(setting, typed);
    return problem === null && value === setting.fallback ? [] : [{ setting, value, problem }];
  });
  const change = useRunChange(() =>
    changeSettings(
      run.id,
      Object.fromEntries(changes.map(({ setting, value }) => [setting.key, value as never])),
    ),
  );
  const problem = asProblem(change.error);
  const told = new Map(problem.fields.map(({ field, message }) => [field, message]));
  const elsewhere = change.isError && !fields.some(({ path }) => told.has(path));
  return (
    <Modal opened onClose={onClose} title={`Change settings of ${run.name}`} size="lg">
      <form
        style={{ display: 'grid', gap: 16 }}
        onSubmit={(event) => {
          event.preventDefault();
          change.mutate(undefined, { onSuccess: onClose });
        }}
      >
        <span>
          It trains on with them from its next update; what it has learned stays. The change is marked on its
          curve.
        </span>
        <div
          style={{ display: 'grid', gap: 16, gridTemplateColumns: 'repeat(auto-fill, minmax(220px, 1fr))' }}
        >
          {fields.map((setting) => (
            <SettingField
              key={setting.path}
              setting={setting}
              raw={raw[setting.path] ?? toRaw(setting.fallback)}
              base="present value"
              refusal={told.get(setting.path)}
              onChange={(path, typed) => setRaw((before) => ({ ...before, [path]: typed }))}
              onReset={(path) =>
                setRaw((before) =>
                  Object.fromEntries(Object.entries(before).filter(([each]) => each !== path)),
                )
              }
            />
          ))}
        </div>
        {elsewhere && <Problem error={change.error} />}
        <div className="row" style={{ justifyContent: 'flex-end' }}>
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button
            type="submit"
            loading={change.isPending}
            disabled={changes.length === 0 || changes.some((each) => each.problem !== null)}
          >
            Apply
          </Button>
        </div>
      </form>
    </Modal>
  );
}

const STATE: Record<SettingsChange['state'], string> = {
  asked: 'the engine has not answered yet',
  applied: 'in force',
  refused: 'refused',
};

/** The changes made while it trained. */
export function SettingsChanges({ run }: { run: string }) {
  const { data } = useQuery(settingsChangesQuery(run));
  if (!data || data.length === 0) return null;
  return (
    <section style={{ marginBottom: 16 }}>
      <h3 className="section-title">Changed while training</h3>
      <ul style={{ margin: '4px 0 0', paddingLeft: 20 }}>
        {data.map((change) => (
          <li key={change.version}>
            <span className="num">
              {Object.entries(change.changes)
                .map(([key, value]) => `${key} = ${formatSetting(value)}`)
                .join(', ')}
            </span>{' '}
            <span className="muted">
              {change.agent_steps !== null && `from ${formatCount(change.agent_steps)} agent steps, `}
              {STATE[change.state]}
              {change.refused && `: ${change.refused}`}, asked for <Time at={change.requested_at} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
