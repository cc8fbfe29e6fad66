import { lexer, type MarkedToken, type Token } from 'marked';
import { Fragment, type ReactNode } from 'react';
import classes from './Markdown.module.css';

/** The blocks of a text in Markdown (GitHub's), as React elements: marked reads it, and HTML in it is text. */
export default function MarkdownBlocks({ text }: { text: string }) {
  return <>{parse(text)?.map(block) ?? <p className={classes.plain}>{text}</p>}</>;
}

/** The tokens of a text; null if it nests too deeply to be read. */
function parse(text: string): Token[] | null {
  try {
    return lexer(text, { gfm: true, breaks: true });
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

/** Under the page's own headings. */
const HEADINGS = ['h3', 'h4', 'h5', 'h6'] as const;

/** Other schemes, such as `javascript:`, are not linked. */
const SAFE_URL = /^(?:https?:\/\/|mailto:|\/(?![/\\])|#)/i;

const blocks = (tokens: readonly Token[] | undefined): ReactNode[] => (tokens ?? []).map(block);
const spans = (tokens: readonly Token[] | undefined): ReactNode[] => (tokens ?? []).map(span);

function block(general: Token, key: number): ReactNode {
  const token = general as MarkedToken; // no extension adds others
  switch (token.type) {
    case 'space':
    case 'def':
      return null;
    case 'paragraph':
      return <p key={key}>{spans(token.tokens)}</p>;
    case 'heading': {
      const Heading = HEADINGS[token.depth - 1] ?? 'h6';
      return <Heading key={key}>{spans(token.tokens)}</Heading>;
    }
    case 'blockquote':
      return <blockquote key={key}>{blocks(token.tokens)}</blockquote>;
    case 'list': {
      const items = token.items.map((item, k) => <li key={k}>{blocks(item.tokens)}</li>);
      return token.ordered ? (
        <ol key={key} start={Number(token.start)}>
          {items}
        </ol>
      ) : (
        <ul key={key}>{items}</ul>
      );
    }
    case 'hr':
      return <hr key={key} />;
    case 'code':
      return code(token.text, key);
    case 'table':
      return code(token.raw, key);
    default:
      return span(token, key);
  }
}

const code = (text: string, key: number): ReactNode => (
  <pre key={key} tabIndex={0} aria-label="Code">
    <code>{text}</code>
  </pre>
);

function span(general: Token, key: number): ReactNode {
  const token = general as MarkedToken;
  switch (token.type) {
    case 'escape':
      return token.text;
    case 'text':
      return <Fragment key={key}>{token.tokens ? spans(token.tokens) : token.text}</Fragment>;
    case 'checkbox':
      return token.checked ? '☑ ' : '☐ ';
    case 'codespan':
      return <code key={key}>{token.text}</code>;
    case 'br':
      return <br key={key} />;
    case 'link':
      return SAFE_URL.test(token.href) ? (
        <a key={key} href={token.href} rel="noopener noreferrer nofollow">
          {spans(token.tokens)}
        </a>
      ) : (
        token.raw
      );
    case 'strong':
      return <strong key={key}>{spans(token.tokens)}</strong>;
    case 'em':
      return <em key={key}>{spans(token.tokens)}</em>;
    case 'del':
      return <del key={key}>{spans(token.tokens)}</del>;
    default:
      return token.raw; // HTML, images
  }
}
