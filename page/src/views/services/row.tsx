/** One service in the table. Drawn again only when something of it is another: scrolling draws many. */
import { Component } from 'preact';
import type { ServiceState } from '../../../../src/explain/types.ts';
import { grouped } from '../../../../src/text/ages.ts';
import { Badge } from '../../parts/badge.tsx';
import { CopyButton } from '../../parts/copyButton.tsx';
import { servicePath } from '../../route.ts';
import type { Column, ColumnName } from './columns.ts';
import { cellsOf, type ServiceCells, type ServiceLine } from './line.ts';

interface RowProps {
  readonly line: ServiceLine;
  readonly index: number;
  /** Pixels below the first row. */
  readonly top: number;
  readonly columns: readonly Column[];
  readonly isSelected: boolean;
  /** The pointer is on it. */
  readonly isPointed: boolean;
  readonly isChanged: boolean;
}

export function rowId(index: number): string {
  return `service-row-${index}`;
}

export class Row extends Component<RowProps> {
  override shouldComponentUpdate(next: RowProps): boolean {
    const before = this.props;
    return (
      next.line !== before.line ||
      next.index !== before.index ||
      next.top !== before.top ||
      next.columns !== before.columns ||
      next.isSelected !== before.isSelected ||
      next.isPointed !== before.isPointed ||
      next.isChanged !== before.isChanged
    );
  }

  override render({ line, index, top, columns, isSelected, isPointed, isChanged }: RowProps) {
    const cells = cellsOf(line);
    return (
      <div
        role="row"
        id={rowId(index)}
        class={isChanged ? 'service-row service-changed' : 'service-row'}
        aria-rowindex={index + 2}
        aria-selected={isSelected}
        data-index={index}
        style={{ top: `${top}px` }}
      >
        {columns.map(({ name }) => (
          <div
            key={name}
            role={name === 'service' ? 'rowheader' : 'gridcell'}
            class={`service-cell service-${name}`}
            title={titleOfCell(name, line, cells)}
          >
            <Cell name={name} line={line} cells={cells} isPointed={isPointed} />
          </div>
        ))}
      </div>
    );
  }
}

interface CellProps {
  readonly name: ColumnName;
  readonly line: ServiceLine;
  readonly cells: ServiceCells;
  readonly isPointed: boolean;
}

/** The whole text, where the cell may be too narrow for it. */
function titleOfCell(name: ColumnName, line: ServiceLine, cells: ServiceCells): string | undefined {
  switch (name) {
    case 'service':
      return line.service;
    case 'cluster':
      return cells.clusterIPs.join(', ');
    case 'other':
      return cells.otherIPs.join(', ');
    case 'ports':
      return cells.ports.join(', ');
    case 'endpoints':
      return `${grouped(line.ready)} of ${grouped(line.all)} ready, ${grouped(line.local)} of them on this node`;
    case 'policy':
      return line.kind.policy;
    case 'state':
      return cells.detail;
    default:
      return undefined;
  }
}

function Cell({ name, line, cells, isPointed }: CellProps) {
  switch (name) {
    case 'service':
      return <ServiceLink service={line.service} />;
    case 'type':
      return <>{line.kind.type}</>;
    case 'cluster':
      return <Addresses addresses={cells.clusterIPs} isPointed={isPointed} />;
    case 'other':
      return <Addresses addresses={cells.otherIPs} isPointed={isPointed} />;
    case 'ports':
      return <>{cells.ports.join(', ')}</>;
    case 'endpoints':
      return <Endpoints {...line} />;
    case 'policy':
      return <>{line.kind.policy}</>;
    case 'state':
      return (
        <>
          <Badge state={line.kind.state as ServiceState} /> <span class="service-detail">{cells.detail}</span>
        </>
      );
  }
}

/** The grid's keys reach it; with the Tab key one would walk through thousands. */
function ServiceLink({ service }: { readonly service: string }) {
  const end = service.indexOf('/') + 1;
  return (
    <a href={servicePath(service)} tabIndex={-1}>
      <span class="service-namespace">{service.slice(0, end)}</span>
      {service.slice(end)}
    </a>
  );
}

function Addresses({
  addresses,
  isPointed,
}: {
  readonly addresses: readonly string[];
  readonly isPointed: boolean;
}) {
  const [first] = addresses;
  return (
    <>
      {addresses.join(', ')}
      {isPointed && first !== undefined && <CopyButton text={first} isSkipped />}
    </>
  );
}

/** Ready, local, all. */
function Endpoints({ ready, local, all }: Pick<ServiceLine, 'ready' | 'local' | 'all'>) {
  return (
    <>
      <span class={ready < all ? 'service-count service-some' : 'service-count'}>{grouped(ready)}</span>
      <span class="service-count quiet">{grouped(local)}</span>
      <span class="service-count quiet">{grouped(all)}</span>
    </>
  );
}
