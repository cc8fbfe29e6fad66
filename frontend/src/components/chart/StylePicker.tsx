import { Popover, UnstyledButton, useComputedColorScheme } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { type KeyboardEvent, useState } from 'react';
import { paletteQuery } from '@/api/figures';
import { lineStyle, styleName, Swatch } from './lineStyles';
import classes from './curves.module.css';

/** Rows of the palette that are offered. */
const ROWS = 3;

type Props = {
  /** Of the run or group. */
  name: string;
  style: number;
  onStyle: (style: number) => void;
  tabIndex?: number;
};

/** A swatch that opens a palette, in which the arrow keys move. */
export function StylePicker({ name, style, onStyle, tabIndex }: Props) {
  const [opened, setOpened] = useState(false);
  const scheme = useComputedColorScheme('light');
  const { data: palette } = useQuery(paletteQuery);
  if (!palette) return <Swatch colour="transparent" />;
  const columns = palette.names.length;
  const options = Array.from({ length: ROWS * columns }, (_, option) => option);
  const move = (event: KeyboardEvent<HTMLDivElement>): void => {
    const steps: Record<string, number> = {
      ArrowLeft: -1,
      ArrowRight: 1,
      ArrowUp: -columns,
      ArrowDown: columns,
    };
    const buttons = [...event.currentTarget.querySelectorAll('button')];
    const at = buttons.findIndex((button) => button === document.activeElement);
    const next = buttons[at + (steps[event.key] ?? 0)];
    if (steps[event.key] === undefined || at < 0) return;
    event.preventDefault();
    next?.focus();
  };
  const label = `Style of ${name}`;
  return (
    <Popover opened={opened} onChange={setOpened} trapFocus returnFocus position="bottom-start" shadow="md">
      <Popover.Target>
        <UnstyledButton
          className={classes.swatch}
          tabIndex={tabIndex}
          aria-label={`${label}: ${styleName(palette, style)}`}
          title="Change the colour or symbol"
          onClick={() => setOpened((before) => !before)}
        >
          <Swatch {...lineStyle(palette, style, scheme)} />
        </UnstyledButton>
      </Popover.Target>
      <Popover.Dropdown p={6} aria-label={label}>
        <div className={classes.palette} role="group" aria-label="Styles" onKeyDown={move}>
          {options.map((option) => (
            <UnstyledButton
              key={option}
              className={classes.swatch}
              aria-label={styleName(palette, option)}
              aria-pressed={option === style}
              title={styleName(palette, option)}
              {...(option === style && { 'data-autofocus': true })}
              onClick={() => {
                setOpened(false);
                onStyle(option);
              }}
            >
              <Swatch {...lineStyle(palette, option, scheme)} />
            </UnstyledButton>
          ))}
        </div>
      </Popover.Dropdown>
    </Popover>
  );
}
