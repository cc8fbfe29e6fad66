import { Button } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import type { User } from '@/api/account';
import { keys } from '@/api/keys';
import { deleteRecording, isReplayable, recordingFileUrl, type Recording } from '@/api/play';
import { ConfirmDialog } from '@/components/ConfirmDialog';
import { useDownload } from '@/components/download';
import { ScrollPanel } from '@/components/ScrollPanel';
import { formatAgo, formatExact, formatInteger, formatScore } from '@/lib/format';
import { useNow } from '@/lib/hooks';
import classes from './play.module.css';

type Props = { recordings: readonly Recording[]; me: Pick<User, 'id' | 'role'> | undefined };

/** Recorded games, with their export and, for their player, their removal. */
export function RecordingsTable({ recordings, me }: Props) {
  const now = useNow();
  const client = useQueryClient();
  const { onClick, problem } = useDownload();
  const [removed, setRemoved] = useState<Recording | null>(null);
  return (
    <>
      <ScrollPanel label="Recorded games">
        <table className="grid">
          <thead>
            <tr>
              <th scope="col">Environment</th>
              <th scope="col">Player</th>
              <th scope="col" className="wide">
                Protocol
              </th>
              <th scope="col" className="right">
                Score
              </th>
              <th scope="col" className="right wide">
                Frames
              </th>
              <th scope="col" className="wide">
                End
              </th>
              <th scope="col" className="wide">
                Started
              </th>
              <th scope="col">
                <span className="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {recordings.map((recording) => (
              <tr key={recording.id}>
                <td className="mono">
                  {recording.environment}
                  <div className={classes.protocol}>{recording.protocol}</div>
                </td>
                <td>{recording.player}</td>
                <td className="mono wide">{recording.protocol}</td>
                <td className="right num">{formatScore(recording.episode_return)}</td>
                <td className="right num wide">{formatInteger(recording.length_frames)}</td>
                <td className="wide">{endOf(recording)}</td>
                <td title={formatExact(recording.started_at)} className="nowrap wide">
                  {formatAgo(recording.started_at, now)}
                </td>
                <td className="actions nowrap">
                  {isReplayable(recording) && (
                    <>
                      <Link
                        to="/play/recordings/$recordingId"
                        params={{ recordingId: recording.id }}
                        aria-label={`Replay the game of ${recording.environment} by ${recording.player}`}
                      >
                        Replay
                      </Link>{' '}
                    </>
                  )}
                  <a className="wide" href={recordingFileUrl(recording.id)} onClick={onClick}>
                    Export
                  </a>{' '}
                  {canDelete(me, recording) && recording.ended_at !== null && (
                    <Button
                      size="compact-xs"
                      variant="subtle"
                      color="gray"
                      aria-label={`Delete the recording of ${recording.environment} by ${recording.player}`}
                      onClick={() => setRemoved(recording)}
                    >
                      Delete
                    </Button>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollPanel>
      {problem}
      <ConfirmDialog
        opened={removed !== null}
        onClose={() => setRemoved(null)}
        title="Delete this recording?"
        action="Delete"
        danger
        onConfirm={async () => {
          if (removed) await deleteRecording(removed.id);
          await client.invalidateQueries({ queryKey: keys.recordings() });
        }}
      >
        The game of {removed?.environment} with a score of {formatScore(removed?.episode_return)} is deleted
        and cannot be brought back. Start sets that have points of it stay as they are: each keeps a copy of
        its own, without the player’s name.
      </ConfirmDialog>
    </>
  );
}

/** Its player, if they may still change anything, and administrators. */
const canDelete = (me: Props['me'], { user_id }: Recording): boolean =>
  me?.role === 'admin' || (me?.role === 'operator' && me.id === user_id);

function endOf({ finished, ended_at }: Recording): string {
  if (ended_at === null) return 'being played';
  return finished ? 'game over' : 'stopped before the end';
}
