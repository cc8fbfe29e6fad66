import { ActionIcon, Menu, SegmentedControl } from '@mantine/core';
import {
  IconChevronDown,
  IconChevronUp,
  IconDots,
  IconEye,
  IconEyeOff,
  IconPinFilled,
  IconStar,
  IconStarFilled,
  IconX,
} from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { type KeyboardEvent, type ReactNode, useState, useSyncExternalStore } from 'react';
import { useCurveView } from '@/components/chart/curveView';
import { useLineStyles } from '@/components/chart/lineStyles';
import { searchOfStyle, type Styles } from '@/components/chart/seriesStyles';
import { StylePicker } from '@/components/chart/StylePicker';
import { Interval } from '@/components/Estimate';
import { Loading } from '@/components/feedback';
import { StateBadge } from '@/components/run/StateBadge';
import { Name, Score } from '@/components/text';
import { plural } from '@/lib/format';
import type { ListSort } from '@/components/run/search';
import { dragSource, useDropTarget } from './dragAndDrop';
import { MAX_DRAWN, type Row, sorted } from './rows';
import classes from './compare.module.css';

type Props = {
  rows: readonly Row[];
  /** Whether the rows are not known yet. */
  isLoading: boolean;
  /** Whether the rows are configs over seeds. */
  grouped: boolean;
  onGrouped: (grouped: boolean) => void;
  sort: ListSort;
  onSort: (sort: ListSort) => void;
  styles: Styles;
  onStyle: (id: string, style: number) => void;
  hidden: ReadonlySet<string>;
  /** Receives the ids of all rows that are not drawn; undefined: all but the best. */
  onHidden: (hidden: readonly string[] | undefined) => void;
  /** Rows that stay on top. */
  pins: ReadonlySet<string>;
  onPins: (pins: readonly string[]) => void;
  /** The rows of the config with which the others are compared. */
  baselines: ReadonlySet<string>;
  /** Sets the config of a row as that; undefined while there is no other config. */
  onBaseline: ((row: string) => void) | undefined;
  /** A run is dropped here. */
  onAdd: (id: string) => void;
  onRemove: (row: Row) => void;
  /** Ids in the address of runs that do not exist. */
  missing: readonly string[];
  onRemoveMissing: (id: string) => void;
  /** What adds runs. */
  finder: ReactNode;
};

