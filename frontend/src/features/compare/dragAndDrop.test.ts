import { expect, it } from 'vitest';
import { runIdFromLink } from './dragAndDrop';

const RUN = '01M7WQQ40DXEDF6FG20VT8VDZT';

it.each([
  [`http://localhost:8642/runs/${RUN}`, RUN],
  [`http://localhost:8642/runs/${RUN}?tab=log`, RUN],
  [`http://localhost:8642/runs/${RUN}/episodes/${RUN}`, RUN],
  [`http://localhost:8642/runs/${RUN}X`, undefined],
  ['http://localhost:8642/environments', undefined],
  ['', undefined],
])('runIdFromLink of "%s" returns %s', (link, run) => expect(runIdFromLink(link)).toBe(run));
