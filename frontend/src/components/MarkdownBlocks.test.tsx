import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import MarkdownBlocks from './MarkdownBlocks';

const html = (text: string): string =>
  renderToStaticMarkup(<MarkdownBlocks text={text} />)
    .replaceAll(' tabindex="0" aria-label="Code"', '')
    .replaceAll(' rel="noopener noreferrer nofollow"', '')
    .replaceAll(/ class="[^"]*"/g, '')
    .replaceAll('<br/>', '<br>');

const escaped = (text: string): string => text.replaceAll('<', '&lt;').replaceAll('>', '&gt;');

describe('MarkdownBlocks', () => {
  it.each([
    ['a line\nand another', '<p>a line<br>and another</p>'],
    ['one\n\ntwo', '<p>one</p><p>two</p>'],
    ['# Title\ntext', '<h3>Title</h3><p>text</p>'],
    ['#5 of 8', '<p>#5 of 8</p>'],
    ['---', '<hr/>'],
    ['```python\nif a:\n    **b**\n```\nafter', '<pre><code>if a:\n    **b**</code></pre><p>after</p>'],
    ['```\nnever closed', '<pre><code>never closed</code></pre>'],
    ['> a\n> - b', '<blockquote><p>a</p><ul><li>b</li></ul></blockquote>'],
    ['- a\n  - b\n- c', '<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>'],
    ['- [x] done', '<ul><li>☑ done</li></ul>'],
    ['3. a\n4. b', '<ol start="3"><li>a</li><li>b</li></ol>'],
    ['- a\n\nafter', '<ul><li>a</li></ul><p>after</p>'],
    ['| a |\n|---|\n| b |', '<pre><code>| a |\n|---|\n| b |</code></pre>'],
  ])('shows the blocks of %j', (text, expected) => expect(html(text)).toBe(expected));

  it.each([
    ['**bold** and *italic* and ~~gone~~', '<strong>bold</strong> and <em>italic</em> and <del>gone</del>'],
    ['**a *b* c**', '<strong>a <em>b</em> c</strong>'],
    ['`**code**`', '<code>**code**</code>'],
    ['snake_case_name and 2 * 3 * 4', 'snake_case_name and 2 * 3 * 4'],
    ['**open', '**open'],
    ['\\*no emphasis\\*', '*no emphasis*'],
    ['[paper](https://example.org/a?b=c)', '<a href="https://example.org/a?b=c">paper</a>'],
    ['see https://example.org/x.', 'see <a href="https://example.org/x">https://example.org/x</a>.'],
    ['[run](/runs/01)', '<a href="/runs/01">run</a>'],
  ])('shows the spans of %j', (text, expected) => expect(html(text)).toBe(`<p>${expected}</p>`));

  it.each([
    '[a](javascript:alert)',
    '[a](JaVaScRiPt:alert)',
    '[a](data:text/html,b)',
    '[a](//example.org)',
    'b <img src=x onerror=alert>',
    '![a](https://example.org/a.png)',
  ])('shows %j as text', (text) => expect(html(text)).toBe(`<p>${escaped(text)}</p>`));

  it('shows HTML between paragraphs as text', () =>
    expect(html('a\n\n<script>alert(1)</script>\n')).toBe(
      '<p>a</p>' + escaped('<script>alert(1)</script>\n'),
    ));

  it('shows a text that nests too deeply as it is', () => {
    const text = '> '.repeat(10_000);
    expect(html(text)).toBe(`<p>${escaped(text)}</p>`);
  });
});
