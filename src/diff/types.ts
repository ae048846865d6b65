/** What `diff` answers: the JSON shape of `--output json`. Fields are added, never renamed. */
import type { Family } from '../model/ip.ts';
import type { ModeName } from '../model/mode.ts';
import type { ObjectKey } from '../model/objects.ts';
import type { ServicePortId } from '../model/serviceTracker.ts';

export interface DiffReport {
  readonly node: string;
  /** Lines with `-` are of the first, those with `+` of the second. */
  readonly from: DiffSide;
  readonly to: DiffSide;
  readonly isSame: boolean;
  readonly families: readonly FamilyDiff[];
  /** What could not be compared, and why. */
  readonly notes: readonly string[];
}

export interface DiffSide {
  readonly kind: 'kernel' | 'plan';
  /** `the kernel`; `the running proxy`; `manifests examples` */
  readonly name: string;
  readonly node: string;
  readonly mode: ModeName;
}

export interface FamilyDiff {
  readonly family: Family;
  readonly isSame: boolean;
  readonly rules: RuleDiffCounts;
  /** Those that differ, by name. */
  readonly services: readonly ServiceDiff[];
  /** Rules that belong to no one service. */
  readonly shared: readonly RuleDiff[];
  readonly meaning: MeaningSummary;
}

interface RuleDiffCounts {
  readonly added: number;
  readonly removed: number;
  /** In both, and not the same. */
  readonly changed: number;
  /** Unset: the texts of two modes have nothing in common. */
  readonly isCompared: boolean;
}

export interface ServiceDiff {
  readonly service: ObjectKey;
  /** Of two plans, what differs in words: `shop/web:http/TCP: endpoint 10.1.0.7:80 added to cluster`. */
  readonly changes: readonly string[];
  readonly rules: readonly RuleDiff[];
  /** Packets that go elsewhere. Empty: the text differs, and the meaning does not. */
  readonly meaning: readonly MeaningDiff[];
}

export interface RuleDiff {
  readonly sign: '+' | '-' | '~';
  /** `chain nat KUBE-SVC-…`, `element any-2`, `virtual server TCP 10.96.0.1:80` */
  readonly object: string;
  readonly text: string;
}

export interface MeaningDiff {
  readonly servicePort: ServicePortId;
  /** `198.18.0.10 → 203.0.113.10:80/TCP, outside` */
  readonly packet: string;
  readonly from: string;
  readonly to: string;
}

export interface MeaningSummary {
  /** How many packets were asked about. */
  readonly packets: number;
  /** Not every service, source and frontend is among them: there are too many. */
  readonly isSampled: boolean;
  readonly different: number;
  /** Packets whose way could not be followed to its end. */
  readonly notEvaluated: number;
  /** What could not be evaluated. */
  readonly notes: readonly string[];
}
