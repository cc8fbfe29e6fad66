import { describe, expect, it } from 'vitest';
import { asProblem, toProblem } from './problem';

describe('toProblem', () => {
  it('takes its title from the status and its detail from the problem document', () => {
    const problem = toProblem(422, { title: 'Unprocessable Entity', detail: 'filter: score needs a number' });
    expect(problem.title).toBe('Some fields are invalid');
    expect(problem.detail).toBe('filter: score needs a number');
  });

  it('falls back to the document’s title, then to the status, for an unknown status', () => {
    expect(toProblem(418, { title: 'A teapot' }).title).toBe('A teapot');
    expect(toProblem(502, '<html>').title).toBe('The service returned status 502');
  });
});

describe('asProblem', () => {
  it.each([
    'Unable to preload CSS for /assets/HostsPage.css',
    'Failed to fetch dynamically imported module: /assets/HostsPage.js',
  ])('reports an unreachable service for the chunk-load error "%s"', (message) =>
    expect(asProblem(new Error(message)).title).toBe('The service cannot be reached'),
  );

  it.each([
    'Failed to fetch',
    'NetworkError when attempting to fetch resource.',
    'Load failed',
    'The Internet connection appears to be offline.',
    'network error',
  ])('reports an unreachable service for the error of a request "%s"', (message) =>
    expect(asProblem(new TypeError(message)).title).toBe('The service cannot be reached'),
  );

  it.each([Error, TypeError])('reports a page error for any other %s', (Kind) =>
    expect(asProblem(new Kind('x is not a function')).title).toBe('This page failed'),
  );
});
