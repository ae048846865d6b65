/** The drawing of the hooks, with the way of the packet. What it shows, the stations below say in words. */
import { mapOf, type HookDrawing, PLACE_HEIGHT } from './packetDrawing.ts';
import type { PacketExplanation } from '../../../src/explain/types.ts';
import type { Station } from './packetStations.ts';

export function PacketMap({
  answer,
  stations,
}: {
  readonly answer: PacketExplanation;
  readonly stations: readonly Station[];
}) {
  const { viewBox, places, lines, text } = mapOf(answer, stations);
  return (
    <svg class="hooks" viewBox={viewBox} role="img" aria-label={`The packet's way: ${text}`}>
      <defs>
        {['way', 'other'].map((kind) => (
          <marker
            key={kind}
            id={`hooks-${kind}`}
            class={`hooks-head-${kind}`}
            viewBox="0 0 8 8"
            refX="2"
            refY="4"
            markerWidth="8"
            markerHeight="8"
            markerUnits="userSpaceOnUse"
            orient="auto"
          >
            <path d="M0 0 L8 4 L0 8 Z" />
          </marker>
        ))}
      </defs>
      {lines.map(({ key, path, isTaken }) => (
        <path
          key={key}
          d={path}
          class={isTaken ? 'hooks-line hooks-way' : 'hooks-line'}
          marker-end={`url(#hooks-${isTaken ? 'way' : 'other'})`}
        />
      ))}
      {places.map((place) => (
        <Place key={place.name} place={place} />
      ))}
    </svg>
  );
}

function Place({ place }: { readonly place: HookDrawing['places'][number] }) {
  const { label, x, y, width, isHook, isTaken, station } = place;
  const isWrong = (station?.differences.length ?? 0) > 0;
  const isEnd = station?.isEnd === true;
  const state = isWrong || isEnd ? 'hooks-bad' : isTaken ? 'hooks-on' : '';
  const sign = isWrong ? '≠ ' : isEnd ? '✗ ' : '';
  return (
    <g class={`hooks-place ${isHook ? 'hooks-hook' : ''} ${state}`}>
      <rect
        x={x - width / 2}
        y={y - PLACE_HEIGHT / 2}
        width={width}
        height={PLACE_HEIGHT}
        rx={isHook ? 6 : PLACE_HEIGHT / 2}
      />
      <text x={x} y={y + 5} text-anchor="middle">
        {sign + label}
      </text>
    </g>
  );
}
