import { BREAKOUT, CARTPOLE, PONG, type Offer } from '@/lib/offers';

export type HomeCard = {
  offer: Offer;
  title: string;
  /** How soon it learns. */
  pace: string;
  /** What one will see. */
  sight: string;
  method: string;
  agentSteps: string;
  /** Of the whole run, on two idle CPU cores. */
  duration: string;
};

/** What an empty home offers, the quickest first. */
export const CARDS: readonly HomeCard[] = [
  {
    offer: CARTPOLE,
    title: 'CartPole',
    pace: 'learns in seconds',
    sight:
      'A cart balances a pole. The score starts near 24, what random play gets, and climbs to hundreds while you watch.',
    method: 'PAAC',
    agentSteps: '1M',
    duration: 'a minute or two',
  },
  {
    offer: PONG,
    title: 'Pong',
    pace: 'learns in six minutes',
    sight:
      'The agent on the right loses 21 to 0 at first. Then it returns the ball, wins points, and at last whole games.',
    method: 'PAAC',
    agentSteps: '2M',
    duration: 'about a quarter of an hour',
  },
  {
    offer: BREAKOUT,
    title: 'Breakout',
    pace: 'learns in ten minutes',
    sight:
      'The paddle misses the ball at first. Ten minutes later it scores around 30, as people do. Replay its episodes from the first to the last.',
    method: 'PAAC',
    agentSteps: '2M',
    duration: 'about a quarter of an hour',
  },
];
