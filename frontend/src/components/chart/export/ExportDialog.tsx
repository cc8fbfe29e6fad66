import { Button, Group, Modal, NativeSelect, TextInput } from '@mantine/core';
import { useDebouncedValue, useLocalStorage } from '@mantine/hooks';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useId, useMemo, useRef, useState } from 'react';
import { keys } from '@/api/keys';
import { CopyButton } from '@/components/CopyButton';
import { Loading, Problem } from '@/components/feedback';
import { plural } from '@/lib/format';
import { drawn, type Drawing, missingIn, pdfFile, pngFile, svgFile, withPlainTexts } from './drawing';
import classes from './export.module.css';
import { LICENCE } from './fonts';
import { LegendFields } from './LegendFields';
import { type Legends, legendOf, withLegend, withText } from './legends';
import { legendEntries, LEGENDS, type PrintOptions, widthAtFontOfPages, WIDTHS } from './printLayout';
import type { ExportSource, ScriptOptions } from './source';
import { labelProblems } from './texts';

const FORMATS = {
  pdf: { label: 'PDF', ending: 'pdf' },
  svg: { label: 'SVG', ending: 'svg' },
  png: { label: 'PNG, 2×', ending: 'png' },
  csv: { label: 'CSV of what is drawn', ending: 'csv' },
  zip: { label: 'Matplotlib script with its CSV (ZIP)', ending: 'zip' },
} as const;

type Format = keyof typeof FORMATS;

/** Formats that the page draws. */
const DRAWN: ReadonlySet<Format> = new Set(['pdf', 'svg', 'png']);

const LINE_WIDTHS = [0.5, 0.75, 1, 1.25, 1.5, 2, 3];

const options = (labels: Readonly<Record<string, string | { label: string }>>) =>
  Object.entries(labels).map(([value, option]) => ({
    value,
    label: typeof option === 'string' ? option : option.label,
  }));

function save(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

/** What a reader of the figure could not read. */
function warningsOf(svg: Element, missing: string): string[] {
  const { outside, overlapping } = labelProblems(svg);
  return [
    ...(outside.length > 0
      ? [`${plural(outside.length, 'label')} outside the page: ${outside.join(', ')}.`]
      : []),
    ...overlapping.slice(0, 3).map(([a, b]) => `“${a}” and “${b}” overlap.`),
    ...(missing
      ? [`The figure’s font has no ${Array.from(missing).join(' ')}: boxes stand in their place.`]
      : []),
  ];
}

/** The figure as it will be saved, and what is wrong with it. */
function Preview({ drawing, label }: { drawing: Drawing; label: string }) {
  const box = useRef<HTMLDivElement>(null);
  const [warnings, setWarnings] = useState<readonly string[]>([]);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const svg = document.importNode(withPlainTexts(drawing), true);
    // The image has one name; those of its labels are for no screen reader.
    svg.setAttribute('aria-hidden', 'true');
    element.replaceChildren(svg);
    setWarnings(warningsOf(svg, missingIn(drawing)));
  }, [drawing]);
  return (
    <>
      <div ref={box} role="img" aria-label={label} className={classes.preview} />
      <div role="status" aria-label="Problems of the figure" className={classes.warnings}>
        {warnings.map((warning) => (
          <div key={warning}>{warning}</div>
        ))}
      </div>
    </>
  );
}

type Props = {
  source: ExportSource;
  /** Whether the vertical axis is logarithmic. */
  log: boolean;
  onClose: () => void;
};

