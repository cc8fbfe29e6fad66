import { expect, it } from 'vitest';
import { lineStyle, styleName } from './lineStyles';

const palette = {
  light: ['#1', '#2', '#3', '#4'],
  dark: ['#5', '#6', '#7', '#8'],
  names: ['red', 'blue'],
  symbols: ['', 'square', 'circle-open'],
};

it('a style is a colour of the palette or its second shade, and the symbol of its row', () => {
  expect([0, 1, 2, 3, 4].map((style) => lineStyle(palette, style, 'dark'))).toEqual([
    { colour: '#5', symbol: '' },
    { colour: '#6', symbol: '' },
    { colour: '#7', symbol: 'square' },
    { colour: '#8', symbol: 'square' },
    { colour: '#5', symbol: 'circle-open' },
  ]);
});

it('a style has a name', () => {
  expect([1, 3, 4].map((style) => styleName(palette, style))).toEqual([
    'blue',
    'blue, second shade, square',
    'red, circle open',
  ]);
});
