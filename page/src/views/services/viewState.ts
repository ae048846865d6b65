/** What is chosen in the table of services, as it stands in the address. */
export const SORTS = ['service', 'type', 'endpoints', 'policy', 'state'] as const;
export type SortColumn = (typeof SORTS)[number];

export interface TableState {
  readonly search: string;
  /** Empty: all. */
  readonly states: readonly string[];
  readonly type: string;
  readonly policy: string;
  readonly sort: SortColumn;
  readonly isDescending: boolean;
  readonly problemsFirst: boolean;
  /** The row that the keys move from. */
  readonly row: string;
}

export const NO_CHOICE: TableState = {
  search: '',
  states: [],
  type: '',
  policy: '',
  sort: 'service',
  isDescending: false,
  problemsFirst: false,
  row: '',
};

export function parseTableState(query: URLSearchParams): TableState {
  const sort = query.get('sort') ?? '';
  const column = SORTS.find((each) => each === sort.replace(/^-/, ''));
  return {
    search: query.get('search') ?? '',
    states: query.getAll('state'),
    type: query.get('type') ?? '',
    policy: query.get('policy') ?? '',
    sort: column ?? 'service',
    isDescending: column !== undefined && sort.startsWith('-'),
    problemsFirst: query.get('first') === 'problems',
    row: query.get('row') ?? '',
  };
}

export function printTableState(state: TableState): string {
  const query = new URLSearchParams();
  if (state.search !== '') query.set('search', state.search);
  for (const each of state.states) query.append('state', each);
  if (state.type !== '') query.set('type', state.type);
  if (state.policy !== '') query.set('policy', state.policy);
  if (state.sort !== 'service' || state.isDescending)
    query.set('sort', `${state.isDescending ? '-' : ''}${state.sort}`);
  if (state.problemsFirst) query.set('first', 'problems');
  if (state.row !== '') query.set('row', state.row);
  return query.size === 0 ? '/services' : `/services?${query}`;
}

/** Numbers and states begin with the most; a second click turns the order. */
export function sortedBy(state: TableState, column: SortColumn): TableState {
  if (state.sort === column) return { ...state, isDescending: !state.isDescending };
  return {
    ...state,
    sort: column,
    isDescending: column === 'endpoints' || column === 'state',
  };
}

export function isFiltered({ search, states, type, policy }: TableState): boolean {
  return search !== '' || states.length > 0 || type !== '' || policy !== '';
}

export function withoutFilters(state: TableState): TableState {
  const { sort, isDescending, problemsFirst, row } = state;
  return { ...NO_CHOICE, sort, isDescending, problemsFirst, row };
}

export function withStateToggled(state: TableState, value: string): TableState {
  const { states } = state;
  return {
    ...state,
    states: states.includes(value) ? states.filter((each) => each !== value) : [...states, value],
  };
}
