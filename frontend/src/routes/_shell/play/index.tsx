import { Checkbox, NativeSelect } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query';
import { createFileRoute, Link } from '@tanstack/react-router';
import { useState } from 'react';
import { meQuery } from '@/api/account';
import { environmentsQuery } from '@/api/catalogue';
import { hostsQuery } from '@/api/hosts';
import { openPlaySession, openSessionsQuery, recordingsQuery } from '@/api/play';
import { LoadingButton, ShowMore } from '@/components/controls';
import { Empty, Loading, Problem } from '@/components/feedback';
import { PermittedButton, useDenied } from '@/components/permission';
import { Terms } from '@/components/Term';
import { AgentChoice } from '@/features/play/AgentChoice';
import { RecordingsTable } from '@/features/play/RecordingsTable';
import classes from '@/features/play/play.module.css';
import { isPlayable, shortEnvironmentName, unavailableReason } from '@/lib/environments';
import { IconDeviceGamepad2 } from '@tabler/icons-react';
import { checked, defined, flag, type Unchecked, text } from '@/lib/search';

const validateSearch = (search: Unchecked) =>
  checked({
    environment: text(search.environment),
    /** Id of the run whose agent can act in the session. */
    agent: text(search.agent),
    /** Whether a script drives the browser, so that its games are recorded as scripted. */
    scripted: flag(search.scripted),
  });

export const Route = createFileRoute('/_shell/play/')({
  validateSearch,
  staticData: { nav: { label: 'Play', icon: IconDeviceGamepad2, order: 60, underMore: true } },
  component: PlayPage,
});

const DEFAULT = 'ALE/Breakout-v5';

function PlayPage() {
  useDocumentTitle('Play · Callboard');
  const recordings = useInfiniteQuery(recordingsQuery);
  const { data: me } = useQuery(meQuery);
  const rows = recordings.data?.pages.flatMap(({ items }) => items);
  return (
    <div className="page" style={{ display: 'grid', gap: 16 }}>
      <h1 className="page-title">Play</h1>
      <NewSession />
      <OpenSessions />
      <h2 className="section-title">Recorded games</h2>
      {recordings.error && <Problem error={recordings.error} onRetry={() => void recordings.refetch()} />}
      {!rows && !recordings.error && <Loading label="Loading the recordings" />}
      {rows?.length === 0 && (
        <div className="panel">
          <Empty>
            No game has been recorded yet. Every game that is played here is: its seed and actions, from which
            it is simulated again, and when keys were pressed.
          </Empty>
        </div>
      )}
      {rows && rows.length > 0 && <RecordingsTable recordings={rows} me={me} />}
      <ShowMore query={recordings} />
      <Terms ids={['recording', 'protocol', 'joint', 'frames', 'start_set']} />
    </div>
  );
}

/** The form that opens a session. */
function NewSession() {
  const { environment, agent, scripted } = Route.useSearch();
  const navigate = Route.useNavigate();
  const denied = useDenied();
  const { data: environments, error, refetch } = useQuery(environmentsQuery);
  const { data: hosts } = useQuery(hostsQuery);
  const [everyFrame, setEveryFrame] = useState(false);
  const playable = environments?.filter(isPlayable) ?? [];
  const chosen = playable.find(({ id }) => id === (environment ?? DEFAULT)) ?? playable[0];
  const reason = chosen && unavailableReason(chosen, hosts?.items);
  const open = useMutation({
    mutationFn: openPlaySession,
    onSuccess: ({ id }) => navigate({ to: '/play/$sessionId', params: { sessionId: id } }),
  });
  if (error && !environments) return <Problem error={error} onRetry={() => void refetch()} />;
  if (!chosen)
    return (
      <div className={classes.loadingForm}>
        <Loading label="Loading the environments" lines={2} />
      </div>
    );
  const start = (): void =>
    open.mutate({
      environment: chosen.id,
      agent: agent === undefined ? null : { run: agent },
      every_frame: everyFrame && agent === undefined,
      scripted: scripted ?? false,
    });
  return (
    <section className="panel" aria-label="New session">
      <div className={classes.form}>
        <NativeSelect
          label="Environment"
          value={chosen.id}
          data={playable.map(({ id, title }) => ({ value: id, label: title }))}
          onChange={({ currentTarget }) =>
            void navigate({
              search: defined({ environment: currentTarget.value, scripted }),
              replace: true,
            })
          }
        />
        <AgentChoice
          key={chosen.id}
          environment={chosen.id}
          value={agent ?? null}
          onChange={(run) =>
            void navigate({
              search: defined({ environment: chosen.id, agent: run ?? undefined, scripted }),
              replace: true,
            })
          }
        />
        <Checkbox
          size="xs"
          disabled={agent !== undefined}
          checked={everyFrame && agent === undefined}
          onChange={({ currentTarget }) => setEveryFrame(currentTarget.checked)}
          label="Read actions at every frame"
          description="Otherwise as agents act: every four frames in Atari games"
        />
        {denied === undefined ? (
          <LoadingButton loading={open.isPending} unavailable={Boolean(reason)} onClick={start}>
            Play
          </LoadingButton>
        ) : (
          <PermittedButton denied={denied}>Play</PermittedButton>
        )}
        <span className="muted">
          {reason ??
            (agent !== undefined
              ? 'T hands the controls over and takes them back: such games are recorded as joint.'
              : scripted
                ? 'A script drives this browser: its games are recorded as scripted.'
                : 'Every game is recorded. Sound is off.')}
        </span>
      </div>
      {open.isError && <Problem error={open.error} />}
    </section>
  );
}

/** The sessions that are played now, which everybody may watch. */
function OpenSessions() {
  const { data } = useQuery(openSessionsQuery);
  if (!data || data.length === 0) return null;
  return (
    <section aria-label="Sessions being played">
      <h2 className="section-title">Being played</h2>
      <ul className={classes.sessions}>
        {data.map(({ id, environment, player }) => (
          <li key={id}>
            <Link to="/play/$sessionId" params={{ sessionId: id }}>
              {shortEnvironmentName(environment)}
            </Link>{' '}
            by {player}
          </li>
        ))}
      </ul>
    </section>
  );
}
