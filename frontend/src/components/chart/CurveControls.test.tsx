import { MantineProvider } from '@mantine/core';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import { useState } from 'react';
import { afterEach, describe, expect, it } from 'vitest';
import { CurveControls } from './CurveControls';
import { CurveViewProvider } from './CurveViewProvider';
import type { CurveSearch } from './curveView';

afterEach(cleanup);

type Search = { [K in keyof CurveSearch]?: CurveSearch[K] | undefined };

/** The page's address. */
let search: Search = {};

type Props = { initial: Search; runs?: { step_unit: string }[] };

function Page({ initial, runs = [] }: Props) {
  const [at, setAt] = useState(initial);
  const go = (to: Search): void => {
    search = { ...at, ...to };
    setAt(search);
  };
  return (
    <MantineProvider env="test">
      <CurveViewProvider search={at} runs={runs} onSearch={go}>
        <CurveControls />
      </CurveViewProvider>
    </MantineProvider>
  );
}

function show(initial: Search, runs?: Props['runs']): void {
  search = initial;
  render(<Page initial={initial} {...(runs && { runs })} />);
}

const choose = (name: string, value: string): void => {
  fireEvent.change(screen.getByRole('combobox', { name }), { target: { value } });
};

describe('CurveControls', () => {
  it('puts the x axis into the address', () => {
    show({});
    choose('X axis', 'wall_time_s');
    expect(search.x).toBe('wall_time_s');
  });

  it('offers a window in the unit of x, which Enter applies', () => {
    show({});
    const field = screen.getByRole<HTMLInputElement>('textbox', { name: 'Window in agent steps' });
    expect(field.value).toBe('');
    fireEvent.change(field, { target: { value: '20000' } });
    expect(search.scale).not.toBe(20_000);
    fireEvent.keyDown(field, { key: 'Enter' });
    expect(search.scale).toBe(20_000);
    fireEvent.change(screen.getByRole('textbox', { name: 'Window in agent steps' }), {
      target: { value: '' },
    });
    fireEvent.blur(screen.getByRole('textbox', { name: 'Window in agent steps' }));
    expect(search.scale).toBeUndefined();
    choose('Smoothing', 'points');
    expect(search.smooth).toBe(0.9);
  });

  it('names iterations where the runs count them', () => {
    show({ smoothing: 'ema' }, [{ step_unit: 'iterations' }]);
    const axis = screen.getByRole<HTMLSelectElement>('combobox', { name: 'X axis' });
    expect([...axis.options].map(({ text }) => text).slice(0, 2)).toEqual(['Iterations', 'Frames']);
    expect(screen.getByRole('textbox', { name: 'Time constant in iterations' })).toBeTruthy();
    choose('X axis', 'frames');
    expect(screen.getByRole('textbox', { name: 'Time constant in frames' })).toBeTruthy();
  });

  it('marks a window that is not positive and does not apply it', () => {
    show({ smoothing: 'window', scale: 500 });
    const field = screen.getByRole('textbox', { name: 'Window in agent steps' });
    fireEvent.change(field, { target: { value: '-1' } });
    fireEvent.blur(field);
    expect(field.getAttribute('aria-invalid')).toBe('true');
    expect(search.scale).toBe(500);
  });

  it('changes the smoothing factor by a key of its slider', () => {
    show({ smooth: 0.5 });
    fireEvent.keyDown(screen.getByRole('slider', { name: 'Smoothing factor' }), { key: 'ArrowRight' });
    expect(search.smooth).toBeCloseTo(0.51);
  });

  it('resets a zoom, and offers that only while there is one', () => {
    show({ zoom: '100..200' });
    fireEvent.click(screen.getByRole('button', { name: 'Reset zoom' }));
    expect(search.zoom).toBeUndefined();
    expect(screen.queryByRole('button', { name: 'Reset zoom' })).toBeNull();
  });
});
