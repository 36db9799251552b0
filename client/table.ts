import Table from 'cli-table3';
import type { Colour, Paint } from './terminal.js';

export interface Column<Row> {
  readonly title: string;
  /** Shown as it is; empty is shown as `-`. */
  value(row: Row): string;
  colour?(row: Row): Colour | undefined;
}

const NO_BORDERS = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '   ',
};

/** Columns as kubectl prints them: titles, no borders, nothing cut off, no blanks at the end of a line. */
export function renderTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[], paint: Paint): string {
  const table = new Table({
    head: columns.map(({ title }) => paint('bold', title)),
    chars: NO_BORDERS,
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
  });
  for (const row of rows) {
    table.push(
      columns.map((column) => {
        const text = column.value(row) || '-';
        const colour = column.colour?.(row);
        return colour === undefined ? text : paint(colour, text);
      }),
    );
  }
  return table.toString().replace(/[ \t]+$/gm, '');
}

/** How long ago, in the unit that fits: `45s`, `12m`, `7h`, `3d`. */
export function ageOf(createdAt: string | undefined, now: Date): string {
  const seconds = Math.max(0, Math.floor((now.getTime() - Date.parse(createdAt ?? '')) / 1000));
  if (Number.isNaN(seconds)) return '';
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours}h` : `${Math.floor(hours / 24)}d`;
}

/** `rendered-worker-0123456789abcdef0123456789abcdef` as `rendered-worker-01234567`; other names as they are. */
export function shortConfig(name: string | undefined | null): string {
  return (name ?? '').replace(/^(rendered-.+-[0-9a-f]{8})[0-9a-f]{24}$/, '$1');
}
