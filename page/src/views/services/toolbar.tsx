/** Search and filters, each with how many services it would leave. */
import { useLayoutEffect, useRef } from 'preact/hooks';
import { STATE_SEVERITY } from '../../../../src/explain/rows.ts';
import { grouped } from '../../../../src/text/ages.ts';
import { SearchIcon } from '../../parts/icons.tsx';
import { POLICIES, type Selection } from './selection.ts';
import { isFiltered, SORTS, type TableState, withoutFilters, withStateToggled } from './viewState.ts';

interface ToolbarProps {
  readonly state: TableState;
  readonly selection: Selection;
  /** `soon`: no step of the back button. */
  readonly onChoose: (state: TableState, how: 'push' | 'soon') => void;
}

export function Toolbar({ state, selection, onChoose }: ToolbarProps) {
  const tools = useRef<HTMLElement>(null);
  useLayoutEffect(() => (tools.current ? keepHeight(tools.current) : undefined), []);
  const states = Object.keys(STATE_SEVERITY).filter(
    (each) => (selection.states.get(each) ?? 0) > 0 || state.states.includes(each),
  );
  return (
    <search ref={tools} class="services-tools" aria-label="Services">
      <label class="services-search">
        <SearchIcon />
        <span class="visually-hidden">Search by name, address, port or endpoint</span>
        <input
          type="search"
          value={state.search}
          placeholder="Name, address, :port or endpoint"
          autoComplete="off"
          spellcheck={false}
          onInput={(event) => onChoose({ ...state, search: event.currentTarget.value }, 'soon')}
          onKeyDown={(event) => {
            if (event.key === 'Enter' || event.key === 'ArrowDown')
              document.querySelector<HTMLElement>('.services-grid')?.focus({ preventScroll: true });
            else return;
            event.preventDefault();
          }}
        />
        <kbd aria-hidden="true">/</kbd>
      </label>
      <div role="group" aria-label="State" class="chips">
        {states.map((each) => (
          <button
            key={each}
            type="button"
            class={`chip badge-${each.replaceAll(' ', '-')}`}
            aria-pressed={state.states.includes(each)}
            onClick={() => onChoose(withStateToggled(state, each), 'push')}
          >
            {each} <span class="chip-count">{grouped(selection.states.get(each) ?? 0)}</span>
          </button>
        ))}
      </div>
      <Choice
        name="Type"
        value={state.type}
        values={[...selection.types.keys()].sort()}
        counts={selection.types}
        onChoose={(type) => onChoose({ ...state, type }, 'push')}
      />
      <Choice
        name="Policy"
        value={state.policy}
        values={POLICIES.filter((each) => selection.policies.has(each))}
        counts={selection.policies}
        onChoose={(policy) => onChoose({ ...state, policy }, 'push')}
      />
      <SortChoice state={state} onChoose={onChoose} />
      <label class="check services-first">
        <input
          type="checkbox"
          checked={state.problemsFirst}
          onChange={(event) => onChoose({ ...state, problemsFirst: event.currentTarget.checked }, 'push')}
        />
        Problems first
      </label>
      {isFiltered(state) && (
        <button type="button" class="services-clear" onClick={() => onChoose(withoutFilters(state), 'push')}>
          Clear
        </button>
      )}
    </search>
  );
}

/** The titles of columns stay below it. */
function keepHeight(tools: HTMLElement): () => void {
  const observer = new ResizeObserver(() => {
    const { height } = tools.getBoundingClientRect();
    tools.parentElement?.style.setProperty('--tools', `${height}px`);
  });
  observer.observe(tools);
  return () => observer.disconnect();
}

interface ChoiceProps {
  readonly name: string;
  /** Empty: all. */
  readonly value: string;
  readonly values: readonly string[];
  readonly counts: ReadonlyMap<string, number>;
  readonly onChoose: (value: string) => void;
}

function Choice({ name, value, values, counts, onChoose }: ChoiceProps) {
  const shown = value === '' || values.includes(value) ? values : [...values, value];
  return (
    <label class="choice">
      <span class="quiet">{name}</span>
      <select value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
        <option value="">all</option>
        {shown.map((each) => (
          <option key={each} value={each}>
            {each} ({grouped(counts.get(each) ?? 0)})
          </option>
        ))}
      </select>
    </label>
  );
}

const SORT_NAMES: Readonly<Record<(typeof SORTS)[number], string>> = {
  service: 'name',
  type: 'type',
  endpoints: 'endpoints',
  policy: 'policy',
  state: 'state',
};

/** Where there are no titles of columns. */
function SortChoice({ state, onChoose }: Pick<ToolbarProps, 'state' | 'onChoose'>) {
  return (
    <label class="choice services-sort">
      <span class="quiet">Sort</span>
      <select
        value={state.sort}
        onChange={(event) => {
          const sort = SORTS.find((each) => each === event.currentTarget.value) ?? 'service';
          const isDescending = sort === 'endpoints' || sort === 'state';
          onChoose({ ...state, sort, isDescending }, 'push');
        }}
      >
        {SORTS.map((each) => (
          <option key={each} value={each}>
            {SORT_NAMES[each]}
          </option>
        ))}
      </select>
    </label>
  );
}
