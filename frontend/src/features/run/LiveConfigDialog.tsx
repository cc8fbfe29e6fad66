import { Button, Modal } from '@mantine/core';
import { useState } from 'react';
import { asProblem } from '@/api/problem';
import { changeConfig } from '@/api/runResources';
import { useRunMutation, type Run } from '@/api/runs';
import { ConfigInput } from '@/components/config/ConfigInput';
import { Problem } from '@/components/feedback';
import { InStudies } from '@/components/run/InStudies';
import { parseRaw, toRaw, type ConfigField, type Raw } from '@/lib/schema';

type Props = { run: Run; fields: readonly ConfigField[]; onClose: () => void };

/**
 * Changes the config of a run that trains.
 *
 * @param fields those that may be changed, with the run's current values as defaults.
 */
export default function LiveConfigDialog({ run, fields, onClose }: Props) {
  const [raw, setRaw] = useState<Record<string, Raw>>({});
  const changes = fields.flatMap((field) => {
    const typed = raw[field.path];
    if (typed === undefined) return [];
    const { value, error } = parseRaw(field, typed);
    return error === null && value === field.default ? [] : [{ field, value, error }];
  });
  const change = useRunMutation(() =>
    changeConfig(run.id, Object.fromEntries(changes.map(({ field, value }) => [field.key, value as never]))),
  );
  const problem = asProblem(change.error);
  const fieldErrors = new Map(problem.fields.map(({ field, message }) => [field, message]));
  const otherError = change.isError && !fields.some(({ path }) => fieldErrors.has(path));
  return (
    <Modal opened onClose={onClose} title={`Change config of ${run.name}`} size="lg">
      <form
        style={{ display: 'grid', gap: 16 }}
        onSubmit={(event) => {
          event.preventDefault();
          change.mutate(undefined, { onSuccess: onClose });
        }}
      >
        <span>
          Changes apply from the next update; what the agent has learned is kept. They are marked on the
          learning curve.
        </span>
        <InStudies runId={run.id}>With changed settings it no longer counts there.</InStudies>
        <div
          style={{ display: 'grid', gap: 16, gridTemplateColumns: 'repeat(auto-fill, minmax(220px, 1fr))' }}
        >
          {fields.map((field) => (
            <ConfigInput
              key={field.path}
              field={field}
              raw={raw[field.path] ?? toRaw(field.default)}
              base="current value"
              serverError={fieldErrors.get(field.path)}
              onChange={(path, typed) => setRaw((before) => ({ ...before, [path]: typed }))}
              onReset={(path) =>
                setRaw((before) => Object.fromEntries(Object.entries(before).filter(([key]) => key !== path)))
              }
            />
          ))}
        </div>
        {otherError && <Problem error={change.error} />}
        <div className="row" style={{ justifyContent: 'flex-end' }}>
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button
            type="submit"
            loading={change.isPending}
            disabled={changes.length === 0 || changes.some(({ error }) => error !== null)}
          >
            Apply
          </Button>
        </div>
      </form>
    </Modal>
  );
}
