import { expect, it } from 'vitest';
import { runOfLink } from './dragging';

const RUN = '01M7WQQ40DXEDF6FG20VT8VDZT';

it.each([
  [`http://localhost:8642/runs/${RUN}`, RUN],
  [`http://localhost:8642/runs/${RUN}?tab=log`, RUN],
  [`http://localhost:8642/runs/${RUN}/episodes/${RUN}`, RUN],
  [`http://localhost:8642/runs/${RUN}X`, undefined],
  ['http://localhost:8642/worlds', undefined],
  ['', undefined],
])('of %s is %s', (link, run) => expect(runOfLink(link)).toBe(run));
