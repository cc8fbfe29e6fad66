import { Button, FileButton, Group, Modal, NativeSelect, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { asProblem } from '@/api/problem';
import {
  createStartSet,
  deleteStartSet,
  exportUrl,
  importStartSet,
  MAX_GAMES,
  playedGamesQuery,
  sourceRunsQuery,
  startSetsQuery,
  useStartSetMutation,
  type PlayedGames,
  type StartSet,
  type StartSetRequest,
} from '@/api/startSets';
import { ConfirmDialog } from '@/components/ConfirmDialog';
import { LoadingButton } from '@/components/controls';
import { useDownload } from '@/components/download';
import { Empty, Loading, Problem } from '@/components/feedback';
import { PermittedButton, useDenied } from '@/components/permission';
import { ScrollPanel } from '@/components/ScrollPanel';
import { shortEnvironmentName } from '@/lib/environments';
import { DASH, formatInteger, parseNumber, plural } from '@/lib/format';
import classes from './storage.module.css';

const SOURCES: Record<Exclude<StartSet['source'], 'human' | 'human_imported'>, string> = {
  agent: 'a stored agent',
  scripted: 'a script',
};

/** Who played the games of a set. */
function playersOf({ source, n_people }: StartSet): string {
  if (source !== 'human' && source !== 'human_imported') return SOURCES[source];
  return `${plural(n_people, 'person', 'people')}${source === 'human' ? '' : ' (imported)'}`;
}

/** What is open: the deletion of a set, or without one the creation. */
type Dialog = { set?: StartSet; opener: HTMLElement };

const titleOf = ({ name, version }: StartSet): string => `${name} v${String(version)}`;

/** The start sets with their games, points and sources: created, imported, exported and deleted here. */
export function StartSets() {
  const denied = useDenied();
  const { data, error, refetch } = useQuery(startSetsQuery);
  const [dialog, setDialog] = useState<Dialog | null>(null);
  const load = useStartSetMutation(importStartSet);
  const download = useDownload();
  const forgetFile = useRef<() => void>(null);
  const close = (): void => {
    setDialog(null);
    dialog?.opener.focus();
  };
  return (
    <section className={classes.section} aria-label="Start sets">
      <div className="row wrap">
        <h2 className="section-title">Start sets</h2>
        <span className="grow" />
        <FileButton
          accept="application/json"
          disabled={denied !== undefined}
          resetRef={forgetFile}
          onChange={(file) => {
            if (file) load.mutate(file);
            // Else the same file, corrected, would be no change.
            forgetFile.current?.();
          }}
        >
          {(props) => (
            <PermittedButton
              {...props}
              variant="default"
              denied={denied}
              loading={load.isPending}
              aria-label="Import a start set"
            >
              Import
            </PermittedButton>
          )}
        </FileButton>
        <PermittedButton
          variant="default"
          denied={denied}
          aria-label="Create a start set"
          onClick={({ currentTarget }) => setDialog({ opener: currentTarget })}
        >
          Create
        </PermittedButton>
      </div>
      <p className={`muted ${classes.note}`}>
        States of recorded Atari games from which agents are evaluated: choose the set as the protocol of an
        evaluation.
      </p>
      {load.isError && <Problem error={load.error} />}
      {download.problem}
      {error && <Problem error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Loading label="Loading the start sets" lines={3} />}
      {data?.length === 0 && (
        <div className="panel">
          <Empty>
            No start set yet. Create one from the recorded episodes of a run, or from games that people or
            scripts have played.
          </Empty>
        </div>
      )}
      {data && data.length > 0 && (
        <ScrollPanel label="Start sets">
          <table className="grid">
            <thead>
              <tr>
                <th>Set</th>
                <th>Game</th>
                <th className="right wide">Points</th>
                <th className="right wide">Games</th>
                <th className="right wide">Frames</th>
                <th>Played by</th>
                <th>State</th>
                <th className="wide">ale-py</th>
                <th className="actions">
                  <span className="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {data.map((set) => (
                <tr key={set.id}>
                  <td title={set.protocols[0]}>{titleOf(set)}</td>
                  <td>{shortEnvironmentName(set.environment)}</td>
                  <td className="right num wide">{formatInteger(set.n_points)}</td>
                  <td className="right num nowrap wide" title={set.caption}>
                    {formatInteger(set.n_games)}
                    {set.is_small && <span className="muted"> (small)</span>}
                  </td>
                  <td className="right num wide">
                    {set.n_frames === null ? DASH : formatInteger(set.n_frames)}
                  </td>
                  <td className={classes.players} title={set.origin}>
                    {playersOf(set)}
                  </td>
                  <td className={set.error === null ? 'nowrap' : classes.problem}>
                    {set.error === null ? set.state : `failed: ${set.error}`}
                  </td>
                  <td className="nowrap wide">{set.ale_py ?? DASH}</td>
                  <td className="actions">
                    <span className={classes.buttons}>
                      {set.state === 'ready' && (
                        <Button
                          component="a"
                          size="compact-xs"
                          variant="default"
                          href={exportUrl(set.id)}
                          aria-label={`Export ${titleOf(set)}`}
                          onClick={download.onClick}
                        >
                          Export
                        </Button>
                      )}
                      <PermittedButton
                        size="compact-xs"
                        variant="default"
                        denied={denied}
                        aria-label={`Delete ${titleOf(set)}`}
                        onClick={({ currentTarget }) => setDialog({ set, opener: currentTarget })}
                      >
                        Delete
                      </PermittedButton>
                    </span>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </ScrollPanel>
      )}
      {dialog && !dialog.set && <CreateDialog onClose={close} />}
      {dialog?.set && <DeleteDialog set={dialog.set} onClose={close} />}
    </section>
  );
}

function DeleteDialog({ set, onClose }: { set: StartSet; onClose: () => void }) {
  const remove = useStartSetMutation(deleteStartSet);
  return (
    <ConfirmDialog
      opened
      danger
      title={`Delete ${titleOf(set)}?`}
      action="Delete"
      onClose={onClose}
      onConfirm={() => remove.mutateAsync(set.id)}
    >
      Scores from it stay. Nothing can be evaluated from it any more, and its number is not given again. The
      recorded games of its source stay, too.
    </ConfirmDialog>
  );
}

const POINTS = '100';
const MAX_POINTS = 500;

/** Recorded games that can be chosen, and the fields that name them in a request. */
type Source = {
  value: string;
  label: string;
  games: Pick<StartSetRequest, 'environment' | 'players' | 'run'>;
};

/** The games of people or of scripts: a set has the latest of them. */
const gamesOf = (players: PlayedGames['players'], played: PlayedGames[]): Source[] =>
  played
    .filter((games) => games.players === players)
    .map(({ environment, n_recordings: n }) => {
      const latest = n > MAX_GAMES ? `the latest ${String(MAX_GAMES)} of ` : '';
      return {
        value: `${players} ${environment}`,
        label: `${shortEnvironmentName(environment)} (${latest}${plural(n, 'recording')} of ${players})`,
        games: { environment, players },
      };
    });

function CreateDialog({ onClose }: { onClose: () => void }) {
  const runs = useQuery(sourceRunsQuery);
  const played = useQuery(playedGamesQuery);
  const [name, setName] = useState('');
  const [chosen, setChosen] = useState<string | null>(null);
  const [points, setPoints] = useState(POINTS);
  const create = useStartSetMutation(createStartSet);
  const loadError = runs.error ?? played.error;
  const isLoaded = Boolean(runs.data && played.data);
  const sources: { group: string; items: Source[] }[] = [
    {
      group: 'Games that people have played',
      items: gamesOf('people', played.data ?? []),
    },
    {
      group: 'Recorded episodes of a run',
      items: (runs.data ?? []).map(({ id, name: label, environment }) => ({
        value: id,
        label: `${label} (${shortEnvironmentName(environment)})`,
        games: { run: id },
      })),
    },
    {
      group: 'Games that scripts have played',
      items: gamesOf('scripts', played.data ?? []),
    },
  ].filter(({ items }) => items.length > 0);
  const items = sources.flatMap((group) => group.items);
  const source = items.find(({ value }) => value === chosen) ?? items[0];
  const problem = asProblem(create.error);
  const fields = new Map(problem.fields.map(({ field, message }) => [field, message]));
  const gamesError = [...fields].find(([field]) => /^(environment|run)\b/.test(field))?.[1];
  const n = parseNumber(points);
  const pointsError =
    Number.isInteger(n) && n >= 1 && n <= MAX_POINTS
      ? fields.get('points')
      : `A whole number from 1 to ${String(MAX_POINTS)}`;
  const edit =
    (set: (value: string) => void) =>
    ({ currentTarget: { value } }: { currentTarget: { value: string } }): void => {
      create.reset();
      set(value);
    };
  return (
    <Modal opened onClose={onClose} title="Create a start set" size="md">
      {loadError && <Problem error={loadError} />}
      {!isLoaded && !loadError && <Loading label="Loading the recorded games" />}
      {isLoaded && sources.length === 0 && (
        <Empty>
          No run of an Atari game yet, and neither a person nor a script has played one: start sets are
          sampled from recorded games.
        </Empty>
      )}
      {isLoaded && sources.length > 0 && (
        <form
          noValidate
          style={{ display: 'grid', gap: 16 }}
          onSubmit={(event) => {
            event.preventDefault();
            create.mutate({ name, ...source?.games, points: n, seed: 0 }, { onSuccess: onClose });
          }}
        >
          <TextInput
            label="Name"
            description="Small letters, digits and hyphens. A name in use gets its next version."
            data-autofocus
            value={name}
            error={fields.get('name')}
            errorProps={{ role: 'alert' }}
            onChange={edit(setName)}
          />
          <NativeSelect
            label="Games"
            description="The set keeps its own copy of seeds and actions. Games of scripts are not among those of people."
            value={source?.value}
            error={gamesError}
            errorProps={{ role: 'alert' }}
            onChange={edit(setChosen)}
            data={sources.map(({ group, items: options }) => ({
              group,
              items: options.map(({ value, label }) => ({ value, label })),
            }))}
          />
          <TextInput
            label="Points"
            description="States sampled at random from all games. The paper has 100."
            inputMode="numeric"
            value={points}
            error={pointsError}
            errorProps={{ role: 'alert' }}
            onChange={edit(setPoints)}
          />
          {create.isError && fields.size === 0 && <Problem error={create.error} />}
          <Group justify="flex-end" gap={8}>
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <LoadingButton type="submit" loading={create.isPending} unavailable={name === ''}>
              Create
            </LoadingButton>
          </Group>
        </form>
      )}
    </Modal>
  );
}
