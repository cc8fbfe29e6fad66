import { expect, it } from 'vitest';
import { toProblem } from './problem';

it('says in plain words what kind of refusal it was, and why in the service’s own', () => {
  const problem = toProblem(422, { title: 'Unprocessable Entity', detail: 'filter: score needs a number' });
  expect(problem.title).toBe('Something in this is wrong');
  expect(problem.detail).toBe('filter: score needs a number');
});

it('tells a status it has no words for by its own title, or by its number', () => {
  expect(toProblem(418, { title: 'A teapot' }).title).toBe('A teapot');
  expect(toProblem(502, '<html>').title).toBe('The service answered 502');
});
