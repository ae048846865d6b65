/** Which services are shown, in which order, and how many there would be with another filter. */
import { STATE_SEVERITY } from '../../../../src/explain/rows.ts';
import type { ServiceLine } from './line.ts';
import { type EndpointMatches, isFound, isNarrower, type Term, termsOf } from './search.ts';
import type { SortColumn, TableState } from './viewState.ts';

export interface Selection {
  readonly lines: readonly ServiceLine[];
  /** By value: how many there would be if it were chosen, or also chosen. */
  readonly states: ReadonlyMap<string, number>;
  readonly types: ReadonlyMap<string, number>;
  readonly policies: ReadonlyMap<string, number>;
}

export const POLICIES = ['Cluster', 'external Local', 'internal Local'] as const;

interface Ordered {
  readonly of: readonly ServiceLine[];
  readonly order: string;
  readonly lines: readonly ServiceLine[];
}

interface Found {
  readonly in: readonly ServiceLine[];
  readonly terms: readonly Term[];
  readonly endpoints: EndpointMatches;
  readonly lines: readonly ServiceLine[];
}

/** Keeps the last order and what the last search found: the next key mostly narrows it. */
export class Selector {
  #ordered: Ordered | undefined;
  #found: Found | undefined;

  /** `lines`: by name. */
  select(lines: readonly ServiceLine[], state: TableState, endpoints: EndpointMatches): Selection {
    return filtered(this.#find(this.#order(lines, state), termsOf(state.search), endpoints), state);
  }

  #order(of: readonly ServiceLine[], state: TableState): readonly ServiceLine[] {
    const order = `${state.sort} ${state.isDescending} ${state.problemsFirst}`;
    if (this.#ordered?.of !== of || this.#ordered.order !== order)
      this.#ordered = { of, order, lines: ordered(of, state) };
    return this.#ordered.lines;
  }

  #find(
    lines: readonly ServiceLine[],
    terms: readonly Term[],
    endpoints: EndpointMatches,
  ): readonly ServiceLine[] {
    const last = this.#found;
    const isPart = last?.in === lines && last.endpoints === endpoints && isNarrower(terms, last.terms);
    const among = isPart ? last.lines : lines;
    const found = terms.length === 0 ? lines : among.filter((line) => isFound(line, terms, endpoints));
    this.#found = { in: lines, terms, endpoints, lines: found };
    return found;
  }
}

const KEYS: Readonly<Record<Exclude<SortColumn, 'service'>, (line: ServiceLine) => number | string>> = {
  type: ({ type }) => type,
  endpoints: ({ ready }) => ready,
  policy: ({ policy }) => policy,
  rate: ({ rate }) => rate,
  state: severityOf,
};

function severityOf({ state }: ServiceLine): number {
  return (STATE_SEVERITY as Readonly<Record<string, number>>)[state] ?? 0;
}

/** What is equal stays in the order of names. */
function ordered(
  lines: readonly ServiceLine[],
  { sort, isDescending, problemsFirst }: TableState,
): readonly ServiceLine[] {
  const sign = isDescending ? -1 : 1;
  const sorted =
    sort === 'service'
      ? isDescending
        ? lines.toReversed()
        : lines
      : lines.toSorted((a, b) => sign * compare(KEYS[sort](a), KEYS[sort](b)));
  return problemsFirst ? sorted.toSorted((a, b) => severityOf(b) - severityOf(a)) : sorted;
}

function compare(a: number | string, b: number | string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function filtered(
  lines: readonly ServiceLine[],
  { states, type, policy }: Pick<TableState, 'states' | 'type' | 'policy'>,
): Selection {
  const kept: ServiceLine[] = [];
  const counts = {
    states: new Map<string, number>(),
    types: new Map<string, number>(),
    policies: new Map<string, number>(),
  };
  for (const line of lines) {
    const isState = states.length === 0 || states.includes(line.state);
    const isType = type === '' || line.type === type;
    const isPolicy = policy === '' || hasPolicy(line, policy);
    if (isType && isPolicy) add(counts.states, line.state);
    if (isState && isPolicy) add(counts.types, line.type);
    if (isState && isType) for (const each of POLICIES) if (hasPolicy(line, each)) add(counts.policies, each);
    if (isState && isType && isPolicy) kept.push(line);
  }
  return { lines: kept, ...counts };
}

/** A Service may have both; without any, traffic goes to endpoints of the whole cluster. */
function hasPolicy(line: ServiceLine, policy: string): boolean {
  return policy === 'Cluster' ? line.policy === '' : line.policy.includes(policy);
}

function add(counts: Map<string, number>, value: string): void {
  counts.set(value, (counts.get(value) ?? 0) + 1);
}
