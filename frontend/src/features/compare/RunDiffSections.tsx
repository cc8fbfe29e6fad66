import type { ReactNode } from 'react';
import { CopyCode } from '@/components/CopyCode';
import { ScrollPanel } from '@/components/ScrollPanel';
import { TextLink } from '@/components/controls';
import type { RunDiff } from '@/api/runDiff';
import { DASH, formatCount, formatInteger, formatValue, plural } from '@/lib/format';
import classes from './compare.module.css';

type Line = { name: string; title?: string; a: string | null; b: string | null };

/** What differs between two runs, by what it is about. */
export function RunDiffSections({ diff }: { diff: RunDiff }) {
  const [a, b] = diff.runs;
  if (!a || !b) return null;
  const config = diff.config.map(({ path, title, a: first, b: second, has_a, has_b }) => ({
    name: title,
    title: path,
    a: has_a ? formatValue(first) : null,
    b: has_b ? formatValue(second) : null,
  }));
  const table = (label: string, lines: readonly Line[]) => (
    <DiffTable runs={[a, b]} label={label} lines={lines} />
  );
  const nameOf = (run: string): string => [a, b].find(({ id }) => id === run)?.name ?? run;
  return (
    <>
      <p className={classes.summary}>{diff.summary}</p>
      <Section title="Config" same={equal(diff.n_equal_settings, 'setting')}>
        {config.length > 0 && table('Config', config)}
      </Section>
      <Section title="Live changes" same="No setting was changed during training.">
        {diff.live_changes.length > 0 && (
          <ScrollPanel label="Live changes">
            <table className="grid">
              <thead>
                <tr>
                  <th>Run</th>
                  <th className="right">Agent steps</th>
                  <th>Hyperparameter</th>
                  <th>Value</th>
                </tr>
              </thead>
              <tbody>
                {diff.live_changes.map(({ run, agent_steps, path, title, value }, at) => (
                  <tr key={at}>
                    <td>{nameOf(run)}</td>
                    <td className="right num">{formatCount(agent_steps)}</td>
                    <td title={path}>{title}</td>
                    <td className="num">{formatValue(value)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </ScrollPanel>
        )}
      </Section>
      <Section title="Code" same="No difference that is recorded.">
        {diff.code.length > 0 && table('Code', diff.code)}
        {diff.patch.map(({ file, a: first, b: second, is_cut }) => (
          <details key={file}>
            <summary className="num">{file}</summary>
            {[first, second].map((patch, at) => (
              <Patch key={at} file={file} run={(at === 0 ? a : b).name} patch={patch} />
            ))}
            {is_cut && <div className="muted">Only the beginning is shown.</div>}
          </details>
        ))}
        {diff.n_more_files > 0 && <div className="muted">{plural(diff.n_more_files, 'further file')}.</div>}
      </Section>
      <Section title="Packages" same={equal(diff.n_equal_packages, 'package')}>
        {diff.packages.length > 0 && table('Packages', diff.packages)}
      </Section>
      <Section title="Host" same="No difference that is recorded.">
        {diff.host.length > 0 && table('Host', diff.host)}
      </Section>
      <Section title="Command" same="No difference that is recorded.">
        {diff.command.length > 0 && table('Command', diff.command)}
      </Section>
      {diff.unknown.length > 0 && (
        <ul className={`muted ${classes.unknown}`} aria-label="Not recorded">
          {diff.unknown.map((sentence) => (
            <li key={sentence}>{sentence}</li>
          ))}
        </ul>
      )}
    </>
  );
}

/** How a file differed from the commit in a run. */
const Patch = ({ file, run, patch }: { file: string; run: string; patch: string | null }) => (
  <div>
    <div className="muted">{run}</div>
    {patch === null ? <div>As in the commit.</div> : <CopyCode code={patch} label={`${file} of ${run}`} />}
  </div>
);

const equal = (n: number, what: string): string =>
  n === 0 ? 'None is recorded.' : `${formatInteger(n)} equal ${plural(n, what).replace(/^\S+ /, '')}.`;

/** Differences, else in a line what is the same. */
function Section({ title, same, children }: { title: string; same: string; children: ReactNode }) {
  const isSame = [children].flat(2).every((part) => part === false);
  return (
    <section className={classes.statistics}>
      <h2 className="section-title">{title}</h2>
      {isSame ? <div className="muted">{same}</div> : children}
    </section>
  );
}

type TableProps = { runs: readonly RunDiff['runs'][number][]; label: string; lines: readonly Line[] };

function DiffTable({ runs, label, lines }: TableProps) {
  return (
    <ScrollPanel label={label} className={classes.scroll}>
      <table className={`grid ${classes.diff}`}>
        <thead>
          <tr>
            <th>Name</th>
            {runs.map(({ id, name }) => (
              <th key={id}>
                <TextLink to="/runs/$runId" params={{ runId: id }}>
                  {name}
                </TextLink>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {lines.map(({ name, title, a, b }) => (
            <tr key={title ?? name}>
              <td title={title}>{name}</td>
              {[a, b].map((value, at) => (
                <td key={at} className="num">
                  {value ?? DASH}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </ScrollPanel>
  );
}
