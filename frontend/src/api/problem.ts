/** What went wrong, in the service's own words (RFC 9457 problem documents). */

export type FieldProblem = { field: string; message: string };

export class ApiProblem extends Error {
  override readonly name = 'ApiProblem';

  constructor(
    /** 0 when the service did not answer at all. */
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

/** The statuses a person may come to see; HTTP's own names for them are no plain words. */
const TITLES: Readonly<Record<number, string>> = {
  400: 'That was not understood',
  403: 'Not allowed',
  404: 'Not found',
  409: 'Not possible as things are',
  413: 'Too large',
  422: 'Something in this is wrong',
  500: 'The service failed',
  503: 'The service is not ready',
};

/** Reads a problem document; whatever else came back is told by its status alone. */
export function toProblem(status: number, body: unknown): ApiProblem {
  const found = isRecord(body) ? body : {};
  const title = TITLES[status] ?? (text(found.title) || `The service answered ${status}`);
  return new ApiProblem(status, title, text(found.detail), fieldProblems(found.errors));
}

/** Any thrown thing as a problem a page can show. */
export function asProblem(error: unknown): ApiProblem {
  if (error instanceof ApiProblem) return error;
  if (error instanceof TypeError) {
    return new ApiProblem(
      0,
      'The service does not answer',
      'Nothing was changed. Is “callboard up” running?',
    );
  }
  if (error instanceof Error && /preload|dynamically imported|module script/i.test(error.message)) {
    return new ApiProblem(0, 'The service does not answer', 'A part of this page could not be loaded.');
  }
  return new ApiProblem(0, 'This page failed', error instanceof Error ? error.message : String(error));
}
