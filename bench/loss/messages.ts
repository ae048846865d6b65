/** What is measured, and what came out. */
export const LAB_MODES = ['iptables-nft', 'iptables-legacy', 'nftables', 'nftables-backstop'] as const;
export const GUEST_MODES = ['iptables-legacy', 'ipvs'] as const;
export type LossMode = (typeof LAB_MODES)[number] | (typeof GUEST_MODES)[number];

/**
 * restart: SIGTERM, then a start. kill: SIGKILL, then a start. kills: twenty times SIGKILL at random moments of a start. flush:
 * another program deletes every rule, in the way that is usual for the mode. switch: SIGTERM, then a start in another mode.
 * upgrade: SIGTERM to an older version, then a start of this one.
 */
export type LossEvent = 'restart' | 'kill' | 'kills' | 'flush' | 'switch' | 'upgrade';

export interface LossScenario {
  readonly event: LossEvent;
  readonly mode: LossMode;
  /** After a switch. */
  readonly to?: LossMode;
}

export interface LossResult {
  readonly scenario: LossScenario;
  readonly proxy: 'Junction' | 'kube-proxy';
  /** Connections that were open before, and those of them that got no answer afterwards. */
  readonly held: number;
  readonly broken: number;
  /** New connections, those that got no answer in time, and those whose first packet had to be sent again. */
  readonly dialled: number;
  readonly failed: number;
  readonly delayed: number;
  readonly seconds: number;
  /** Every way in answered again. */
  readonly recovered: boolean;
  /** Of the failed ones, who dialled what, when, and how it ended. */
  readonly failures: readonly string[];
}

export function scenariosOf(
  modes: readonly LossMode[],
  events: readonly LossEvent[],
): readonly LossScenario[] {
  const alone = modes.flatMap((mode) =>
    events
      // What differs without ownership of the table is a flush.
      .filter((event) => event !== 'switch' && (event === 'flush' || mode !== 'nftables-backstop'))
      .map((event): LossScenario => ({ event, mode })),
  );
  const others = modes.filter((mode) => mode !== 'nftables-backstop');
  const switches = others.flatMap((mode) =>
    others
      // Between the two variants of iptables nobody switches by choosing a mode.
      .filter((to) => to !== mode && kindOf(to) !== kindOf(mode))
      .map((to): LossScenario => ({ event: 'switch', mode, to })),
  );
  return [...alone, ...switches];
}

export function kindOf(mode: LossMode): 'iptables' | 'ipvs' | 'nftables' {
  if (mode === 'ipvs') return 'ipvs';
  return mode.startsWith('nftables') ? 'nftables' : 'iptables';
}

export function nameOf({ event, mode, to }: LossScenario): string {
  return to === undefined ? `${mode}: ${event}` : `${mode} to ${to}`;
}
