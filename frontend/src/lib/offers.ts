/** What the home offers to start with one click. The launch form opens with the same values. */

/** Bounds of a run. */
type Stop = { agent_steps: number };

export type Offer = {
  environment: string;
  algorithm: string;
  /** Id of the algorithm's preset; null: the defaults for the environment. */
  preset: string | null;
  /** Replaces the bounds of the preset. */
  stop?: Stop;
};

export const CARTPOLE: Offer = {
  environment: 'CartPole-v1',
  algorithm: 'paac',
  preset: null,
  stop: { agent_steps: 1_000_000 },
};

export const PONG: Offer = { environment: 'ALE/Pong-v5', algorithm: 'paac', preset: 'full-frame-centred' };

export const BREAKOUT: Offer = {
  environment: 'ALE/Breakout-v5',
  algorithm: 'paac',
  preset: 'full-frame-centred',
};

const OFFERS: readonly Offer[] = [CARTPOLE, PONG, BREAKOUT];

/** The offer for an environment, and where an algorithm is given, for that algorithm. */
export const offerFor = (environment: string | undefined, algorithm?: string): Offer | undefined =>
  OFFERS.find(
    (offer) =>
      offer.environment === environment && (algorithm === undefined || offer.algorithm === algorithm),
  );

type WithPresets = {
  id: string;
  presets: readonly {
    id: string;
    config: Record<string, unknown>;
    environment_config: Record<string, unknown>;
    stop: object;
  }[];
};

/** The fields of the run that an offer starts; undefined if the catalogue lacks its algorithm or preset. */
export function runOf(
  { environment, algorithm, preset: id, stop }: Offer,
  algorithms: readonly WithPresets[],
) {
  const known = algorithms.find((candidate) => candidate.id === algorithm);
  const preset = known?.presets.find((candidate) => candidate.id === id);
  if (!known || (id !== null && !preset)) return undefined;
  return {
    algorithm,
    environment,
    config: preset?.config ?? {},
    environment_config: preset?.environment_config ?? {},
    stop: { ...preset?.stop, ...stop },
  };
}
