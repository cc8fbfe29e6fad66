import { lazy, Suspense } from 'react';
import classes from './Markdown.module.css';

const MarkdownBlocks = lazy(() => import('./MarkdownBlocks'));

/** Markdown as React elements: no HTML of the text reaches the page. Until the parser is loaded, the text as it is. */
export function Markdown({ text }: { text: string }) {
  return (
    <div className={classes.markdown}>
      <Suspense fallback={<p className={classes.plain}>{text}</p>}>
        <MarkdownBlocks text={text} />
      </Suspense>
    </div>
  );
}
