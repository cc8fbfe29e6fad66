import { Link } from '@tanstack/react-router';
import type { Episode } from '@/api/runResources';
import type { Run } from '@/api/runs';
import { useMediaUrl } from '@/api/session';
import { ButtonLink } from '@/components/controls';
import { Term } from '@/components/Term';
import { served } from '@/lib/base';
import { formatCount, formatScore } from '@/lib/format';
import classes from './home.module.css';
import { LoopedVideo } from './LoopedVideo';

type Props = { run: Run; episodes: readonly Episode[]; moving: boolean };

/** The finished run that comes with Callboard: four of its episodes, from the first to the last. */
export function DemoPanel({ run, episodes, moving }: Props) {
  return (
    <section className={`panel ${classes.demo}`} aria-labelledby="demo-run">
      <div className={classes.demoText}>
        <h2 id="demo-run" className={classes.title}>
          See a finished run first
          <span className={classes.pace}>
            <Term>demo</Term>
          </span>
        </h2>
        <p>
          One agent at {episodes.length} moments of its training; a return is the sum of an episode’s rewards.
          Open a replay to see every decision, what the agent expected and what came.
        </p>
        <ButtonLink variant="default" to="/runs/$runId" params={{ runId: run.id }}>
          Open the demo run
        </ButtonLink>
      </div>
      <ol className={classes.moments}>
        {episodes.map((episode) => (
          <li key={episode.id}>
            <Moment run={run} episode={episode} moving={moving} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function Moment({ run, episode, moving }: { run: Run; episode: Episode; moving: boolean }) {
  const src = useMediaUrl(served(`/api/v1/episodes/${episode.id}/video`));
  return (
    <Link
      to="/runs/$runId/episodes/$episodeId"
      params={{ runId: run.id, episodeId: episode.id }}
      className={classes.moment}
    >
      <LoopedVideo video={src} moving={moving} />
      <span>
        after {formatCount(episode.agent_steps)} agent steps:
        <br />
        return <b className="num">{formatScore(episode.episode_return)}</b>
      </span>
    </Link>
  );
}
