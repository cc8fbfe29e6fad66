import { ActionIcon, Button, NativeSelect, Switch, TextInput, Tooltip } from '@mantine/core';
import { IconArrowBackUp } from '@tabler/icons-react';
import { memo, useState } from 'react';
import { formatValue } from '@/lib/format';
import { boundsText, emptyText, isChanged, parseRaw, toRaw, type ConfigField, type Raw } from '@/lib/schema';
import { parseValues, type Values } from '@/lib/values';
import classes from './config.module.css';

type Props = {
  field: ConfigField;
  raw: Raw;
  /** The service's error for this field, until it is edited. */
  serverError: string | undefined;
  /** A remark on the present value or on unavailable ones. */
  note?: string | undefined;
  /** The choice that cannot be selected. */
  unavailable?: string | undefined;
  onChange: (path: string, raw: Raw) => void;
  onReset: (path: string) => void;
  /** What a reset restores: the field's default, a preset's value, or the current value of a training run. */
  base?: 'default' | 'preset' | 'current value';
  /** The value that a reset restores. */
  baseValue?: unknown;
  /** Whether it takes a list or a range of values. */
  several?: boolean;
  /** Why it cannot be changed. */
  fixed?: string | undefined;
};

const ORDER = ['input', 'error', 'description'] as ('input' | 'error' | 'description')[];

function single(field: ConfigField, raw: Raw): Values {
  const { value, error } = parseRaw(field, raw);
  return { values: error === null ? [value] : [], error };
}

/** The input of one config field: title, the paper's symbol, unit, default, bounds, help and error. */
export const ConfigInput = memo(function ConfigInput({
  field,
  raw,
  serverError,
  note,
  unavailable,
  onChange,
  onReset,
  base = 'default',
  baseValue = field.default,
  several = false,
  fixed,
}: Props) {
  const { path, title, symbol, unit, help, kind } = field;
  const { values, error: invalid } = several ? parseValues(field, raw) : single(field, raw);
  const error = invalid ?? serverError;
  const changed = isChanged(field, raw, baseValue);
  const id = `field-${path}`;
  // Selects and switches hold one value; a list of values is typed.
  const [listed, setListed] = useState(values.length > 1);
  const typed = kind === 'integer' || kind === 'number' || kind === 'text' || (several && listed);
  // A value that is not listed, such as a start set of a fork's parent.
  const isOther = field.pattern !== null && typeof raw === 'string' && !field.choices.includes(raw);
  const other = isOther && values.length === 1 ? [raw] : [];
  const toggleList = (): void => {
    const all = kind === 'boolean' ? ['yes', 'no'] : field.choices;
    onChange(path, listed ? toRaw(values[0] ?? field.default) : all.join(', '));
    setListed(!listed);
  };
  const reset = (): void => {
    onReset(path);
    setListed(false);
    // The reset removes its button and may replace the input: the new one is focused a frame later.
    requestAnimationFrame(() => document.getElementById(id)?.focus());
  };
  const shown = (value: unknown): string => (value === null ? emptyText(field) : formatValue(value));
  const facts = [
    base === 'current value' && `current ${shown(baseValue)}`,
    // The placeholder shows what an empty field means.
    base === 'default' && baseValue !== null && `default ${shown(baseValue)}`,
    base === 'preset' && baseValue !== field.default && `preset ${shown(baseValue)}`,
    base === 'preset' && field.default !== null && `default ${shown(field.default)}`,
    boundsText(field),
  ]
    .filter(Boolean)
    .join(' · ');
  const shared = {
    id,
    name: path,
    size: 'xs',
    disabled: fixed !== undefined,
    error,
    errorProps: { role: 'alert' },
    description: (
      <>
        <span className={classes.facts}>{facts}</span>
        {help}
        {values.length > 1 && (
          <span role="note" className={`${classes.note} num`}>
            {values.length} values: {values.map(formatValue).join(', ')}
          </span>
        )}
        {[fixed, note].filter(Boolean).map((text) => (
          <span key={text} role="note" className={classes.note}>
            {text}
          </span>
        ))}
      </>
    ),
    inputWrapperOrder: ORDER,
  };

  return (
    <div className={classes.field} data-changed={changed || undefined}>
      <div className={classes.fieldHead}>
        <label htmlFor={id}>
          {title}
          {symbol && <span className={classes.symbol}>{symbol}</span>}
        </label>
        <span className="grow" />
        {several && (kind === 'choice' || kind === 'boolean') && (
          <Tooltip label={listed ? 'Back to a choice of one' : 'Several values: one run each'}>
            <Button
              size="compact-xs"
              variant="subtle"
              color="gray"
              fw={400}
              aria-label={`${listed ? 'one value' : '+ values'} of ${title}`}
              onClick={toggleList}
            >
              {listed ? 'one value' : '+ values'}
            </Button>
          </Tooltip>
        )}
        {changed && fixed === undefined && (
          <span className={classes.changed}>
            changed
            <Tooltip label={`Reset to the ${base}, ${shown(baseValue)}`}>
              <ActionIcon
                size={20}
                variant="subtle"
                aria-label={`Reset ${title} to ${base === 'preset' ? 'the' : 'its'} ${base}`}
                onClick={reset}
              >
                <IconArrowBackUp size={14} />
              </ActionIcon>
            </Tooltip>
          </span>
        )}
      </div>
      {kind === 'boolean' && !typed ? (
        <Switch
          {...shared}
          classNames={{
            body: classes.switch,
            input: classes.track,
            track: classes.track,
            labelWrapper: classes.labels,
            label: classes.label,
          }}
          checked={raw === true}
          label={raw === true ? 'yes' : 'no'}
          onChange={({ currentTarget }) => onChange(path, currentTarget.checked)}
        />
      ) : kind === 'choice' && !typed ? (
        <NativeSelect
          {...shared}
          data={[...field.choices, ...other].map((choice) => ({
            value: choice,
            label: choice,
            disabled: choice === unavailable,
          }))}
          value={String(raw)}
          onChange={({ currentTarget }) => onChange(path, currentTarget.value)}
        />
      ) : (
        <TextInput
          {...shared}
          // A list needs commas, which numeric keyboards may lack.
          inputMode={kind === 'text' || several ? 'text' : 'decimal'}
          autoComplete="off"
          spellCheck={false}
          value={typeof raw === 'boolean' ? formatValue(raw) : raw}
          placeholder={field.optional ? emptyText(field) : ''}
          classNames={{ input: kind === 'text' ? '' : 'num' }}
          rightSection={unit && <span className={classes.unit}>{unit}</span>}
          rightSectionWidth={unit ? unit.length * 6.5 + 16 : undefined}
          onChange={({ currentTarget }) => onChange(path, currentTarget.value)}
        />
      )}
    </div>
  );
});
