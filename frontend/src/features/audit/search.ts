/** The search parameters of the audit trail, which its form checks, too. */
import { checked, type Unchecked, text } from '@/lib/search';

/** Whether text of digits is a day of the calendar; some browsers take 30 February for 2 March. */
const isDay = (text: string): boolean => {
  const at = Date.parse(text);
  return !Number.isNaN(at) && new Date(at).toISOString().startsWith(text);
};

/**
 * A day, such as `2026-11-22`. The service accepts the years 1970 to 9998; the first and the last of them are left out,
 * since in another time zone they begin or end outside.
 */
const day = (value: unknown): string | undefined =>
  typeof value === 'string' &&
  /^\d{4}-\d{2}-\d{2}$/.test(value) &&
  value >= '1971' &&
  value < '9998' &&
  isDay(value)
    ? value
    : undefined;

export const auditSearch = (search: Unchecked) =>
  checked({
    user: text(search.user),
    action: text(search.action),
    address: text(search.address),
    /** First and last day, in the browser's time zone. */
    from: day(search.from),
    to: day(search.to),
  });
