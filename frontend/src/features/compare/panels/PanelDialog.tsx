import { Autocomplete, Checkbox, MultiSelect, NativeSelect, Textarea, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { metricsQuery } from '@/api/series';
import { settingNames } from '@/components/config/settingTitles';
import { ConfirmDialog } from '@/components/ConfirmDialog';
import { type Panel, panelOf } from '@/components/run/panels';
import { differing } from '../ScoreScatter';
import { type Field, KINDS, type PanelPage } from './kinds';
import classes from './panels.module.css';

/** Number of metrics offered together. */
const MAX_OPTIONS = 50;

type Props = {
  /** The panel as it is, or as a new one begins. */
  panel: Panel;
  isNew: boolean;
  page: PanelPage;
  tabs: readonly string[];
  onClose: () => void;
  onSave: (panel: Panel) => void;
};

/** Asks what a panel shows. */
export function PanelDialog({ panel: start, isNew, page, tabs, onClose, onSave }: Props) {
  const kind = KINDS.get(start.kind);
  const size = isNew && kind ? { columns: kind.size.columns, height_px: kind.size.height } : {};
  const [panel, setPanel] = useState<Panel>({ ...start, ...size });
  if (!kind) return null;
  const change = (to: { [K in keyof Panel]?: Panel[K] | undefined }): void =>
    setPanel(panelOf({ ...panel, ...to }) ?? panel);
  const refusal = kind.refusal?.(panel);
  const action = isNew ? 'Add' : 'Change';
  return (
    <ConfirmDialog
      opened
      onClose={onClose}
      title={isNew ? `Add panel: ${kind.label}` : `Edit panel: ${kind.label}`}
      action={action}
      disabled={refusal !== undefined}
      onConfirm={() => {
        if (refusal === undefined) onSave(panel);
        return Promise.resolve();
      }}
    >
      <div className={classes.fields}>
        {kind.fields.map((field, at) => (
          <FieldInput
            key={field}
            isFirst={at === 0}
            field={field}
            maxSettings={kind.maxSettings}
            panel={panel}
            page={page}
            onChange={change}
          />
        ))}
        <TextInput
          {...(kind.fields.length === 0 ? { 'data-autofocus': true } : {})}
          label="Title"
          placeholder={kind.titleOf(panel, page.titles)}
          maxLength={100}
          value={panel.title ?? ''}
          onChange={({ currentTarget }) => change({ title: currentTarget.value })}
        />
        <Autocomplete
          size="xs"
          label="Tab"
          placeholder="Overview"
          maxLength={50}
          data={[...tabs]}
          value={panel.tab ?? ''}
          onChange={(tab) => change({ tab })}
        />
        {refusal !== undefined && (
          <div className="muted" role="status">
            {refusal}
          </div>
        )}
      </div>
    </ConfirmDialog>
  );
}

type FieldProps = {
  field: Field;
  /** Whether it has the focus at first. */
  isFirst: boolean;
  maxSettings: number | undefined;
  panel: Panel;
  page: PanelPage;
  onChange: (to: { [K in keyof Panel]?: Panel[K] | undefined }) => void;
};

function FieldInput({ field, isFirst, maxSettings, panel, page, onChange }: FieldProps) {
  const runs = page.rows.flatMap((row) => row.runs);
  const { data: recorded = [] } = useQuery(metricsQuery(runs.map(({ id }) => id)));
  const metrics = recorded.map(({ metric }) => metric);
  const differ = differing(runs);
  const names = settingNames(differ, page.titles);
  const settings = differ.map((path) => ({ value: path, label: names.get(path) ?? path }));
  const focus = isFirst ? { 'data-autofocus': true } : {};
  switch (field) {
    case 'metrics':
      return (
        <MultiSelect
          {...focus}
          size="xs"
          label="Metrics"
          placeholder={panel.metrics ? '' : 'Search metrics'}
          searchable
          hidePickedOptions
          limit={MAX_OPTIONS}
          maxValues={10}
          data={[...new Set([...metrics, ...(panel.metrics ?? [])])]}
          value={[...(panel.metrics ?? [])]}
          onChange={(to) => onChange({ metrics: to })}
        />
      );
    case 'formulas':
      return <Formulas formulas={panel.formulas ?? []} onFormulas={(formulas) => onChange({ formulas })} />;
    case 'x':
      return (
        <NativeSelect
          {...focus}
          label="X axis"
          value={panel.x ?? ''}
          data={[
            { value: '', label: 'As all charts' },
            ...[...new Set([...metrics, ...(panel.x === undefined ? [] : [panel.x])])],
          ]}
          onChange={({ currentTarget }) => onChange({ x: currentTarget.value })}
        />
      );
    case 'log':
      return (
        <Checkbox
          size="xs"
          label="Logarithmic scale"
          checked={panel.log ?? false}
          onChange={({ currentTarget }) => onChange({ log: currentTarget.checked || undefined })}
        />
      );
    case 'setting':
      return (
        <NativeSelect
          {...focus}
          label="Hyperparameter"
          value={panel.setting ?? ''}
          data={[{ value: '', label: 'The one that explains most' }, ...settings]}
          onChange={({ currentTarget }) => onChange({ setting: currentTarget.value })}
        />
      );
    case 'settings':
      return (
        <MultiSelect
          {...focus}
          size="xs"
          label="Hyperparameters"
          description="Without any, those that explain most."
          searchable
          hidePickedOptions
          {...(maxSettings === undefined ? {} : { maxValues: maxSettings })}
          data={[
            ...settings,
            ...(panel.settings ?? [])
              .filter((path) => !differ.includes(path))
              .map((path) => ({ value: path, label: path })),
          ]}
          value={[...(panel.settings ?? [])]}
          onChange={(to) => onChange({ settings: to })}
        />
      );
    case 'score':
      return (
        <NativeSelect
          {...focus}
          label="Score"
          value={panel.score ?? 'score'}
          data={[
            { value: 'score', label: 'Score' },
            { value: 'best_return', label: 'Best return' },
          ]}
          onChange={({ currentTarget }) =>
            onChange({ score: currentTarget.value === 'best_return' ? 'best_return' : undefined })
          }
        />
      );
    case 'text':
      return (
        <Textarea
          {...focus}
          size="xs"
          label="Text"
          description="Markdown"
          rows={8}
          value={panel.text ?? ''}
          onChange={({ currentTarget }) => onChange({ text: currentTarget.value })}
        />
      );
  }
}

type FormulasProps = { formulas: readonly string[]; onFormulas: (formulas: readonly string[]) => void };

/** One formula a line; what is typed stays as it is. */
function Formulas({ formulas, onFormulas }: FormulasProps) {
  const [typed, setTyped] = useState(formulas.join('\n'));
  return (
    <Textarea
      size="xs"
      label="Formulas"
      description="One a line: + − × /, ema(loss/value, 0.9), diff(loss/value), log(loss/value)."
      rows={3}
      value={typed}
      onChange={({ currentTarget }) => {
        setTyped(currentTarget.value);
        onFormulas(currentTarget.value.split('\n').flatMap((line) => line.trim() || []));
      }}
    />
  );
}
