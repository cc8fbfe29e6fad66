/** Requests what the page at this address needs, its session and its scripts, while the other scripts still load. */
import { followLoginLink, requestSession, takeSecret } from '@/api/pageSecret';
import { BASE, served } from '@/lib/base';
import { scriptsOf } from '@/pages';

takeSecret();
if (!followLoginLink() && location.pathname !== served('/login')) requestSession();
// What does not load is shown by the page itself.
for (const load of scriptsOf(location.pathname.slice(BASE.length))) load().catch(() => undefined);
