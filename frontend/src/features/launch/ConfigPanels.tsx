import { Button, TextInput } from '@mantine/core';
import { IconChevronDown, IconChevronRight, IconSearch } from '@tabler/icons-react';
import { useMemo, useState } from 'react';
import { ConfigInput } from '@/components/config/ConfigInput';
import { Term } from '@/components/Term';
import { groupTitle, isChanged, parseRaw, type ConfigField, type Raw } from '@/lib/schema';
import { rawOf, type Draft } from './draft';
import classes from './launch.module.css';
import type { FieldNote } from './notes';

type Props = {
  fields: readonly ConfigField[];
  draft: Draft;
  /** The values that the draft's preset gives, by path. */
  base: Readonly<Record<string, Raw>>;
  /** The errors by path. */
  errors: ReadonlyMap<string, string>;
  /** Notes by path. */
  notes: ReadonlyMap<string, FieldNote>;
  /** The paths of fields that have been edited, which stay visible. */
  edited: ReadonlySet<string>;
  /** Whether all fields are shown, rather than those that people change. */
  all: boolean;
  onAll: (all: boolean) => void;
  /** Whether fields take several values. */
  several: boolean;
  onChange: (path: string, raw: Raw) => void;
  onReset: (path: string) => void;
};

/** Of a fork, which takes one value a field. */
const FIXED = 'A fork keeps it: the checkpoint’s network was built for it.';

/** The title of the group of common fields. */
const COMMON = 'hyperparameters';

/** The fields to show: the common and the edited ones and those with errors, or all that match a search. */
function visibleFields(
  fields: readonly ConfigField[],
  { all, search, edited, errors }: Pick<Props, 'all' | 'edited' | 'errors'> & { search: string },
): ConfigField[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return fields.filter(({ path, key, title, symbol, help, group, common }) => {
    if (errors.has(path)) return true;
    if (!all) return common || edited.has(path);
    const text = `${key} ${title} ${symbol ?? ''} ${help} ${group}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** The config fields: what people change, or all of them with a search, one panel for each group. */
export function ConfigPanels(props: Props) {
  const { fields, draft, base, errors, notes, all, onAll, several, onChange, onReset } = props;
  const [search, setSearch] = useState('');
  const shown = visibleFields(fields, { ...props, search });
  const groupOf = ({ section, group }: ConfigField): string => (all || section === 'stop' ? group : COMMON);
  const groups = [...new Set(shown.map(groupOf))];
  const hyperparameters = useMemo(() => fields.filter(({ section }) => section !== 'stop'), [fields]);
  const baseValueOf = (field: ConfigField): unknown => {
    const raw = base[field.path];
    return raw === undefined ? field.default : parseRaw(field, raw).value;
  };
  const changed = fields.filter((field) => isChanged(field, rawOf(draft, field), baseValueOf(field))).length;

  return (
    <>
      <div className="row wrap">
        <Button
          variant="default"
          aria-expanded={all}
          leftSection={all ? <IconChevronDown size={14} /> : <IconChevronRight size={14} />}
          onClick={() => onAll(!all)}
        >
          All {hyperparameters.length} hyperparameters
        </Button>
        {all && (
          <TextInput
            type="search"
            aria-label="Search hyperparameters"
            placeholder="Search hyperparameters"
            leftSection={<IconSearch size={14} aria-hidden="true" />}
            value={search}
            onChange={({ currentTarget }) => setSearch(currentTarget.value)}
          />
        )}
        <span className="muted">
          {changed} changed from the {draft.preset === null ? 'defaults' : 'preset'}
        </span>
      </div>
      {several && (
        <span className="muted">
          <Term id="several_values">Several values</Term> give one run each, such as 1, 2, 4 or 0.0001..0.01
          log 5.
        </span>
      )}
      {groups.map((group) => {
        const members = shown.filter((field) => groupOf(field) === group);
        // An error of a whole section is shown once, at the first of its fields that is shown.
        const sectionError = members
          .filter((field) => field === shown.find(({ section }) => section === field.section))
          .map(({ section }) => errors.get(section))
          .find(Boolean);
        return (
          <section
            key={group}
            className={`panel ${classes.block}`}
            aria-label={groupTitle(group)}
            data-invalid={sectionError ? true : undefined}
          >
            <header className="row">
              <h2 className="section-title">{groupTitle(group)}</h2>
              {sectionError && (
                <span role="alert" className={classes.error}>
                  {sectionError}
                </span>
              )}
            </header>
            <div className={classes.fields}>
              {members.map((field) => (
                <ConfigInput
                  key={field.path}
                  field={field}
                  raw={rawOf(draft, field)}
                  base={draft.preset === null ? 'default' : 'preset'}
                  baseValue={baseValueOf(field)}
                  serverError={errors.get(field.path)}
                  note={notes.get(field.path)?.text}
                  unavailable={notes.get(field.path)?.unavailable}
                  several={several}
                  fixed={!several && field.shape ? FIXED : undefined}
                  onChange={onChange}
                  onReset={onReset}
                />
              ))}
            </div>
          </section>
        );
      })}
      {shown.length === 0 && <p className={classes.none}>No hyperparameter matches “{search}”.</p>}
    </>
  );
}
