import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { openPlaySession } from '@/api/play';
import { checkpointsQuery } from '@/api/runResources';
import { LoadingButton } from '@/components/controls';
import { Problem } from '@/components/feedback';
import { PermittedButton, useDenied } from '@/components/permission';

type Props = {
  /** The episode or recording that is shown. */
  from: { episode: string } | { recording: string };
  /** The decision that is shown, from 0. */
  step: number;
  /** The run whose agent can act in the session, if it has a checkpoint; undefined for none. */
  agent: string | undefined;
};

const LABEL = 'Play from here';

/** Opens a session whose games go on from the decision that is shown. */
export function PlayFromHere({ from, step, agent }: Props) {
  const navigate = useNavigate();
  const denied = useDenied();
  const client = useQueryClient();
  const open = useMutation({
    mutationFn: async () => {
      const stored = agent === undefined ? undefined : await client.infiniteQuery(checkpointsQuery(agent));
      const hasAgent = agent !== undefined && (stored?.pages[0]?.items.length ?? 0) > 0;
      return openPlaySession({ from: { ...from, decision: step }, agent: hasAgent ? { run: agent } : null });
    },
    onSuccess: ({ id }) => navigate({ to: '/play/$sessionId', params: { sessionId: id } }),
  });
  if (denied !== undefined) return <PermittedButton denied={denied}>{LABEL}</PermittedButton>;
  return (
    <>
      <LoadingButton
        loading={open.isPending}
        title={`Take over before decision ${step + 1}`}
        onClick={() => open.mutate()}
      >
        {LABEL}
      </LoadingButton>
      {open.isError && <Problem error={open.error} />}
    </>
  );
}
