import { inspect } from 'node:util';
import { expect, it } from 'vitest';

it('prints an element in a warning as its markup, without its window', () => {
  const element = document.createElement('div');
  element.setAttribute('role', 'dialog');
  document.body.append(element);
  expect(inspect(element)).toBe('<div role="dialog"></div>');
  expect(inspect(document)).toBe('#document');
  element.textContent = 'x'.repeat(10_000);
  expect(inspect(element).length).toBeLessThan(600);
});
