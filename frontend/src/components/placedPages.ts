import { type AnyRoute, type StaticDataRouteOption, useRouter } from '@tanstack/react-router';

/** The pages whose routes declare a place: in the navigation, in the settings or in the palette, in their order. */
export function usePlacedPages<P extends keyof StaticDataRouteOption>(place: P) {
  const { routesByPath } = useRouter();
  return Object.entries<AnyRoute>({ ...routesByPath })
    .flatMap(([to, { options }]) => {
      const entry = options.staticData?.[place];
      return entry ? [{ to, ...entry }] : [];
    })
    .toSorted((a, b) => a.order - b.order);
}
