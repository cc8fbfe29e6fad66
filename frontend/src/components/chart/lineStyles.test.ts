import { describe, expect, it } from 'vitest';
import { lineStyle, runStyle } from './lineStyles';

const palette = {
  light: ['#1', '#2'],
  dark: ['#3', '#4'],
  dashes: ['solid', 'dash'],
  run_characters: '0123',
};

describe('the style of a run', () => {
  it('follows from the last character of its id', () => {
    expect(['A0', 'B1', 'C2', 'D3'].map((id) => runStyle(palette, id))).toEqual([0, 1, 2, 3]);
  });

  it('repeats the colours with the next dash', () => {
    expect([0, 1, 2, 3].map((style) => lineStyle(palette, style, 'dark'))).toEqual([
      { colour: '#3', dash: undefined },
      { colour: '#4', dash: undefined },
      { colour: '#3', dash: '5 3' },
      { colour: '#4', dash: '5 3' },
    ]);
  });
});
