/**
 * One service as the table of `junction services` has it, in little memory: the line, what it is searched, filtered and
 * sorted by, and the rest when it is looked at.
 */
import { SERVICE_COLUMNS } from '../../../../src/explain/serviceTable.ts';

type ServiceColumn = (typeof SERVICE_COLUMNS)[number];

export interface ServiceLine {
  readonly service: string;
  readonly line: string;
  /** In small letters: the name, addresses, and ports as `:80/tcp`. */
  readonly text: string;
  /** Equal in all of these: the same object, of which there are few. */
  readonly kind: LineKind;
  readonly ready: number;
  readonly local: number;
  readonly all: number;
}

/** What services are filtered by. */
export interface LineKind {
  readonly type: string;
  readonly policy: string;
  readonly state: string;
  /** Beside its cluster IPs. */
  readonly hasOtherIPs: boolean;
}

/** What is shown, and not searched through all services. */
export interface ServiceCells {
  readonly clusterIPs: readonly string[];
  readonly otherIPs: readonly string[];
  readonly ports: readonly string[];
  /** `10800s` */
  readonly affinity: string;
  /** Why the state is not `ok`. */
  readonly detail: string;
}

const TITLES = SERVICE_COLUMNS.join('\t');
const PLACES = Object.fromEntries(SERVICE_COLUMNS.map((column, index) => [column, index])) as Readonly<
  Record<ServiceColumn, number>
>;

/** What makes of a line below these titles one that `readLine` reads: a newer proxy may have more columns. */
export function lineNormalizer(titles: string): (line: string) => string {
  if (titles === TITLES) return (line) => line;
  const found = titles.split('\t');
  const places = SERVICE_COLUMNS.map((title) => found.indexOf(title));
  return (line) => {
    const cells = line.split('\t');
    return places.map((place) => cells[place] ?? '').join('\t');
  };
}

export function readLine(line: string): ServiceLine {
  const cells = line.split('\t');
  const cell = (column: ServiceColumn): string => cells[PLACES[column]] ?? '';
  const service = cell('SERVICE');
  const { ready, all, local } = parseReady(cell('READY'));
  return {
    service,
    line,
    text: searchText(service, cell('CLUSTER IP'), cell('OTHER IPS'), cell('PORTS')),
    kind: kindOf(cell('TYPE'), cell('POLICY'), parseState(cell('STATE')).state, cell('OTHER IPS') !== ''),
    ready,
    local,
    all,
  };
}

export function cellsOf({ line }: ServiceLine): ServiceCells {
  const cells = line.split('\t');
  const cell = (column: ServiceColumn): string => cells[PLACES[column]] ?? '';
  return {
    clusterIPs: listOf(cell('CLUSTER IP')),
    otherIPs: listOf(cell('OTHER IPS')),
    ports: listOf(cell('PORTS')),
    affinity: cell('AFFINITY'),
    detail: parseState(cell('STATE')).detail,
  };
}

const kinds = new Map<string, LineKind>();

function kindOf(type: string, policy: string, state: string, hasOtherIPs: boolean): LineKind {
  const key = `${type}\t${policy}\t${state}\t${hasOtherIPs}`;
  const known = kinds.get(key);
  if (known) return known;
  const kind = { type, policy, state, hasOtherIPs };
  kinds.set(key, kind);
  return kind;
}

function listOf(text: string): readonly string[] {
  return text === '' ? [] : text.split(',');
}

/** `no endpoints: http has no usable endpoint` */
function parseState(text: string): { readonly state: string; readonly detail: string } {
  const end = text.indexOf(': ');
  return end < 0 ? { state: text, detail: '' } : { state: text.slice(0, end), detail: text.slice(end + 2) };
}

const READY = /^(\d+)\/(\d+)(?: \((\d+) here\))?$/;

/** `3/4 (1 here)` */
function parseReady(text: string): Pick<ServiceLine, 'ready' | 'all' | 'local'> {
  const [, ready = '0', all = '0', local = '0'] = READY.exec(text) ?? [];
  return { ready: Number(ready), all: Number(all), local: Number(local) };
}

function searchText(service: string, clusterIPs: string, otherIPs: string, ports: string): string {
  const each = ports.replaceAll(/(\d+):(\d+)(\/\w+)/g, '$1$3,$2$3').replaceAll(',', ' :');
  const numbers = each === '' ? '' : ` :${each}`;
  return `${service} ${clusterIPs} ${otherIPs}${numbers}`.toLowerCase();
}
