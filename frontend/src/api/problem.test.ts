import { expect, it } from 'vitest';
import { asProblem, toProblem } from './problem';

it('says in plain words what kind of refusal it was, and why in the service’s own', () => {
  const problem = toProblem(422, { title: 'Unprocessable Entity', detail: 'filter: score needs a number' });
  expect(problem.title).toBe('Something in this is wrong');
  expect(problem.detail).toBe('filter: score needs a number');
});

it('tells a status it has no words for by its own title, or by its number', () => {
  expect(toProblem(418, { title: 'A teapot' }).title).toBe('A teapot');
  expect(toProblem(502, '<html>').title).toBe('The service answered 502');
});

it('takes a part of the page that did not come for a service that does not answer', () => {
  for (const message of [
    'Unable to preload CSS for /assets/HostsPage.css',
    'Failed to fetch dynamically imported module: /assets/HostsPage.js',
  ]) {
    expect(asProblem(new Error(message)).title).toBe('The service does not answer');
  }
  expect(asProblem(new Error('x is not a function')).title).toBe('This page failed');
});
