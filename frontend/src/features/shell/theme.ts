import { useComputedColorScheme, useMantineColorScheme } from '@mantine/core';

/** The other theme, and what switches to it. */
export function useTheme() {
  const { setColorScheme } = useMantineColorScheme();
  const other = useComputedColorScheme('light') === 'light' ? 'dark' : 'light';
  return { other, label: `Use the ${other} theme`, toggle: () => setColorScheme(other) } as const;
}