/** The compared runs, or their configs: what is drawn, and how they score. Arrows move, space draws or hides. */
export function SeriesList(props: Props) {
  const {
    rows,
    isLoading,
    grouped,
    onGrouped,
    sort,
    onSort,
    hidden,
    onHidden,
    pins,
    onPins,
    onAdd,
    missing,
    onRemoveMissing,
  } = props;
  const [cursor, setCursor] = useState<string>();
  const lookOf = useLineStyles();
  const order = sorted(rows, sort, pins);
  const scores = rows.flatMap((row) => row.scores);
  const scale = [Math.min(...scores), Math.max(...scores)] as const;
  const current = order.some(({ id }) => id === cursor) ? cursor : order[0]?.id;
  const nDrawn = rows.filter(({ id }) => !hidden.has(id)).length;
  const toggle = (id: string): void =>
    onHidden(rows.flatMap((row) => (hidden.has(row.id) !== (row.id === id) ? row.id : [])));
  const onKey = (event: KeyboardEvent<HTMLElement>): void => {
    const { currentTarget, key } = event;
    const target = event.target as HTMLElement;
    const element = currentTarget.contains(target) ? target.closest<HTMLElement>('[data-row]') : null;
    if (!element || event.ctrlKey || event.altKey || event.metaKey) return;
    const all = [...currentTarget.querySelectorAll<HTMLElement>('[data-row]')];
    const at = all.indexOf(element);
    const steps: Record<string, number> = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1 };
    const to = { ...steps, Home: 0, End: all.length - 1 }[key];
    const stops = [element, ...element.querySelectorAll<HTMLElement>('a, button')];
    const beside = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (to !== undefined) all[Math.max(0, Math.min(all.length - 1, to))]?.focus();
    else if (beside !== undefined) stops[stops.indexOf(target) + beside]?.focus();
    else if (key === 'Escape') element.focus();
    else if (key === 'x' || (key === ' ' && target === element)) toggle(element.dataset.row ?? '');
    else if (key === 'Enter' && target === element) element.querySelector('a')?.click();
    else return;
    event.preventDefault();
  };
  return (
    <div className={`panel ${classes.list}`} {...useDropTarget(onAdd)}>
      <header className={classes.listHead}>
        <SegmentedControl
          size="xs"
          aria-label="Group curves"
          value={grouped ? 'seed' : 'run'}
          data={[
            { value: 'run', label: 'Runs' },
            { value: 'seed', label: 'Configs' },
          ]}
          onChange={(value) => onGrouped(value === 'seed')}
        />
        <span className="grow" />
        {props.finder}
      </header>
      <div
        role="grid"
        aria-label={grouped ? 'Compared configs' : 'Compared runs'}
        className={classes.rows}
        onKeyDown={onKey}
      >
        <div role="row" data-run={!grouped || undefined} className={`${classes.line} ${classes.columns}`}>
          <SortHeader by="name" label={grouped ? 'Config' : 'Run'} first="name" sort={sort} onSort={onSort} />
          {grouped && <SortHeader by="n" label="Seeds" first="-n" sort={sort} onSort={onSort} />}
          <SortHeader
            by="score"
            label={grouped ? 'IQM' : 'Score'}
            title={
              grouped ? 'Interquartile mean of the scores' : 'Mean return of the last 100 training episodes'
            }
            first="-score"
            sort={sort}
            onSort={onSort}
          />
        </div>
        {order.map((row) => (
          <SeriesRow
            key={row.id}
            {...props}
            row={row}
            colour={lookOf(props.styles.get(row.id) ?? 0)?.colour ?? 'var(--muted)'}
            scale={scale}
            isHidden={hidden.has(row.id)}
            isBaseline={props.baselines.has(row.id)}
            isPinned={pins.has(row.id)}
            onPin={(id) => onPins(pins.has(id) ? [...pins].filter((pin) => pin !== id) : [...pins, id])}
            isCurrent={row.id === current}
            onCurrent={setCursor}
            onToggle={toggle}
            onOnly={(id) => onHidden(rows.flatMap((other) => (other.id === id ? [] : other.id)))}
          />
        ))}
      </div>
      {missing.length > 0 && (
        <ul className={classes.missing} aria-label="Deleted runs">
          {missing.map((id) => (
            <li key={id} className="row">
              <span className="grow muted" title={`Run ${id} does not exist or has been deleted`}>
                deleted run <span className="num">{id.slice(-6)}</span>
              </span>
              <ActionIcon
                size={20}
                variant="subtle"
                color="gray"
                aria-label={`Remove deleted run ${id}`}
                onClick={() => onRemoveMissing(id)}
              >
                <IconX size={14} />
              </ActionIcon>
            </li>
          ))}
        </ul>
      )}
      {isLoading && (
        <div className={classes.loading}>
          <Loading label="Loading the list" lines={6} />
        </div>
      )}
      {rows.length > 1 && (
        <footer className={`row wrap muted ${classes.listFoot}`}>
          <span role="status">
            {nDrawn} of {rows.length} drawn
          </span>
          <span className="grow" />
          {nDrawn < rows.length && (
            <button type="button" onClick={() => onHidden([])}>
              Draw all
            </button>
          )}
          {rows.length > MAX_DRAWN && (
            <button type="button" onClick={() => onHidden(undefined)}>
              Best {MAX_DRAWN}
            </button>
          )}
        </footer>
      )}
    </div>
  );
}

type HeaderProps = {
  by: string;
  label: string;
  title?: string;
  /** The order of the first click. */
  first: ListSort;
  sort: ListSort;
  onSort: (sort: ListSort) => void;
};

/** The order of the rows: a click sorts by it, another one turns it. */
function SortHeader({ by, label, title, first, sort, onSort }: HeaderProps) {
  const isBy = sort.replace('-', '') === by;
  const isDown = sort.startsWith('-');
  const flipped = (isDown ? by : `-${by}`) as ListSort;
  const Icon = isDown ? IconChevronDown : IconChevronUp;
  return (
    <span role="columnheader" aria-sort={isBy ? (isDown ? 'descending' : 'ascending') : 'none'}>
      <button type="button" title={title} onClick={() => onSort(isBy ? flipped : first)}>
        {label}
        {isBy && <Icon size={12} aria-hidden="true" />}
      </button>
    </span>
  );
}

