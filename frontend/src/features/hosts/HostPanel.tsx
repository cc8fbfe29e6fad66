import { useState } from 'react';
import { removeHost, setDraining, useHostMutation, type Host } from '@/api/hosts';
import { useNames } from '@/api/names';
import { ConfirmDialog } from '@/components/ConfirmDialog';
import { LoadingButton, TextLink } from '@/components/controls';
import { Problem } from '@/components/feedback';
import { PermittedButton, useDenied } from '@/components/permission';
import { ProgressBar } from '@/components/ProgressBar';
import { RunLink } from '@/components/run/RunLink';
import { StateBadge } from '@/components/run/StateBadge';
import { Term } from '@/components/Term';
import { RelativeTime } from '@/components/text';
import { DASH, formatBytes, formatInteger, formatRate, plural } from '@/lib/format';
import classes from './hosts.module.css';
import { Meter } from './Meter';

function hostState(host: Host): string {
  if (host.stopped_at) return 'stopped';
  if (!host.alive) return 'offline';
  return host.draining ? 'draining' : 'accepting runs';
}

/** What a GPU reports of its use, memory and power: "97%, 12 GiB of 141 GiB, 412 W of 700 W". */
function gpuText(gpu: Host['load']['gpus'][number]): string {
  const { gpu_pct: pct, memory_used_bytes: used, memory_bytes: total, power_w, power_limit_w } = gpu;
  const watts = (power: number) => `${formatInteger(Math.round(power))} W`;
  const power = power_w == null ? '' : `, ${watts(power_w)}`;
  const limit = power_w == null || power_limit_w == null ? '' : ` of ${watts(power_limit_w)}`;
  const use = pct == null ? 'use not reported' : `${Math.round(pct)}%`;
  return `${use}, ${formatBytes(used)} of ${formatBytes(total)}${power}${limit}`;
}

