/** The path below which a proxy shows the service, such as `/callboard`; empty at the root of a host. */
export const BASE: string =
  document.querySelector<HTMLMetaElement>('meta[name="callboard-base"]')?.content.replace(/\/$/, '') ?? '';

/** A path of the service as browsers have to ask for it. */
export const served = (path: string): string => BASE + path;
