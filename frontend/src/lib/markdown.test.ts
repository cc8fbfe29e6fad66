import { describe, expect, it } from 'vitest';
import { parseMarkdown, type Block, type Inline } from './markdown';

const inlineText = (node: Inline): string => {
  switch (node.kind) {
    case 'text':
      return node.text;
    case 'code':
      return `<code>${node.text}</code>`;
    case 'break':
      return '<br>';
    case 'link':
      return `<a ${node.href}>${node.children.map(inlineText).join('')}</a>`;
    default:
      return `<${node.kind}>${node.children.map(inlineText).join('')}</${node.kind}>`;
  }
};

/** A readable form of the parsed text. */
const shown = (nodes: readonly Block[]): string =>
  nodes
    .map((node) => {
      switch (node.kind) {
        case 'paragraph':
          return `<p>${node.children.map(inlineText).join('')}</p>`;
        case 'heading':
          return `<h${node.level}>${node.children.map(inlineText).join('')}</h>`;
        case 'code':
          return `<pre>${node.text}</pre>`;
        case 'quote':
          return `<quote>${shown(node.children)}</quote>`;
        case 'list':
          return `<list ${node.start ?? '-'}>${node.items.map((item) => `<li>${shown(item)}</li>`).join('')}</list>`;
        case 'rule':
          return '<hr>';
      }
    })
    .join('');

const html = (text: string): string => shown(parseMarkdown(text));

describe('parseMarkdown', () => {
  it.each([
    ['a line\nand another', '<p>a line<br>and another</p>'],
    ['one\n\ntwo', '<p>one</p><p>two</p>'],
    ['# Title\ntext', '<h1>Title</h><p>text</p>'],
    ['#5 of 8', '<p>#5 of 8</p>'],
    ['---', '<hr>'],
    ['```python\nif a:\n    **b**\n```\nafter', '<pre>if a:\n    **b**</pre><p>after</p>'],
    ['```\nnever closed', '<pre>never closed</pre>'],
    ['> a\n> - b', '<quote><p>a</p><list -><li><p>b</p></li></list></quote>'],
    ['- a\n- b', '<list -><li><p>a</p></li><li><p>b</p></li></list>'],
    ['- a\n  - b\n- c', '<list -><li><p>a</p><list -><li><p>b</p></li></list></li><li><p>c</p></li></list>'],
    ['3. a\n\n   more\n4. b', '<list 3><li><p>a</p><p>more</p></li><li><p>b</p></li></list>'],
    ['- a\n\nafter', '<list -><li><p>a</p></li></list><p>after</p>'],
  ])('parses the blocks of %j', (text, expected) => expect(html(text)).toBe(expected));

  it.each([
    ['**bold** and *italic* and ~~gone~~', '<strong>bold</strong> and <em>italic</em> and <del>gone</del>'],
    ['**a *b* c**', '<strong>a <em>b</em> c</strong>'],
    ['`**code**`', '<code>**code**</code>'],
    ['snake_case_name and 2 * 3 * 4', 'snake_case_name and 2 * 3 * 4'],
    ['**open', '**open'],
    ['\\*no emphasis\\*', '*no emphasis*'],
    ['[paper](https://example.org/a?b=c)', '<a https://example.org/a?b=c>paper</a>'],
    ['see https://example.org/x.', 'see <a https://example.org/x>https://example.org/x</a>.'],
    ['[run](/runs/01)', '<a /runs/01>run</a>'],
  ])('parses the spans of %j', (text, expected) => expect(html(text)).toBe(`<p>${expected}</p>`));

  it.each([
    '[a](javascript:alert)',
    '[a](JaVaScRiPt:alert)',
    '[a](data:text/html,b)',
    '[a](//example.org)',
    '[a](/\\example.org)',
    '<img src=x onerror=alert>',
  ])('keeps %j as text', (text) => expect(html(text)).toBe(`<p>${text}</p>`));

  it.each(['*', '_', '**', '`', '[', '> ', '- ', '[a](', '**a ', '*a_b ', 'https://', '# ', '\n'])(
    'parses 20,000 characters of %j in less than a second',
    (part) => {
      const text = part.repeat(Math.ceil(20_000 / part.length));
      const began = performance.now();
      parseMarkdown(text);
      expect(performance.now() - began).toBeLessThan(1000);
    },
  );
});
