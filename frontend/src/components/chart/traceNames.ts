import type { Trace } from '@/api/tails';

/** Text of a figure, which is escaped for plotly. */
export const plain = (text: string): string =>
  text.replaceAll('&#123;', '{').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');

/** What a trace is called on a page, which states the number of seeds elsewhere. */
export const nameOf = ({ name = '', meta }: Trace): string =>
  meta?.label?.name ? [meta.label.name, meta.label.detail].filter(Boolean).join(', ') : plain(name);

/** Id of the run or group that a trace belongs to; undefined for reference lines. */
export const seriesOf = ({ meta }: Trace): string | undefined => meta?.group ?? meta?.run;
