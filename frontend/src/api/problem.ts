/** Errors as RFC 9457 problem documents. */

export type FieldProblem = { field: string; message: string };

export class ApiProblem extends Error {
  override readonly name = 'ApiProblem';

  constructor(
    /** 0 without a response. */
    readonly status: number,
    readonly title: string,
    readonly detail: string,
    readonly fields: readonly FieldProblem[] = [],
  ) {
    super(detail || title);
  }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

function fieldProblems(value: unknown): FieldProblem[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isRecord).map((item) => ({ field: text(item.field), message: text(item.message) }));
}

/** Titles of the statuses that a page may show. */
const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad request',
  403: 'Not allowed',
  404: 'Not found',
  409: 'Conflict with the current state',
  413: 'Too large',
  422: 'Some fields are invalid',
  500: 'Internal server error',
  503: 'The service is not ready',
};

/** Parses a problem document; any other body is described by its status alone. */
export function toProblem(status: number, body: unknown): ApiProblem {
  const document = isRecord(body) ? body : {};
  const title = TITLES[status] ?? (text(document.title) || `The service returned status ${status}`);
  return new ApiProblem(status, title, text(document.detail), fieldProblems(document.errors));
}

const UNREACHABLE = 'The service cannot be reached';

/** Converts any thrown value to a problem that a page can show. */
export function asProblem(error: unknown): ApiProblem {
  if (error instanceof ApiProblem) return error;
  // Of `fetch`, in the words of Chrome, Firefox, Safari and Node; any other TypeError is a fault of the page.
  if (
    error instanceof TypeError &&
    /fetch|network|load failed|offline|connect|stream|terminated/i.test(error.message)
  ) {
    return new ApiProblem(0, UNREACHABLE, 'Nothing was changed. Is “callboard up” running?');
  }
  if (error instanceof Error && /preload|dynamically imported|module script/i.test(error.message)) {
    return new ApiProblem(0, UNREACHABLE, 'A part of this page could not be loaded.');
  }
  return new ApiProblem(0, 'This page failed', error instanceof Error ? error.message : String(error));
}

/** Whether the service did not answer, so that it is worth asking again once it does. */
export const isUnreachable = (error: unknown): boolean => asProblem(error).title === UNREACHABLE;

/** Whether what a page shows has been deleted in the meantime. */
export const isGone = (error: unknown): boolean => error !== null && asProblem(error).status === 404;

/** The message of a failed change for its field, or the whole problem's. */
export function fieldError(error: unknown, field: string): string {
  const problem = asProblem(error);
  const own = problem.fields.find((wrong) => wrong.field === field || wrong.field.startsWith(`${field}.`));
  return own?.message ?? (problem.detail || problem.title);
}
