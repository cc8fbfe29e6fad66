import { Button, NativeSelect, Slider, TextInput } from '@mantine/core';
import { useState } from 'react';
import { SMOOTHINGS, type Smoothing, X_AXES, type XAxis } from '@/api/series';
import { Term } from '@/components/Term';
import { parseNumber } from '@/lib/format';
import classes from './Chart.module.css';
import { useCurveView } from './curveView';

const LABELS: Record<Smoothing['kind'], string> = {
  window: 'Window mean',
  ema: 'EMA over x',
  points: 'EMA over points',
};

const SMOOTHING_TITLES: Record<Smoothing['kind'], string> = {
  window: 'The mean of each window of x, drawn in the middle of its points',
  ema: 'An exponential moving average; a change appears late by the time constant',
  points: 'An exponential moving average over points, however far apart; a change appears late',
};

const X_TITLES: Partial<Record<XAxis, string>> = {
  updates: 'Exact at checkpoints, interpolated between them',
  wall_time_s: 'Without evaluations and interruptions',
  clock_time_s: 'Since the start of the training, with evaluations and interruptions',
};

/** The smoothing, the x axis and the zoom of all charts of the page. */
export function CurveControls() {
  const { view, change, steps } = useCurveView();
  const { x, smoothing, zoom } = view;
  const { label: axis = '', unit = '' } =
    x === 'agent_steps'
      ? { label: steps, unit: steps.toLowerCase() }
      : (X_AXES.find(({ id }) => id === x) ?? {});
  return (
    <>
      {zoom && (
        <Button size="xs" variant="default" onClick={() => change({ zoom: null })}>
          Reset zoom
        </Button>
      )}
      <span className={classes.smooth}>
        <NativeSelect
          aria-label="Smoothing"
          title={SMOOTHING_TITLES[smoothing.kind]}
          value={smoothing.kind}
          data={SMOOTHINGS.map((kind) => ({ value: kind, label: LABELS[kind] }))}
          onChange={({ currentTarget }) => {
            const kind = SMOOTHINGS.find((smoothing) => smoothing === currentTarget.value) ?? 'window';
            change({ smoothing: { ...smoothing, kind } });
          }}
        />
        {smoothing.kind === 'points' ? (
          <Weight
            weight={smoothing.weight}
            onWeight={(weight) => change({ smoothing: { ...smoothing, weight } })}
          />
        ) : (
          <Scale
            key={x}
            label={`${smoothing.kind === 'ema' ? 'Time constant' : 'Window'} in ${unit}`}
            // Left out where the axis beside it already names it.
            unit={unit === axis.toLowerCase() ? '' : unit}
            scale={smoothing.scale}
            onScale={(scale) => change({ smoothing: { ...smoothing, scale } })}
          />
        )}
        <Term id="smoothing" icon>
          How curves are averaged
        </Term>
      </span>
      <NativeSelect
        aria-label="X axis"
        title={X_TITLES[x]}
        leftSection={<span className="muted">x</span>}
        leftSectionPointerEvents="none"
        value={x}
        data={X_AXES.map(({ id, label }) => ({ value: id, label: id === 'agent_steps' ? steps : label }))}
        onChange={({ currentTarget }) => {
          const chosen = X_AXES.find(({ id }) => id === currentTarget.value);
          if (chosen) change({ x: chosen.id });
        }}
      />
    </>
  );
}

function Weight({ weight, onWeight }: { weight: number; onWeight: (weight: number) => void }) {
  const [dragged, setDragged] = useState(weight);
  const [previous, setPrevious] = useState(weight);
  if (previous !== weight) {
    setPrevious(weight);
    setDragged(weight);
  }
  return (
    <>
      <Slider
        size="xs"
        min={0}
        max={0.99}
        step={0.01}
        label={(value) => value.toFixed(2)}
        value={dragged}
        onChange={setDragged}
        onChangeEnd={onWeight}
        thumbLabel="Smoothing factor"
        className={classes.slider}
      />
      <span className="num">{dragged.toFixed(2)}</span>
    </>
  );
}

type ScaleProps = {
  label: string;
  /** Shown beside the field. */
  unit: string;
  scale: number | null;
  onScale: (scale: number | null) => void;
};

/** Applied with Enter or when the field is left; empty for the width that the service chooses. */
function Scale({ label, unit, scale, onScale }: ScaleProps) {
  const [typed, setTyped] = useState(scale === null ? '' : String(scale));
  const [previous, setPrevious] = useState(scale);
  if (previous !== scale) {
    setPrevious(scale);
    setTyped(scale === null ? '' : String(scale));
  }
  const number = typed.trim() === '' ? null : parseNumber(typed);
  const valid = number === null || (number > 0 && number <= 1e15);
  const apply = (): void => {
    if (valid && number !== scale) onScale(number);
  };
  return (
    <>
      <TextInput
        size="xs"
        inputMode="decimal"
        aria-label={label}
        title={`${label}; empty for 2 to 5 % of each run’s length`}
        placeholder="auto"
        error={!valid}
        classNames={{ root: classes.scale ?? '', input: 'num' }}
        value={typed}
        onChange={({ currentTarget }) => setTyped(currentTarget.value)}
        onBlur={apply}
        onKeyDown={({ key }) => {
          if (key === 'Enter') apply();
        }}
      />
      {unit && <span>{unit}</span>}
    </>
  );
}
