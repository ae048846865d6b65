/** Columns of the table, and which of them there is room for. */
import type { SortColumn } from './viewState.ts';

export type ColumnName =
  | 'service'
  | 'type'
  | 'cluster'
  | 'other'
  | 'ports'
  | 'endpoints'
  | 'policy'
  | 'state';

export interface Column {
  readonly name: ColumnName;
  readonly title: string;
  readonly sort?: SortColumn;
  /** In pixels. */
  readonly least: number;
  /** Its part of the room that is left. */
  readonly share: number;
}

const COLUMNS: readonly Column[] = [
  { name: 'service', title: 'Service', sort: 'service', least: 176, share: 2 },
  { name: 'type', title: 'Type', sort: 'type', least: 120, share: 0.2 },
  { name: 'cluster', title: 'Cluster IP', least: 130, share: 1.2 },
  { name: 'other', title: 'Other IPs', least: 130, share: 1.4 },
  { name: 'ports', title: 'Ports', least: 140, share: 1.2 },
  { name: 'endpoints', title: 'Endpoints', sort: 'endpoints', least: 143, share: 0 },
  { name: 'policy', title: 'Policy', sort: 'policy', least: 120, share: 0.6 },
  { name: 'state', title: 'State', sort: 'state', least: 140, share: 2 },
];

/** Dropped first where there is no room; the selected row has them all. */
const DROPPED: readonly ColumnName[] = ['policy', 'type', 'other', 'ports', 'cluster'];

/** `empty`: columns that no service has anything in. */
export function shownColumns(width: number, empty: readonly ColumnName[]): readonly Column[] {
  let shown = COLUMNS.filter(({ name }) => !empty.includes(name));
  for (const name of DROPPED) {
    if (shown.reduce((sum, { least }) => sum + least, 0) <= width) break;
    shown = shown.filter((column) => column.name !== name);
  }
  return shown;
}

/** In pixels: a grid of fixed columns is laid out faster, and there is one in each row. */
export function columnWidths(columns: readonly Column[], width: number): readonly number[] {
  const room = Math.max(0, width - columns.reduce((sum, { least }) => sum + least, 0));
  const shares = columns.reduce((sum, { share }) => sum + share, 0);
  return columns.map(({ least, share }) => least + Math.floor((room * share) / shares));
}

interface RowLayout {
  readonly isCards: boolean;
  readonly rowHeight: number;
}

/** Of a narrow screen: each service as a card. */
export function layoutFor(width: number): RowLayout {
  return width < 620 ? { isCards: true, rowHeight: 104 } : { isCards: false, rowHeight: 36 };
}
