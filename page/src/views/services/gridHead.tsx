import type { Column } from './columns.ts';
import type { SortColumn, TableState } from './viewState.ts';

interface GridHeadProps {
  readonly columns: readonly Column[];
  readonly state: TableState;
  readonly onSort: (column: SortColumn) => void;
}

export function GridHead({ columns, state, onSort }: GridHeadProps) {
  return (
    <div role="rowgroup" class="services-head">
      <div role="row" aria-rowindex={1} class="service-row">
        {columns.map((column) => (
          <Title key={column.name} column={column} state={state} onSort={onSort} />
        ))}
      </div>
    </div>
  );
}

function Title({
  column: { name, title, sort },
  state,
  onSort,
}: Omit<GridHeadProps, 'columns'> & { readonly column: Column }) {
  const isSorted = sort !== undefined && state.sort === sort;
  const direction = state.isDescending ? 'descending' : 'ascending';
  const text = (
    <>
      {title}
      {name === 'endpoints' && (
        <span class="service-counts">
          {['ready', 'local', 'all'].map((each) => (
            <span key={each} class="service-count">
              {' '}
              {each}
            </span>
          ))}
        </span>
      )}
    </>
  );
  return (
    <div
      role="columnheader"
      class={`service-cell service-${name}`}
      {...(sort !== undefined && { 'aria-sort': isSorted ? direction : ('none' as const) })}
    >
      {sort === undefined ? (
        text
      ) : (
        <button type="button" class="sort" onClick={() => onSort(sort)}>
          {text}
          <span class="sort-sign" aria-hidden="true">
            {isSorted ? (state.isDescending ? '↓' : '↑') : ''}
          </span>
        </button>
      )}
    </div>
  );
}
