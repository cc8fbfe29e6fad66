import { ActionIcon, NativeSelect, Switch, TextInput, Tooltip } from '@mantine/core';
import { IconArrowBackUp } from '@tabler/icons-react';
import { memo } from 'react';
import { formatSetting } from '@/lib/format';
import classes from './settings.module.css';
import { boundsText, isChanged, parseRaw, type Raw, type Setting } from '@/lib/schema';

type Props = {
  setting: Setting;
  raw: Raw;
  /** What the service said of this field, until it is touched again. */
  refusal: string | undefined;
  onChange: (path: string, raw: Raw) => void;
  onReset: (path: string) => void;
  /** What the field goes back to: its default, or what a run that trains has now. */
  base?: 'default' | 'present value';
};

const ORDER = ['input', 'error', 'description'] as ('input' | 'error' | 'description')[];

/** One setting: name, the paper's symbol, unit, default, bounds, help, and what is wrong with it. */
export const SettingField = memo(function SettingField({
  setting,
  raw,
  refusal,
  onChange,
  onReset,
  base = 'default',
}: Props) {
  const { path, title, symbol, unit, help, kind } = setting;
  const problem = parseRaw(setting, raw).problem ?? refusal;
  const changed = isChanged(setting, raw);
  const id = `setting-${path}`;
  const facts = [
    `${base === 'default' ? 'default' : 'now'} ${formatSetting(setting.fallback)}`,
    boundsText(setting),
  ]
    .filter(Boolean)
    .join(' · ');
  const shared = {
    id,
    name: path,
    size: 'xs',
    error: problem,
    errorProps: { role: 'alert' },
    description: (
      <>
        <span className={classes.facts}>{facts}</span>
        {help}
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
        {changed && (
          <span className={classes.changed}>
            changed
            <Tooltip label={`Back to the ${base}, ${formatSetting(setting.fallback)}`}>
              <ActionIcon
                size={20}
                variant="subtle"
                aria-label={`Reset ${title} to its ${base}`}
                onClick={() => onReset(path)}
              >
                <IconArrowBackUp size={14} />
              </ActionIcon>
            </Tooltip>
          </span>
        )}
      </div>
      {kind === 'boolean' ? (
        <Switch
          {...shared}
          classNames={{
            body: classes.switch,
            input: classes.track,
            track: classes.track,
            labelWrapper: classes.words,
            label: classes.word,
          }}
          checked={raw === true}
          label={raw === true ? 'yes' : 'no'}
          onChange={({ currentTarget }) => onChange(path, currentTarget.checked)}
        />
      ) : kind === 'choice' ? (
        <NativeSelect
          {...shared}
          data={setting.choices}
          value={String(raw)}
          onChange={({ currentTarget }) => onChange(path, currentTarget.value)}
        />
      ) : (
        <TextInput
          {...shared}
          inputMode={kind === 'text' ? 'text' : 'decimal'}
          autoComplete="off"
          spellCheck={false}
          value={String(raw)}
          placeholder={setting.optional ? 'none' : ''}
          classNames={{ input: kind === 'text' ? '' : 'num' }}
          rightSection={unit && <span className={classes.unit}>{unit}</span>}
          rightSectionWidth={unit ? unit.length * 6.5 + 16 : undefined}
          onChange={({ currentTarget }) => onChange(path, currentTarget.value)}
        />
      )}
    </div>
  );
});
