/** All services of this node: searched, filtered, sorted, and each with its state. */
import './services.css';
import './services/selected.css';
import './services/cards.css';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { counted, grouped } from '../../../src/text/ages.ts';
import { Empty, Failed, Loading, Old } from '../parts/states.tsx';
import type { ColumnName } from './services/columns.ts';
import { ServiceGrid } from './services/grid.tsx';
import type { ServiceLine } from './services/line.ts';
import { SelectedService } from './services/selected.tsx';
import { Selector } from './services/selection.ts';
import type { StoredServices } from './services/serviceStore.ts';
import { serviceStore } from './services/store.ts';
import { Toolbar } from './services/toolbar.tsx';
import { useEndpointMatches } from './services/useEndpointMatches.ts';
import { useTableState } from './services/useTableState.ts';
import { sortedBy, withoutFilters } from './services/viewState.ts';

export function ServicesView({ query }: { readonly query: URLSearchParams }) {
  const stored = useStored();
  if (stored.progress === 'loading')
    return (
      <>
        <h1>Services</h1>
        {stored.failure ? (
          <Failed what="services" failure={stored.failure} again={() => serviceStore.again()} />
        ) : (
          <Loading what="services" />
        )}
      </>
    );
  if (stored.lines.length === 0)
    return (
      <>
        <h1>Services</h1>
        <Empty title="No services.">
          <p>There is none in the cluster or the manifests, or none that this proxy serves.</p>
          <p>
            <a href="/node">Where this node gets its objects from</a>
          </p>
        </Empty>
      </>
    );
  return <ServiceTable stored={stored} query={query} />;
}

function ServiceTable({
  stored,
  query,
}: {
  readonly stored: StoredServices;
  readonly query: URLSearchParams;
}) {
  const { lines } = stored;
  const [state, choose] = useTableState(query);
  const [copied, setCopied] = useState('');
  const endpoints = useEndpointMatches(state.search);
  const [selector] = useState(() => new Selector());
  const { search, states, type, policy, sort, isDescending, problemsFirst } = state;
  const selection = useMemo(
    () => selector.select(lines, state, endpoints),
    [lines, endpoints, search, states, type, policy, sort, isDescending, problemsFirst],
  );
  const empty = useMemo(() => emptyColumns(lines), [lines]);
  const selected = useMemo(() => lines.find(({ service }) => service === state.row), [lines, state.row]);
  const found = selection.lines.length;
  return (
    <div class="services">
      <div class="services-title">
        <h1>Services</h1>
        <p role="status" class="quiet">
          {found === lines.length
            ? counted(found, 'service')
            : `${grouped(found)} of ${counted(lines.length, 'service')}`}
          {stored.progress === 'first' && ', more are loading…'}
        </p>
        <p class="visually-hidden" role="status">
          {copied}
        </p>
      </div>
      {stored.failure && <Old what="services" failure={stored.failure} at={stored.at} />}
      <Toolbar state={state} selection={selection} onChoose={choose} />
      <p id="services-keys" class="visually-hidden">
        Arrow keys select a service, Enter opens it, c copies its first address.
      </p>
      <ServiceGrid
        lines={selection.lines}
        empty={empty}
        state={state}
        changed={stored.changed}
        isBusy={stored.progress === 'first'}
        onSort={(column) => choose(sortedBy(state, column), 'push')}
        onSelect={(row) => choose({ ...state, row }, 'soon')}
        onCopied={setCopied}
      />
      {found === 0 && (
        <Empty title={`None of ${counted(lines.length, 'service')}.`}>
          <p>Search looks at names, addresses and ports of services, and at addresses of endpoints.</p>
          <button type="button" onClick={() => choose(withoutFilters(state), 'push')}>
            Show all
          </button>
        </Empty>
      )}
      {selected && <SelectedService line={selected} onClose={() => choose({ ...state, row: '' }, 'soon')} />}
    </div>
  );
}

function useStored(): StoredServices {
  const [stored, setStored] = useState(serviceStore.current);
  useEffect(() => {
    const update = (): void => setStored(serviceStore.current);
    const unsubscribe = serviceStore.onChange(update);
    const close = serviceStore.open();
    update();
    return () => {
      unsubscribe();
      close();
    };
  }, []);
  return stored;
}

/** `junction services` leaves them out too. */
function emptyColumns(lines: readonly ServiceLine[]): readonly ColumnName[] {
  const empty: ColumnName[] = [];
  if (lines.every(({ kind }) => !kind.hasOtherIPs)) empty.push('other');
  if (lines.every(({ kind }) => kind.policy === '')) empty.push('policy');
  return empty;
}