/** A host: its resources, load, versions and active runs. */
export function HostPanel({ host }: { host: Host }) {
  const names = useNames(host.runs);
  const [confirming, setConfirming] = useState(false);
  const [removing, setRemoving] = useState(false);
  const denied = useDenied();
  const change = useHostMutation((draining: boolean) => setDraining(host.id, draining));
  const remove = useHostMutation(() => removeHost(host.id));
  const { cpu_pct: cpu, memory_used_bytes: memory, gpus, recent } = host.load;
  const state = hostState(host);
  const versions = Object.entries(host.versions);
  const packageProblems = Object.entries(host.load.package_problems);
  return (
    <section className={`panel ${classes.host}`} aria-label={host.id}>
      <header className="row wrap">
        <h2 className={classes.name}>{host.id}</h2>
        <span data-alive={host.alive && !host.draining} className={classes.state}>
          {state}
        </span>
        <span className={`muted ${classes.heartbeat}`}>
          {host.stopped_at ? (
            <RelativeTime at={host.stopped_at} />
          ) : (
            <>
              {host.alive ? 'last heartbeat:' : 'has not responded since'}{' '}
              <RelativeTime at={host.last_seen_at} />
            </>
          )}
        </span>
        <span className="grow" />
        {!host.alive && host.runs.length === 0 && (
          <PermittedButton denied={denied} variant="default" onClick={() => setRemoving(true)}>
            Remove
          </PermittedButton>
        )}
        <Term id="drain" icon>
          What the button does
        </Term>
        {denied === undefined ? (
          <LoadingButton
            variant="default"
            loading={change.isPending}
            onClick={() => (host.draining ? change.mutate(false) : setConfirming(true))}
          >
            {host.draining ? 'Accept runs again' : 'Drain'}
          </LoadingButton>
        ) : (
          <PermittedButton variant="default" denied={denied}>
            {host.draining ? 'Accept runs again' : 'Drain'}
          </PermittedButton>
        )}
      </header>
      {/* The dialog shows a drain that has failed. */}
      {change.isError && !change.variables && <Problem error={change.error} />}
      <div className={classes.meters} data-stale={!host.alive || undefined}>
        <Meter
          label="CPU"
          history={recent.cpu}
          duration_s={recent.duration_s}
          value={cpu == null ? null : cpu / 100}
          text={cpu == null ? null : `${Math.round(cpu)}% of ${plural(host.cpu_count, 'core')}`}
        />
        <Meter
          label="Memory"
          history={recent.memory}
          duration_s={recent.duration_s}
          value={memory == null ? null : memory / host.memory_bytes}
          text={memory == null ? null : `${formatBytes(memory)} of ${formatBytes(host.memory_bytes)}`}
        />
        <DiskMeter load={host.load} />
        {gpus.map((gpu, position) => (
          <Meter
            key={position}
            label={`GPU ${gpu.index ?? position}`}
            history={recent.gpus[position]}
            duration_s={recent.duration_s}
            value={gpu.gpu_pct == null ? null : gpu.gpu_pct / 100}
            text={gpuText(gpu)}
          />
        ))}
        <Meter
          label="Slots"
          value={host.runs.length / host.slots}
          text={`${host.runs.length} of ${host.slots} in use`}
        />
      </div>
      <dl className={classes.facts}>
        <dt>Queues</dt>
        <dd>{host.queues.join(', ')}</dd>
        <dt>Devices</dt>
        <dd>{host.devices.join(', ') || 'cpu'}</dd>
        {host.commands.length > 0 && (
          <>
            <dt>Commands</dt>
            <dd>{host.commands.join(', ')}</dd>
          </>
        )}
        <dt>Versions</dt>
        <dd className="num">{versions.map(([name, version]) => `${name} ${version}`).join(', ') || DASH}</dd>
        {packageProblems.length > 0 && (
          <>
            <dt>Package errors</dt>
            <dd role="alert">
              {packageProblems.map(([name, problem]) => (
                <div key={name}>
                  {name}: {problem}
                </div>
              ))}
            </dd>
          </>
        )}
        <dt>Active runs</dt>
        <dd>
          {host.runs.length === 0 && <span className="muted">none</span>}
          {names.shared && host.runs.length > 1 && <span className="muted">{names.shared}</span>}
          {host.runs.map((run) => (
            <span key={run.id} className={classes.run}>
              <StateBadge state={run.state} />
              <RunLink run={run} names={names} />
              {run.progress !== null && (
                <ProgressBar
                  fraction={run.progress}
                  timeLeft_s={run.time_left_s}
                  label={`Progress of ${names.label(run)}`}
                />
              )}
              {run.agent_steps_per_s !== null && (
                <span className="num muted nowrap">{formatRate(run.agent_steps_per_s)} agent steps/s</span>
              )}
            </span>
          ))}
        </dd>
      </dl>
      <ConfirmDialog
        opened={confirming}
        onClose={() => setConfirming(false)}
        title={`Drain ${host.id}`}
        action="Drain"
        onConfirm={() => change.mutateAsync(true)}
      >
        The host accepts no new runs until you select “Accept runs again”. No runs are stopped
        {host.runs.length > 0
          ? `: ${plural(host.runs.length, 'active run continues', 'active runs continue')}`
          : ''}
        .
      </ConfirmDialog>
      <ConfirmDialog
        opened={removing}
        onClose={() => setRemoving(false)}
        title={`Remove ${host.id}`}
        action="Remove"
        danger
        onConfirm={() => remove.mutateAsync(undefined)}
      >
        The runs that it trained are kept. Queued runs that request it keep waiting, and custom environments
        that no other host has can no longer be chosen. The next heartbeat of a worker of this name adds the
        host again, accepting runs.
      </ConfirmDialog>
    </section>
  );
}

/** The disk of a host's run directories, and why it claims no runs if that is the reason. */
function DiskMeter({ load }: { load: Host['load'] }) {
  const { disk_bytes: total, disk_free_bytes: free, disk_problem: problem } = load;
  const known = total != null && free != null;
  return (
    <>
      <Meter
        label="Disk"
        value={known ? 1 - free / total : null}
        text={known ? `${formatBytes(free)} free of ${formatBytes(total)}` : null}
      />
      {problem != null && (
        <p role="alert" style={{ gridColumn: '1 / -1', margin: 0 }}>
          Disk: {problem} <TextLink to="/settings/storage">Show storage usage</TextLink>
        </p>
      )}
    </>
  );
}
