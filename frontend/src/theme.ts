import { Button, createTheme, Input, type MantineColorsTuple } from '@mantine/core';

/** The accent colour. States and series have their own colours. */
const ink: MantineColorsTuple = [
  '#eef0fb',
  '#dadef4',
  '#b4bce9',
  '#8f9df0',
  '#6f7fd8',
  '#5566c8',
  '#3f4fc4',
  '#333fa0',
  '#2a3585',
  '#20286a',
];

/** The colour of destructive actions, dark enough for white text, unlike Mantine's red. */
const red: MantineColorsTuple = [
  '#fdecec',
  '#fbd5d6',
  '#f5a9ac',
  '#ff8a8a',
  '#e4555b',
  '#b3202a',
  '#b3202a',
  '#9c1a24',
  '#85151e',
  '#6d1018',
];

/** Neutral greys for the dark theme. */
const dark: MantineColorsTuple = [
  '#e4e6e9',
  '#b9bfc7',
  '#9aa2ad',
  '#6b737d',
  '#363c47',
  '#2a303a',
  '#1d2128',
  '#15181e',
  '#0f1115',
  '#0b0d10',
];

/** Of buttons and inputs. */
const CONTROL_HEIGHT = '28px';

export const theme = createTheme({
  primaryColor: 'ink',
  primaryShade: { light: 6, dark: 5 },
  colors: { ink, red, dark },
  autoContrast: true,
  fontFamily: "'Inter Variable', system-ui, sans-serif",
  fontFamilyMonospace: "'JetBrains Mono Variable', ui-monospace, monospace",
  fontSizes: { xs: '12px', sm: '13px', md: '14px', lg: '14px', xl: '28px' },
  spacing: { xs: '4px', sm: '8px', md: '12px', lg: '16px', xl: '24px' },
  defaultRadius: '8px',
  headings: { fontWeight: '600', sizes: { h1: { fontSize: '14px' }, h2: { fontSize: '14px' } } },
  cursorType: 'pointer',
  respectReducedMotion: true,
  components: {
    Tooltip: { defaultProps: { openDelay: 300, withArrow: true, multiline: true, maw: 360 } },
    Button: Button.extend({
      defaultProps: { size: 'xs' },
      vars: (_, { size = 'xs' }) => ({ root: size === 'xs' ? { '--button-height': CONTROL_HEIGHT } : {} }),
    }),
    Input: Input.extend({
      vars: (_, { size }) => ({ wrapper: size === 'xs' ? { '--input-height': CONTROL_HEIGHT } : {} }),
    }),
    TextInput: { defaultProps: { size: 'xs' } },
    NumberInput: { defaultProps: { size: 'xs' } },
    Select: { defaultProps: { size: 'xs' } },
    NativeSelect: { defaultProps: { size: 'xs' } },
    SegmentedControl: { classNames: { root: 'segments', label: 'segment' } },
    // Not a second banner of the page.
    ModalHeader: { defaultProps: { component: 'div' } },
    Modal: {
      defaultProps: {
        centered: true,
        // A double click on what opens a dialog would close it, and a stray one lose what was typed.
        closeOnClickOutside: false,
        closeButtonProps: { 'aria-label': 'Close' },
        classNames: { title: 'section-title' },
      },
    },
    // The placeholder is focusable but no menu item, which axe reports; without it the first item gets the focus.
    Menu: { defaultProps: { withInitialFocusPlaceholder: false } },
  },
});
