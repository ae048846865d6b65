/** What colours, dashes and widths mean. */
import type { Graph } from './graph.ts';

export function Legend({ graph, widths }: { readonly graph: Graph; readonly widths: string }) {
  const classes = new Set(graph.ways.map(({ sourceClass }) => sourceClass));
  const isMasqueraded = graph.ways.some(({ masquerading }) => masquerading !== 'none');
  const isWrong = graph.ways.some((way) => way.isWrong);
  return (
    <ul class="legend" aria-label="Legend">
      {[...classes].map((each) => (
        <li key={each}>
          <Sample kind={`strand strand-${each}`} /> from {each}
        </li>
      ))}
      {isMasqueraded && (
        <li>
          <Sample kind="strand strand-all strand-plain" /> masqueraded
        </li>
      )}
      {isWrong && (
        <li>
          <Sample kind="strand strand-wrong" /> not as planned
        </li>
      )}
      <li>{widths}</li>
    </ul>
  );
}

function Sample({ kind }: { readonly kind: string }) {
  return (
    <svg width="28" height="8" aria-hidden="true">
      <path class={kind} stroke-width="4" d="M0 4H28" />
    </svg>
  );
}
