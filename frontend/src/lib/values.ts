/** Several values typed into one field: a list or a range, of which each value gives a run. */
import { MAX_RUNS } from './runBounds';
import { formatInteger, parseNumber } from './format';
import { parseRaw, toRaw, type ConfigField, type Raw } from './schema';

/** The values of an input, one for a plain value; empty if there is an error. */
export type Values = { values: readonly unknown[]; error: string | null };

/** `from..to`, `from..to by step`, `from..to in n` (evenly spaced) or `from..to log n` (equal ratios). */
const RANGE = /^(\S+?)\s*\.\.\s*(\S+)(?:\s+(by|in|log)\s+(\S+))?$/i;

const invalid = (error: string): Values => ({ values: [], error });

/** Parses an input that may hold a list or a range; a switch or a single value gives one value. */
export function parseValues(field: ConfigField, raw: Raw): Values {
  const single = (): Values => {
    const { value, error } = parseRaw(field, raw);
    return error === null ? { values: [value], error } : invalid(error);
  };
  if (typeof raw === 'boolean' || field.kind === 'text') return single();
  const text = raw.trim();
  if (field.kind === 'boolean')
    return parseEach(
      field,
      text.split(',').map((item) => item.trim()),
    );
  const range = field.kind === 'choice' ? null : RANGE.exec(text);
  const typed = range ? expand(range, field.kind === 'integer') : split(field, text);
  if (typeof typed === 'string') return invalid(typed);
  if (typed === null) return single();
  return parseEach(field, typed);
}

/** The items of a list; null for a single value, and a message for one that may be a decimal comma. */
function split(field: ConfigField, text: string): string[] | string | null {
  if (!text.includes(',')) return null;
  if (field.kind !== 'choice') {
    if (Number.isFinite(parseNumber(text))) return null;
    if (/^[+-]?\d+,\d+$/.test(text)) {
      return 'Enter a number with a decimal point, not a comma, or a list with a space after each comma.';
    }
  }
  const separator = /,\s/.test(text) ? /,(?:\s+|$)/ : /,/;
  return text.split(separator).map((item) => item.trim());
}

function parseEach(field: ConfigField, items: readonly string[]): Values {
  if (items.length > MAX_RUNS) {
    return invalid(`At most ${MAX_RUNS} values are allowed; these are ${formatInteger(items.length)}.`);
  }
  const values: unknown[] = [];
  for (const item of items) {
    const { value, error } = field.kind === 'boolean' ? parseSwitch(item) : parseRaw(field, item);
    if (error !== null) return invalid(item === '' ? 'Enter a value after each comma.' : `${item}: ${error}`);
    if (values.includes(value)) return invalid(`${item} is given twice.`);
    values.push(value);
  }
  return { values, error: null };
}

const parseSwitch = (item: string) =>
  item === 'yes' || item === 'no'
    ? { value: item === 'yes', error: null }
    : { value: undefined, error: 'Enter yes or no.' };

/** The values of a range as text, or what is wrong with it. */
function expand([, from = '', to = '', word, by = '']: RegExpExecArray, whole: boolean): string[] | string {
  const kind = word?.toLowerCase();
  const [first, last] = [parseNumber(from), parseNumber(to)];
  if (!Number.isFinite(first) || !Number.isFinite(last)) return 'Enter numbers at both ends of the range.';
  if (!(last > first)) return 'The end of a range must be above its start.';
  const size = kind ? parseNumber(by) : 1;
  const n = kind === undefined || kind === 'by' ? Math.floor((last - first) / size + 1e-9) + 1 : size;
  if (!(size > 0)) return 'Enter a number above 0 after the range.';
  if (!Number.isInteger(n) || n < 2) {
    if (kind === undefined)
      return 'Enter a step, such as by 0.1, or a number of values, such as in 5, after the range.';
    if (kind === 'by') return 'Enter a step that fits into the range.';
    return 'Enter a whole number of values, at least 2, after the range.';
  }
  if (n > MAX_RUNS) return `At most ${MAX_RUNS} values are allowed; these are ${formatInteger(n)}.`;
  if (kind === 'log' && first <= 0) return 'A range with equal ratios must start above 0.';
  const at = (index: number): number => {
    // The ends are exact, whatever their number of digits.
    if (index === 0) return first;
    if (kind === 'log' || kind === 'in') {
      if (index === n - 1) return last;
      const share = index / (n - 1);
      const value = kind === 'log' ? first * (last / first) ** share : first + (last - first) * share;
      return Number(value.toPrecision(4));
    }
    return Number((first + index * size).toPrecision(12));
  };
  const numbers = Array.from({ length: n }, (_, index) => at(index));
  const rounded = whole && kind !== undefined ? numbers.map(Math.round) : numbers;
  return [...new Set(rounded)].map((number) => String(toRaw(number)));
}
