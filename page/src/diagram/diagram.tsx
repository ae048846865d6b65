/** The path of packets to a service port, drawn: boxes are buttons, ribbons run behind them. */
import { useMemo, useRef } from 'preact/hooks';
import type { Box, Graph, Share } from './graph.ts';
import { COLUMNS } from './graph.ts';
import { type Focus, nextBox } from './focus.ts';
import { curve, type Layout, layoutOf, type PlacedBox, ribbon } from './layout.ts';
import { isMarked } from './marks.ts';
import './diagram.css';

interface DiagramEvents {
  /** `undefined`: at nothing. */
  readonly onPoint: (key: string | undefined) => void;
  readonly onChoose: (box: Box) => void;
}

interface DiagramProps extends DiagramEvents {
  readonly graph: Graph;
  readonly width: number;
  readonly focus: Focus | undefined;
  readonly chosen: string | undefined;
  readonly changed: ReadonlySet<string>;
}

export function Diagram({ graph, width, focus, chosen, changed, onPoint, onChoose }: DiagramProps) {
  const canvas = useRef<HTMLDivElement>(null);
  const layout = useMemo(() => layoutOf(graph, width), [graph, width]);
  const isPool = (pool: string): boolean => focus?.boxes.has(`pool ${pool}`) ?? true;
  const move = (event: KeyboardEvent): void => {
    const from = event.target instanceof HTMLElement ? event.target.dataset['box'] : undefined;
    const next = from === undefined ? undefined : nextBox(layout.boxes, from, event.key);
    if (next === undefined) return;
    event.preventDefault();
    for (const each of canvas.current?.querySelectorAll<HTMLElement>('[data-box]') ?? [])
      if (each.dataset['box'] === next) each.focus();
  };
  return (
    <div class="diagram">
      <Titles layout={layout} />
      <div
        ref={canvas}
        class={focus ? 'canvas has-focus' : 'canvas'}
        style={{ height: `${layout.height}px` }}
        onKeyDown={move}
      >
        <Ribbons layout={layout} focus={focus} />
        {COLUMNS.map((title, column) => (
          <div key={title} role="group" aria-label={title}>
            {layout.boxes
              .filter(({ box }) => box.column === column)
              .map((place) => (
                <BoxButton
                  key={place.box.key}
                  place={place}
                  isLit={focus?.boxes.has(place.box.key) ?? false}
                  isChosen={chosen === place.box.key}
                  isChanged={isMarked(place.box, changed)}
                  isPool={isPool}
                  onPoint={onPoint}
                  onChoose={onChoose}
                />
              ))}
          </div>
        ))}
      </div>
    </div>
  );
}

function Titles({ layout }: { readonly layout: Layout }) {
  return (
    <div class="diagram-titles" aria-hidden="true">
      {COLUMNS.map((title, index) => {
        const { x = 0, width = 0 } = layout.columns[index] ?? {};
        return (
          <span key={title} style={{ left: `${x}px`, width: `${width}px` }}>
            {layout.boxes.some(({ box }) => box.column === index) ? title : `${title}: none`}
          </span>
        );
      })}
    </div>
  );
}

function Ribbons({ layout, focus }: { readonly layout: Layout; readonly focus: Focus | undefined }) {
  const { width, height, ways, streams, lineWidth } = layout;
  return (
    <svg class="ribbons" width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
      {streams.map((each) => {
        const { pool, from, to } = each.stream;
        const isLit = focus?.boxes.has(from) === true && focus.boxes.has(to);
        return <path key={`${pool} ${to}`} class={lit('stream', isLit)} d={ribbon(each)} />;
      })}
      {ways.map((each) => {
        const { packet, sourceClass, masquerading, isStopped, isWrong } = each.way;
        const kind = `strand strand-${sourceClass} strand-${masquerading}`;
        const end = isWrong ? ' strand-wrong' : isStopped && each.column === 2 ? ' strand-stopped' : '';
        return (
          <path
            key={`${packet} ${each.column}`}
            class={lit(kind + end, focus?.packets.has(packet) ?? false)}
            stroke-width={lineWidth}
            d={curve(each)}
          />
        );
      })}
    </svg>
  );
}

function lit(kind: string, isLit: boolean): string {
  return isLit ? `${kind} is-lit` : kind;
}

/** Of two pools, each share says of which. */
function Shares({ shares }: { readonly shares: readonly Share[] }) {
  if (shares.length === 0) return null;
  return (
    <span class="box-share">
      {shares.map(({ pool, text }, index) => (
        <>
          {index > 0 && ' · '}
          {text}
          {shares.length > 1 && <span class="visually-hidden"> of {pool}</span>}
        </>
      ))}
    </span>
  );
}

interface BoxProps extends DiagramEvents {
  readonly place: PlacedBox;
  readonly isLit: boolean;
  readonly isChosen: boolean;
  readonly isChanged: boolean;
  /** Whether shares of this pool are shown: all, or those of what is pointed at. */
  readonly isPool: (pool: string) => boolean;
}

function BoxButton({ place, isLit, isChosen, isChanged, isPool, onPoint, onChoose }: BoxProps) {
  const { box, x, y, width, height } = place;
  const { key, kind, title, lines, sourceClass, isLeftOut, isOpen, isPlain, shares = [] } = box;
  const classes = [
    'box',
    `box-${kind}`,
    sourceClass === undefined ? '' : `box-${sourceClass}`,
    isLeftOut === true ? 'is-left-out' : '',
    isOpen === true ? 'is-open' : '',
    isPlain === true ? 'is-plain' : '',
    shares.length > 1 ? 'has-two' : '',
    isLit ? 'is-lit' : '',
    isChanged ? 'is-changed' : '',
  ];
  const state = kind === 'group' ? { 'aria-expanded': isOpen === true } : { 'aria-pressed': isChosen };
  return (
    <button
      type="button"
      class={classes.filter((each) => each !== '').join(' ')}
      style={{ left: `${x}px`, top: `${y}px`, width: `${width}px`, height: `${height}px` }}
      data-box={key}
      title={[title, ...lines].join('\n')}
      {...state}
      onPointerEnter={() => onPoint(key)}
      onFocus={() => onPoint(key)}
      onClick={() => onChoose(box)}
    >
      <span class="box-title">{title}</span>
      {lines.map((line) => (
        <span key={line} class="box-line">
          {line}
        </span>
      ))}
      <Shares shares={shares.filter(({ pool }) => pool === undefined || isPool(pool))} />
      {isChanged && <span class="box-changed">changed</span>}
    </button>
  );
}
