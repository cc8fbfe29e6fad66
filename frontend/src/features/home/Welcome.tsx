import { Button } from '@mantine/core';
import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { algorithmsQuery } from '@/api/catalogue';
import { episodesQuery } from '@/api/runResources';
import { createRuns, runsQuery } from '@/api/runs';
import { ButtonLink } from '@/components/controls';
import { CopyCode } from '@/components/CopyCode';
import { Loading, Problem } from '@/components/feedback';
import { useDenied } from '@/components/permission';
import { served } from '@/lib/base';
import { runOf, type Offer } from '@/lib/offers';
import { CARDS } from './cards';
import { DemoPanel } from './DemoPanel';
import classes from './home.module.css';
import { OfferCard } from './OfferCard';

const SCRIPT = `import callboard
run = callboard.init(algorithm="my_method", environment="CartPole-v1")
run.log({"loss/policy": 0.1}, agent_steps=1000)`;

const IMPORTS = `callboard import tensorboard runs/
callboard import csv progress.csv`;

/** The demo run and its episodes; without it, nothing. */
function useDemo() {
  const runs = useInfiniteQuery(runsQuery({ filter: 'demo:true', limit: 1 }));
  const demo = runs.data?.pages[0]?.items[0];
  const recorded = useInfiniteQuery({
    ...episodesQuery(demo?.id ?? '', 'agent_steps'),
    enabled: demo !== undefined,
  });
  const episodes = recorded.data?.pages[0]?.items ?? [];
  return { demo, episodes, isPending: runs.isPending || (demo !== undefined && recorded.isPending) };
}

/** The home of an installation without runs: what Callboard is, and three ways to begin. */
export function Welcome() {
  const navigate = useNavigate();
  const denied = useDenied();
  const { data: algorithms, error } = useQuery(algorithmsQuery);
  const [moving, setMoving] = useState(true);
  const { demo, episodes, isPending } = useDemo();
  const start = useMutation({
    mutationFn: (offer: Offer) =>
      createRuns(runOf(offer, algorithms ?? []) as Parameters<typeof createRuns>[0]),
    onSuccess: ([run]) => run && navigate({ to: '/runs/$runId', params: { runId: run.id } }),
  });
  // The panel of the demo run would move what is below it.
  if (isPending) return <Loading label="Loading the runs" lines={8} />;
  return (
    <div className={classes.home}>
      <header className={classes.hero}>
        <div className="grow">
          <h1>Watch agents learn</h1>
          <p>
            Callboard trains agents by parallel deep reinforcement learning on your own machines. Watch them
            play while they learn, replay what they did, and find out which settings are better.
          </p>
        </div>
        {denied === undefined && (
          <ButtonLink to="/new" variant="default">
            Choose all settings
          </ButtonLink>
        )}
      </header>
      <div className={classes.cards}>
        {CARDS.map((card, index) => (
          <OfferCard
            key={card.title}
            card={card}
            denied={denied}
            primary={index === 0}
            moving={moving}
            starting={start.isPending && start.variables === card.offer}
            unavailable={start.isPending || !algorithms || !runOf(card.offer, algorithms)}
            onStart={() => start.mutate(card.offer)}
          />
        ))}
      </div>
      <div className={classes.note}>
        <span className="grow">
          Times on two idle CPU cores: a busy machine takes longer. Stop a run whenever you like: it keeps
          what it learned.
        </span>
        <Button variant="subtle" size="compact-xs" onClick={() => setMoving(!moving)}>
          {moving ? 'Pause the videos' : 'Play the videos'}
        </Button>
      </div>
      {(start.error ?? error) && <Problem error={start.error ?? error} />}
      {demo && episodes.length > 0 && <DemoPanel run={demo} episodes={episodes} moving={moving} />}
      <div className={classes.ways}>
        <section className={`panel ${classes.way}`} aria-labelledby="log-your-own">
          <h2 id="log-your-own" className={classes.title}>
            Log your own training
          </h2>
          <p>
            Three lines in any script on this machine. Its run appears here within a second.{' '}
            <a href={served('/help/guides/log.html')}>How it works</a>
          </p>
          <CopyCode label="Python code" code={SCRIPT} />
        </section>
        <section className={`panel ${classes.way}`} aria-labelledby="import-logs">
          <h2 id="import-logs" className={classes.title}>
            Import what you have
          </h2>
          <p>
            Logs of TensorBoard, CSV and Parquet files, from a terminal. In a clone the command is{' '}
            <code>.venv/bin/callboard</code>.{' '}
            <a href={served('/help/guides/import.html')}>What is imported</a>
          </p>
          <CopyCode label="Commands" code={IMPORTS} />
        </section>
      </div>
    </div>
  );
}
