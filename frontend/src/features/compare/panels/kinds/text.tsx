import { Markdown } from '@/components/Markdown';
import type { PanelKind } from '../kinds';
import classes from '../panels.module.css';

const MAX_LENGTH = 10_000;

export const kind: PanelKind = {
  label: 'Text',
  order: 80,
  fields: ['text'],
  size: { columns: 4, height: 228 },
  titleOf: () => 'Text',
  refusal: ({ text = '' }) =>
    text.trim() === ''
      ? 'Write a text.'
      : text.length > MAX_LENGTH
        ? `The text has at most ${MAX_LENGTH} characters.`
        : undefined,
  Body: ({ panel, title, height }) => (
    <div className={classes.scroll} style={{ height }} role="group" aria-label={title} tabIndex={0}>
      <Markdown text={panel.text ?? ''} />
    </div>
  ),
};
