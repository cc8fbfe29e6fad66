/** Which metrics matter first. */

const CANDIDATES = [
  { metric: 'loss/entropy', title: 'Entropy' },
  { metric: 'loss/value', title: 'Value loss' },
  { metric: 'loss/policy', title: 'Policy loss' },
  { metric: 'loss/td', title: 'TD loss' },
  { metric: 'optim/grad_norm', title: 'Gradient norm' },
  { metric: 'rollout/episode_length', title: 'Episode length' },
  { metric: 'optim/learning_rate', title: 'Learning rate' },
] as const;

const MAX_SHOWN = 4;

/** The points of the learning curve, and of the charts that are updated together with it. */
export const CURVE_POINTS = 1000;

/** Of the recorded metrics, those that say first how an algorithm is doing: actor-critic or Q. */
export const keyMetricsOf = (recorded: ReadonlySet<string>) =>
  CANDIDATES.filter(({ metric }) => recorded.has(metric)).slice(0, MAX_SHOWN);
