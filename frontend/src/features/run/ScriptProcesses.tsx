import { NativeSelect } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useState, type ReactNode } from 'react';
import { processQuery, type RunDetail } from '@/api/runs';
import { CopyCode } from '@/components/CopyCode';
import { Loading, Problem } from '@/components/feedback';
import { ScrollPanel } from '@/components/ScrollPanel';
import { plural } from '@/lib/format';
import { processFacts } from './provenance';
import classes from './run.module.css';

const Printed = lazy(() => import('./Printed'));

/** Where the processes of a script came from: host, command, code, packages, and what they printed last. */
export function ScriptProcesses({ run }: { run: Pick<RunDetail, 'id' | 'processes'> }) {
  const [chosen, setChosen] = useState<string>();
  const last = run.processes.at(-1);
  const process = run.processes.find(({ source }) => source === chosen) ?? last;
  if (!process) return null;
  return (
    <section aria-label="Provenance" className={classes.script}>
      <h3 className="section-title" style={{ margin: '16px 0 8px' }}>
        Provenance
      </h3>
      {run.processes.length > 1 && (
        <NativeSelect
          label="Process"
          mb={8}
          maw={320}
          value={process.source}
          onChange={(event) => setChosen(event.currentTarget.value)}
          data={run.processes.map(({ source, host }, k) => ({
            value: source,
            label: `${k + 1} on ${host || 'an unknown host'}`,
          }))}
        />
      )}
      <ScrollPanel label="Provenance of the script">
        <table className="grid">
          <tbody>
            {processFacts(process).map(({ title, value }) => (
              <tr key={title}>
                <th scope="row" className="nowrap">
                  {title}
                </th>
                <td className={`num ${classes.fact}`}>{value}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollPanel>
      <More run={run.id} source={process.source} key={process.source} />
    </section>
  );
}

const showEnd = (element: HTMLElement | null): void => {
  if (element) element.scrollTop = element.scrollHeight;
};

/** What is long, read when it is opened. */
function More({ run, source }: { run: string; source: string }) {
  const [isOpen, setOpen] = useState(false);
  const { data, error, refetch } = useQuery({ ...processQuery(run, source), enabled: isOpen });
  const packages = Object.entries(data?.packages ?? {});
  return (
    <details className={classes.more} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Output, changes and packages</summary>
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!error && !data && <Loading label="Loading what the script printed" lines={4} />}
      {data && (
        <>
          <Part title="Output" isEmpty={data.output === ''} empty="It has printed nothing.">
            <pre tabIndex={0} aria-label="Output" className={classes.output} ref={showEnd}>
              <Suspense fallback={data.output}>
                <Printed text={data.output} />
              </Suspense>
            </pre>
          </Part>
          <Part title="Changes" isEmpty={data.diff === ''} empty="None that are recorded.">
            <CopyCode code={data.diff} label="Changes" />
          </Part>
          <Part title="Packages" isEmpty={packages.length === 0} empty="None.">
            <details>
              <summary>{plural(packages.length, 'package')}</summary>
              <CopyCode
                code={packages.map(([name, version]) => `${name}==${version}`).join('\n')}
                label="Packages"
              />
            </details>
          </Part>
        </>
      )}
    </details>
  );
}

type PartProps = { title: string; isEmpty: boolean; empty: string; children: ReactNode };

function Part({ title, isEmpty, empty, children }: PartProps) {
  return (
    <>
      <h4>{title}</h4>
      {isEmpty ? <p className="muted">{empty}</p> : children}
    </>
  );
}
