import { BREAKOUT, CARTPOLE, PONG, type Offer } from '@/lib/offers';

export type HomeCard = {
  offer: Offer;
  title: string;
  /** How soon it learns. */
  pace: string;
  /** What one will see. */
  sight: string;
  /** Method, length and duration on two CPU cores. */
  facts: string;
};

/** What an empty home offers, the quickest first. */
export const CARDS: readonly HomeCard[] = [
  {
    offer: CARTPOLE,
    title: 'CartPole',
    pace: 'learns in seconds',
    sight:
      'A cart balances a pole. The score starts near 24, what random play gets, and climbs to hundreds while you watch.',
    facts: 'PAAC · 1M agent steps · about a minute',
  },
  {
    offer: PONG,
    title: 'Pong',
    pace: 'learns in minutes',
    sight:
      'The agent on the right loses 21 to 0 at first. Then it returns the ball, wins points, and at last whole games.',
    facts: 'PAAC · 3M agent steps · a quarter of an hour',
  },
  {
    offer: BREAKOUT,
    title: 'Breakout',
    pace: 'overnight',
    sight:
      'A long run to leave alone. In the morning, replay its episodes from the first hour to the last and see what changed.',
    facts: 'PAAC · 60M agent steps · about eight hours',
  },
];
