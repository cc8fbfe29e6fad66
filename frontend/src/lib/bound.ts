/** The bound of a run that goes on: as much again where the present one is reached. */
export const nextBound = (bound: number, done: number): number =>
  done >= bound ? Math.ceil(done) + bound : bound;
