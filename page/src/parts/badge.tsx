import type { ServiceState, Verdict } from '../../../src/explain/types.ts';

/** `ok`, `no endpoints`, `forwarded`, … by word and by colour. */
export function Badge({ state }: { readonly state: ServiceState | Verdict }) {
  return <span class={`badge badge-${state.replaceAll(' ', '-')}`}>{state}</span>;
}
