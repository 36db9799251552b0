import { styleText } from 'node:util';

/** A stream that a command prints to. */
export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
}

export type Colour = 'bold' | 'dim' | 'green' | 'yellow' | 'red' | 'cyan';

/** Colours for a person at a terminal; plain text for everything that reads a pipe. */
export function painter(output: Output, environment: Readonly<Record<string, string | undefined>>) {
  const colours = output.isTTY === true && !environment.NO_COLOR && environment.TERM !== 'dumb';
  return (colour: Colour, text: string): string =>
    // Not validated: whether this stream has colours is decided here.
    colours && text !== '' ? styleText(colour, text, { validateStream: false }) : text;
}
export type Paint = ReturnType<typeof painter>;
