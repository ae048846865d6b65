/** The feature gates that concern a service proxy, as of Kubernetes 1.36. */
import { didYouMean } from '../text/suggest.ts';
import type { FeatureGates, Note } from './setting.ts';

export interface Gate {
  readonly stage: 'alpha' | 'beta' | 'GA';
  readonly default: boolean;
  /** Cannot be set to anything else. */
  readonly locked?: boolean;
  readonly effect: string;
}

export const GATES = {
  AllowServiceExternalIPs: {
    stage: 'GA',
    default: true,
    effect: 'when off, external IPs of services get no rules',
  },
  PreferSameTrafficDistribution: {
    stage: 'GA',
    default: true,
    locked: true,
    effect: 'hints that prefer endpoints on the same node are honoured',
  },
  MultiCIDRServiceAllocator: {
    stage: 'GA',
    default: true,
    locked: true,
    effect: 'ServiceCIDR objects are watched',
  },
  ComponentFlagz: { stage: 'beta', default: true, effect: 'serves /flagz on the metrics port' },
  ComponentStatusz: { stage: 'beta', default: true, effect: 'serves /statusz on the metrics port' },
  NativeHistograms: { stage: 'alpha', default: false, effect: 'accepted, without effect' },
  ContextualLogging: { stage: 'beta', default: true, effect: 'accepted, without effect' },
  LoggingAlphaOptions: { stage: 'alpha', default: false, effect: 'allows the alpha options of logging' },
  LoggingBetaOptions: { stage: 'beta', default: true, effect: 'allows the format json' },
  AllAlpha: { stage: 'alpha', default: false, effect: 'all alpha gates that are not named' },
  AllBeta: { stage: 'beta', default: false, effect: 'all beta gates that are not named' },
} as const satisfies Readonly<Record<string, Gate>>;

type GateName = keyof typeof GATES;

export function isGateEnabled(gates: FeatureGates, name: GateName): boolean {
  const gate: Gate = GATES[name];
  const group =
    gate.stage === 'alpha' ? gates['AllAlpha'] : gate.stage === 'beta' ? gates['AllBeta'] : undefined;
  return gates[name] ?? group ?? gate.default;
}

/** As kube-proxy shows them in `kubernetes_feature_enabled`: a gate that is generally available has no stage. */
export function gateStates(gates: FeatureGates) {
  const stages = { alpha: 'ALPHA', beta: 'BETA', GA: '' } as const;
  return Object.entries(GATES).flatMap(([name, { stage }]) =>
    isGateName(name) ? [{ name, stage: stages[stage], enabled: isGateEnabled(gates, name) }] : [],
  );
}

/** What is wrong with these settings; in the words of Kubernetes. */
export function gateProblems(gates: FeatureGates): readonly string[] {
  return Object.entries(gates).flatMap(([name, wanted]) => {
    const gate: Gate | undefined = isGateName(name) ? GATES[name] : undefined;
    if (gate?.locked !== true || wanted === gate.default) return [];
    return [`cannot set feature gate ${name} to ${wanted}, feature is locked to ${gate.default}`];
  });
}

const MOST_NAMED = 200;

/**
 * Gates that mean nothing here. kube-proxy takes every gate of Kubernetes, about 150 that change with each version, and
 * clusters set one list for all their components: kind sets KubeletInUserNamespace. So these are logged, not refused.
 */
export function unknownGates(gates: FeatureGates): readonly Note[] {
  const unknown = Object.keys(gates).filter((name) => !isGateName(name));
  if (unknown.length === 0) return [];
  const message = 'Feature gates have no effect, because Junction does not know them';
  const shown = unknown.slice(0, MOST_NAMED);
  const featureGates = shown.map((name) => `${name}${didYouMean(name, Object.keys(GATES))}`);
  const more = unknown.length - shown.length;
  return [{ severity: 'warning', message, fields: { featureGates, ...(more > 0 && { more }) } }];
}

function isGateName(name: string): name is GateName {
  return Object.hasOwn(GATES, name);
}