type RowProps = Pick<Props, 'grouped' | 'styles' | 'onStyle' | 'onBaseline' | 'onRemove'> & {
  row: Row;
  colour: string;
  scale: readonly [number, number];
  isHidden: boolean;
  isBaseline: boolean;
  isPinned: boolean;
  /** Pins it, or no longer. */
  onPin: (id: string) => void;
  /** Whether it is the stop of the Tab key. */
  isCurrent: boolean;
  onCurrent: (id: string) => void;
  onToggle: (id: string) => void;
  /** Hides the others. */
  onOnly: (id: string) => void;
};

function SeriesRow(props: RowProps) {
  const { row, grouped, styles, onStyle, colour, scale, isHidden, isBaseline, isPinned } = props;
  const { isCurrent, onCurrent, onBaseline } = props;
  const { id, name, label, score, scores, seeds, runs } = row;
  const { series } = useCurveView();
  const isPointed = useSyncExternalStore(series.subscribe, () => series.get() === id);
  const style = styles.get(id) ?? 0;
  const point = (): void => series.set(isHidden ? null : id);
  const leave = (): void => series.set(null);
  const [run] = runs;
  return (
    <div
      role="row"
      data-row={id}
      data-hidden={isHidden || undefined}
      data-pointed={isPointed || undefined}
      className={classes.line}
      tabIndex={isCurrent ? 0 : -1}
      aria-label={label}
      onMouseEnter={point}
      onMouseLeave={leave}
      onFocus={() => {
        onCurrent(id);
        point();
      }}
      onBlur={leave}
      {...(!grouped && dragSource(id))}
    >
      <span role="gridcell">
        <StylePicker name={label} style={style} onStyle={(to) => onStyle(id, to)} tabIndex={-1} />
      </span>
      <span role="gridcell">
        <ActionIcon
          size={20}
          variant="subtle"
          color="gray"
          tabIndex={-1}
          aria-label={`${isHidden ? 'Show' : 'Hide'} ${label}`}
          onClick={() => props.onToggle(id)}
        >
          {isHidden ? <IconEyeOff size={14} /> : <IconEye size={14} />}
        </ActionIcon>
      </span>
      <span role="gridcell" className={classes.name}>
        {grouped || !run ? (
          <Name name={name} />
        ) : (
          <Link
            to="/runs/$runId"
            params={{ runId: id }}
            search={searchOfStyle(style)}
            title={run.name}
            aria-label={label}
            tabIndex={-1}
            draggable={false}
          >
            <Name name={name} />
          </Link>
        )}
      </span>
      <span role="gridcell" className={classes.seeds}>
        {seeds &&
          (seeds.counted === seeds.all
            ? plural(seeds.all, 'seed')
            : `${seeds.counted} of ${plural(seeds.all, 'seed')}`)}
        {!grouped && run && run.state !== 'finished' && (
          <StateBadge state={run.state} reason={run.state_reason} />
        )}
        {isBaseline && <span className="visually-hidden">baseline</span>}
        {isPinned && <IconPinFilled size={12} aria-label="Pinned" />}
      </span>
      <span role="gridcell" className="right">
        <Score value={score} early={row.isEarly} />
      </span>
      <span role="gridcell" className={classes.dots}>
        <Interval
          estimate={{ value: score, low: null, high: null }}
          from={scale[0]}
          to={scale[1]}
          colour={colour}
          scores={scores}
        />
      </span>
      <span role="gridcell">
        {onBaseline && (
          <ActionIcon
            size={20}
            variant="subtle"
            color={isBaseline ? 'indigo' : 'gray'}
            tabIndex={-1}
            aria-label={`Compare the others with ${label}`}
            aria-pressed={isBaseline}
            title={isBaseline ? 'The baseline: the others are compared with it' : 'Set as baseline'}
            onClick={() => onBaseline(id)}
          >
            {isBaseline ? <IconStarFilled size={14} /> : <IconStar size={14} />}
          </ActionIcon>
        )}
        <Menu position="bottom-end" withinPortal>
          <Menu.Target>
            <ActionIcon
              size={20}
              variant="subtle"
              color="gray"
              tabIndex={-1}
              aria-label={`Actions for ${label}`}
            >
              <IconDots size={14} />
            </ActionIcon>
          </Menu.Target>
          <Menu.Dropdown>
            <Menu.Item onClick={() => props.onPin(id)}>{isPinned ? 'Unpin' : 'Pin to the top'}</Menu.Item>
            <Menu.Item onClick={() => props.onOnly(id)}>Draw only this</Menu.Item>
            <Menu.Item onClick={() => props.onRemove(row)}>Remove</Menu.Item>
          </Menu.Dropdown>
        </Menu>
      </span>
    </div>
  );
}
