import { Fragment, type ReactNode } from 'react';
import { parseMarkdown, type Block, type Inline } from '@/lib/markdown';
import classes from './Markdown.module.css';

/** Markdown as React elements: no HTML of the text reaches the page. */
export function Markdown({ text }: { text: string }) {
  return <div className={classes.markdown}>{parseMarkdown(text).map(block)}</div>;
}

/** Under the page's own headings. */
const HEADINGS = ['h3', 'h4', 'h5', 'h6'] as const;

function block(node: Block, key: number): ReactNode {
  switch (node.kind) {
    case 'paragraph':
      return <p key={key}>{node.children.map(inline)}</p>;
    case 'heading': {
      const Heading = HEADINGS[Math.min(node.level, HEADINGS.length) - 1] ?? 'h6';
      return <Heading key={key}>{node.children.map(inline)}</Heading>;
    }
    case 'code':
      return (
        <pre key={key} tabIndex={0} aria-label="Code">
          <code>{node.text}</code>
        </pre>
      );
    case 'quote':
      return <blockquote key={key}>{node.children.map(block)}</blockquote>;
    case 'list': {
      const items = node.items.map((item, k) => <li key={k}>{item.map(listed)}</li>);
      return node.start === null ? (
        <ul key={key}>{items}</ul>
      ) : (
        <ol key={key} start={node.start}>
          {items}
        </ol>
      );
    }
    case 'rule':
      return <hr key={key} />;
  }
}

/** In a list item, a paragraph is only its text. */
const listed = (node: Block, key: number): ReactNode =>
  node.kind === 'paragraph' ? <Fragment key={key}>{node.children.map(inline)}</Fragment> : block(node, key);

function inline(node: Inline, key: number): ReactNode {
  switch (node.kind) {
    case 'text':
      return node.text;
    case 'code':
      return <code key={key}>{node.text}</code>;
    case 'break':
      return <br key={key} />;
    case 'link':
      return (
        <a key={key} href={node.href} rel="noopener noreferrer nofollow">
          {node.children.map(inline)}
        </a>
      );
    case 'strong':
      return <strong key={key}>{node.children.map(inline)}</strong>;
    case 'em':
      return <em key={key}>{node.children.map(inline)}</em>;
    case 'del':
      return <del key={key}>{node.children.map(inline)}</del>;
  }
}