/** Exports a figure for a paper, with a preview. */
export default function ExportDialog({ source, log, onClose }: Props) {
  const [format, setFormat] = useState<Format>('pdf');
  const [print, setPrint] = useState<Omit<PrintOptions, 'entries'>>({
    width: 'column',
    line_width_pt: 1.25,
    legend: 'below',
    title: '',
  });
  const captionId = useId();
  const shownCaption = useRef<HTMLParagraphElement>(null);
  const set = (to: Partial<PrintOptions>) => setPrint({ ...print, ...to });
  const width_px = widthAtFontOfPages(print.width);
  const figure = useQuery({
    queryKey: keys.exported('figure', ...source.key, source.depends_on_width && width_px),
    queryFn: ({ signal }) => source.figure(signal, width_px),
    placeholderData: (previous) => previous,
    structuralSharing: false,
    gcTime: 0,
  });
  const caption = useQuery({
    queryKey: keys.exported('caption', ...source.key),
    queryFn: async ({ signal }) => (await source.file('caption', {}, signal)).text(),
    gcTime: 0,
  });
  const { data } = figure;
  const entries = useMemo(() => legendEntries(data?.data ?? []), [data]);
  const [legends, setLegends] = useLocalStorage<Legends>({
    key: 'callboard-legends',
    defaultValue: {},
    getInitialValueInEffect: false,
  });
  const edited = useMemo(() => legendOf(legends, entries), [legends, entries]);
  const whole = useMemo<PrintOptions>(
    // An emptied text stands for that of the figure.
    () => ({ ...print, ...(edited && { entries: edited.map((entry) => withText(entry, entries)) }) }),
    [print, edited, entries],
  );
  // Not at each character of the title.
  const [shown] = useDebouncedValue(whole, 150);
  const preview = useQuery({
    queryKey: keys.exported('preview', ...source.key, figure.dataUpdatedAt, shown),
    queryFn: () => (data ? drawn(data, shown) : null),
    enabled: data !== undefined,
    structuralSharing: false,
    placeholderData: (previous) => previous,
    gcTime: 0,
  });
  const script = useMemo<ScriptOptions & { width?: number }>(
    () => ({
      width_in: WIDTHS[print.width].width_in,
      line_width_pt: print.line_width_pt,
      legend: print.legend,
      heading: print.title,
      log_y: log,
      ...(whole.entries && { entry: whole.entries.map(({ number, text }) => `${number}:${text}`) }),
      ...(source.depends_on_width && { width: width_px }),
    }),
    [print, whole.entries, log, source.depends_on_width, width_px],
  );
  const file = async (): Promise<Blob> => {
    if (format === 'csv' || format === 'zip') return source.file(format, script);
    if (!data) throw new Error('The figure is not drawn yet.');
    const drawing = await drawn(data, whole);
    if (format === 'svg') return svgFile(drawing);
    if (format === 'png') return pngFile(drawing);
    return pdfFile(drawing, { title: print.title || source.title, subject: (caption.data ?? '').trim() });
  };
  const download = useMutation({
    mutationFn: async () => save(await file(), `${source.name}.${FORMATS[format].ending}`),
  });
  const error = figure.error ?? preview.error ?? download.error;
  return (
    <Modal opened onClose={onClose} title={`Export figure: ${source.title}`} size="auto">
      <div className={classes.dialog}>
        <form
          className={classes.fields}
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            if (!download.isPending) download.mutate();
          }}
        >
          <NativeSelect
            label="Format"
            data-autofocus
            value={format}
            data={options(FORMATS)}
            onChange={({ currentTarget }) => setFormat(currentTarget.value as Format)}
          />
          <NativeSelect
            label="Width"
            value={print.width}
            data={options(WIDTHS)}
            onChange={({ currentTarget }) => set({ width: currentTarget.value as PrintOptions['width'] })}
          />
          <NativeSelect
            label="Line width"
            value={String(print.line_width_pt)}
            data={LINE_WIDTHS.map((width) => ({ value: String(width), label: `${width} pt` }))}
            onChange={({ currentTarget }) => set({ line_width_pt: Number(currentTarget.value) })}
          />
          <NativeSelect
            label="Legend"
            value={print.legend}
            data={options(LEGENDS)}
            onChange={({ currentTarget }) => set({ legend: currentTarget.value as PrintOptions['legend'] })}
          />
          <TextInput
            label="Title"
            placeholder="None"
            maxLength={200}
            value={print.title}
            onChange={({ currentTarget }) => set({ title: currentTarget.value })}
          />
          {print.legend !== 'none' && format !== 'csv' && entries.length > 1 && (
            <LegendFields
              entries={edited ?? entries}
              onEntries={(to) => setLegends(withLegend(legends, entries, to))}
              onReset={edited && (() => setLegends(withLegend(legends, entries, undefined)))}
            />
          )}
          {DRAWN.has(format) && (
            <p className="muted">
              Font: Inter (
              <a href={LICENCE} download="Inter-LICENSE.txt">
                SIL Open Font License
              </a>
              ).
            </p>
          )}
          <Button
            type="submit"
            loading={download.isPending}
            // Until the figure is laid out for the width that was chosen last.
            disabled={!preview.data || figure.isPlaceholderData}
          >
            Download
          </Button>
        </form>
        <div className={classes.result} aria-busy={preview.isFetching}>
          {error && <Problem error={error} />}
          {preview.data ? (
            <Preview drawing={preview.data} label={`Preview of ${source.title}`} />
          ) : (
            !error && <Loading label="Drawing the figure…" lines={8} />
          )}
          {caption.data && (
            <section aria-labelledby={captionId}>
              <Group justify="space-between">
                <span id={captionId} className="section-title">
                  Caption
                </span>
                <CopyButton value={caption.data.trim()} shown={shownCaption}>
                  {({ copied, copy }) => (
                    <Button variant="subtle" size="compact-xs" onClick={copy}>
                      {copied ? 'Copied' : 'Copy'}
                    </Button>
                  )}
                </CopyButton>
              </Group>
              <p ref={shownCaption} className={classes.caption}>
                {caption.data.trim()}
              </p>
            </section>
          )}
        </div>
      </div>
    </Modal>
  );
}
