import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { setDraining, useHostChange, type Host } from '@/api/hosts';
import { BusyButton } from '@/components/BusyButton';
import { Confirm } from '@/components/Confirm';
import { RunName } from '@/components/RunName';
import { StateMark } from '@/components/StateMark';
import { Time } from '@/components/Time';
import { DASH, formatBytes, plural } from '@/lib/format';
import classes from './hosts.module.css';
import { Meter } from './Meter';

/** One machine: what it has, how busy it is, what runs there. */
export function HostPanel({ host }: { host: Host }) {
  const [asking, setAsking] = useState(false);
  const change = useHostChange((draining: boolean) => setDraining(host.id, draining));
  const { cpu_pct: cpu, memory_used_bytes: memory, gpus, recent } = host.load;
  const state = !host.alive ? 'does not answer' : host.draining ? 'draining' : 'taking runs';
  const versions = Object.entries(host.versions);
  return (
    <section className={`panel ${classes.host}`} aria-label={host.id}>
      <header className="row wrap">
        <h2 className={classes.name}>{host.id}</h2>
        <span data-alive={host.alive && !host.draining} className={classes.state}>
          {state}
        </span>
        <span className="muted">
          heard of <Time at={host.last_seen_at} />
        </span>
        <span className="grow" />
        <BusyButton
          variant="default"
          loading={change.isPending}
          onClick={() => (host.draining ? change.mutate(false) : setAsking(true))}
        >
          {host.draining ? 'Take runs again' : 'Drain'}
        </BusyButton>
      </header>
      <div className={classes.meters} data-stale={!host.alive || undefined}>
        <Meter
          label="CPU"
          past={recent.cpu}
          value={cpu == null ? null : cpu / 100}
          text={`${Math.round(cpu ?? 0)}% of ${plural(host.cpu_count, 'core')}`}
        />
        <Meter
          label="Memory"
          past={recent.memory}
          value={memory == null ? null : memory / host.memory_bytes}
          text={`${formatBytes(memory)} of ${formatBytes(host.memory_bytes)}`}
        />
        {gpus.map(({ gpu_pct: busy, memory_used_bytes: used, memory_bytes: all }, index) => (
          <Meter
            key={index}
            label={`GPU ${index}`}
            past={recent.gpus[index]}
            value={busy == null ? null : busy / 100}
            text={`${Math.round(busy ?? 0)}%, ${formatBytes(used)} of ${formatBytes(all)}`}
          />
        ))}
        <Meter
          label="Slots"
          value={host.runs.length / host.slots}
          text={`${host.runs.length} of ${host.slots} taken`}
        />
      </div>
      <dl className={classes.facts}>
        <dt>Queues</dt>
        <dd>{host.queues.join(', ')}</dd>
        <dt>Devices</dt>
        <dd>{host.devices.join(', ') || 'cpu'}</dd>
        <dt>Versions</dt>
        <dd className="num">{versions.map(([name, version]) => `${name} ${version}`).join(', ') || DASH}</dd>
        <dt>Runs here</dt>
        <dd>
          {host.runs.length === 0 && <span className="muted">none</span>}
          {host.runs.map((run) => (
            <span key={run.id} className="row">
              <StateMark state={run.state} />
              <Link to="/runs/$runId" params={{ runId: run.id }} className="ellipsis" aria-label={run.name}>
                <RunName name={run.name} />
              </Link>
            </span>
          ))}
        </dd>
      </dl>
      <Confirm
        opened={asking}
        onClose={() => setAsking(false)}
        title={`Drain ${host.id}`}
        action="Drain"
        onConfirm={() => change.mutateAsync(true)}
      >
        It finishes what it runs and takes nothing new until you let it. Nothing is stopped
        {host.runs.length > 0 ? `: ${plural(host.runs.length, 'run goes', 'runs go')} on` : ''}.
      </Confirm>
    </section>
  );
}
