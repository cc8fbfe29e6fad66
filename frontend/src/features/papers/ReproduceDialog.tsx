import { Button, Group, Modal, NativeSelect, SegmentedControl } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { newKey } from '@/api/client';
import { keys } from '@/api/keys';
import { startSetsQuery, type StartSet } from '@/api/startSets';
import { estimateQuery, startStudy, type PaperItem, type Scale } from '@/api/studies';
import { LoadingButton } from '@/components/controls';
import { Loading, Problem } from '@/components/feedback';
import { PermittedButton, useDenied } from '@/components/permission';
import { plural } from '@/lib/format';
import classes from './papers.module.css';
import { StudyCost } from './StudyCost';

type Props = { paper: string; item: PaperItem; onClose: () => void; onStarted: (study: string) => void };

const LABELS: Record<Scale, string> = { minutes: 'Minutes', hours: 'Hours', paper: 'As in the paper' };

/** Who played the games of the start sets. */
type Players = 'human' | 'agent';
const PLAYERS: Record<Players, string> = {
  human: 'Human starts: states of games played by people',
  agent: 'Agent starts: states of games played by stored agents or scripts',
};
/** Start sets that are described. */
const MAX_LISTED = 3;

const playersOf = ({ source }: StartSet): Players =>
  source === 'human' || source === 'human_imported' ? 'human' : 'agent';

/** The latest verified start set of each game, where there is one. */
const setsOf = (sets: readonly StartSet[] | undefined, games: readonly string[], players: Players) =>
  games.flatMap(
    (game) =>
      sets?.find((set) => set.environment === game && set.state === 'ready' && playersOf(set) === players) ??
      [],
  );

/** Chooses how much of an experiment is repeated, says what it costs, and starts it. */
export function ReproduceDialog({ paper, item, onClose, onStarted }: Props) {
  const denied = useDenied();
  const client = useQueryClient();
  const [scale, setScale] = useState<Scale>(item.scales[0]?.scale ?? 'minutes');
  const [wanted, setWanted] = useState<Players | null>(null);
  const [key] = useState(newKey);
  const chosen = item.scales.find((candidate) => candidate.scale === scale);
  const games = item.needs_people ? (chosen?.environments ?? []) : [];
  const offersStarts = games.length > 0 && games.every((game) => game.startsWith('ALE/'));
  const { data: sets } = useQuery({ ...startSetsQuery, enabled: offersStarts });
  const startSets = wanted && offersStarts ? setsOf(sets, games, wanted) : [];
  // Another scale may have games without a set.
  const starting = startSets.length === games.length ? startSets : [];
  const players = starting.length > 0 ? wanted : null;
  const starts = Object.fromEntries(starting.map((set) => [set.environment, set.protocols[0] ?? '']));
  const estimate = useQuery(estimateQuery(item.id, scale, starts));
  const nNew = estimate.data ? estimate.data.n_runs - estimate.data.n_reused : (chosen?.n_runs ?? 0);
  const start = useMutation({
    mutationFn: () => startStudy(item.id, scale, starts, `${key}-${scale}-${players ?? ''}`),
    onSuccess: async ({ id }) => {
      onStarted(id);
      await client.invalidateQueries({ queryKey: keys.papers() });
    },
  });
  return (
    <Modal opened onClose={onClose} title={`Reproduce: ${paper}, ${item.label}`} size="lg">
      <div style={{ display: 'grid', gap: 16 }}>
        <SegmentedControl
          className="segments"
          aria-label="Scale"
          fullWidth
          value={scale}
          onChange={(value) => setScale(value)}
          data={item.scales.map((offered) => ({ value: offered.scale, label: LABELS[offered.scale] }))}
        />
        {offersStarts && (
          <NativeSelect
            label="Starts of the evaluations"
            description={
              starting.length > 0
                ? starting
                    .map((set) => `${set.name} v${String(set.version)}: ${set.caption}`)
                    .slice(0, MAX_LISTED)
                    .join('; ')
                : 'The paper starts from states of games played by people: create start sets in Settings, Storage.'
            }
            value={players ?? ''}
            onChange={({ currentTarget: { value } }) => setWanted((value || null) as Players | null)}
            data={[
              { value: '', label: 'No-op starts' },
              ...(['human', 'agent'] as const).map((players) => {
                const missing = games.length - setsOf(sets, games, players).length;
                return {
                  value: players,
                  label:
                    PLAYERS[players] + (missing > 0 ? ` (${plural(missing, 'game')} without a set)` : ''),
                  disabled: missing > 0,
                };
              }),
            ]}
          />
        )}
        {estimate.error && <Problem error={estimate.error} onRetry={() => void estimate.refetch()} />}
        {!estimate.data && !estimate.error && <Loading label="Estimating the cost" lines={3} />}
        {estimate.data && <StudyCost estimate={estimate.data} />}
        {chosen && (
          <section aria-label="What differs from the paper">
            <h3 className="section-title">What differs from the paper</h3>
            <ul className={classes.list}>
              {((starting.length > 0 ? estimate.data?.differs : undefined) ?? chosen.differs).map(
                (difference) => (
                  <li key={difference}>{difference}</li>
                ),
              )}
            </ul>
          </section>
        )}
        {start.error && <Problem error={start.error} />}
        <Group justify="flex-end" gap={8}>
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          {denied === undefined ? (
            <LoadingButton
              loading={start.isPending}
              unavailable={estimate.isError}
              onClick={() => start.mutate()}
              data-autofocus
            >
              {nNew > 0 ? `Start ${plural(nNew, 'run')}` : 'Create study'}
            </LoadingButton>
          ) : (
            <PermittedButton denied={denied}>Start</PermittedButton>
          )}
        </Group>
      </div>
    </Modal>
  );
}
