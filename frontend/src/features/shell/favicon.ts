import { useEffect } from 'react';
import { served } from '@/lib/base';

const PLAIN = served('/favicon.svg');
const STEPS = 20;

/** The icon of the page, filled from below as far as a run has progressed. */
export function faviconOf(progress: number | null): string {
  if (progress === null) return PLAIN;
  const filled = (Math.round(Math.max(0, Math.min(1, progress)) * STEPS) / STEPS) * 32;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><clipPath id="c"><rect width="32" height="32" rx="7"/></clipPath><g clip-path="url(#c)"><rect width="32" height="32" fill="#a9b2ea"/><rect y="${32 - filled}" width="32" height="${filled}" fill="#3f4fc4"/></g><path d="M6 23c4 0 4-5 7-5s3 2 5 0 3-10 8-10" fill="none" stroke="#fff" stroke-width="3" stroke-linecap="round"/></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

/** Shows a run's progress in the icon of the page; null: no run has any. */
export function useFavicon(progress: number | null): void {
  const href = faviconOf(progress);
  useEffect(() => {
    document.querySelector('link[rel=icon]')?.setAttribute('href', href);
  }, [href]);
}
