/**
 * A planned endpoint in half the memory: its address, its port, and a condition that thousands of endpoints share. A
 * large cluster has hundreds of thousands of them, and each plan of a service makes its own.
 */
import type { Endpoint } from './endpointTracker.ts';
import { hostPort, type Ip } from './ip.ts';
import type { EndpointState } from './packedSlice.ts';

/** What a plan asks of an endpoint, apart from where it is. */
interface EndpointCondition {
  readonly isLocal: boolean;
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  readonly zoneHints: readonly string[];
  readonly nodeHints: readonly string[];
}

export class PackedEndpoint implements Endpoint {
  readonly ip: Ip;
  readonly port: number;
  /** Not private: equality reads it. */
  readonly condition: EndpointCondition;

  constructor(ip: Ip, port: number, condition: EndpointCondition) {
    this.ip = ip;
    this.port = port;
    this.condition = condition;
  }

  get key(): string {
    return hostPort(this.ip, this.port);
  }

  get isLocal(): boolean {
    return this.condition.isLocal;
  }

  get ready(): boolean {
    return this.condition.ready;
  }

  get serving(): boolean {
    return this.condition.serving;
  }

  get terminating(): boolean {
    return this.condition.terminating;
  }

  get zoneHints(): readonly string[] {
    return this.condition.zoneHints;
  }

  get nodeHints(): readonly string[] {
    return this.condition.nodeHints;
  }
}

const NO_HINTS: readonly string[] = [];
const BITS = { local: 1, ready: 2, serving: 4, terminating: 8 };
/** Without hints there are sixteen of them. */
const PLAIN: readonly EndpointCondition[] = Array.from({ length: 16 }, (_, bits) => ({
  isLocal: (bits & BITS.local) > 0,
  ready: (bits & BITS.ready) > 0,
  serving: (bits & BITS.serving) > 0,
  terminating: (bits & BITS.terminating) > 0,
  zoneHints: NO_HINTS,
  nodeHints: NO_HINTS,
}));

type Hinted = Omit<EndpointCondition, 'isLocal'>;

/** One for all that are alike, where there are no hints; hinted ones are shared with the states that they are of. */
export function conditionOf(state: Hinted, isLocal: boolean): EndpointCondition {
  const { ready, serving, terminating, zoneHints, nodeHints } = state;
  if (zoneHints.length + nodeHints.length > 0) return hintedCondition(state, isLocal);
  const bits =
    (isLocal ? BITS.local : 0) |
    (ready ? BITS.ready : 0) |
    (serving ? BITS.serving : 0) |
    (terminating ? BITS.terminating : 0);
  return PLAIN[bits] ?? { isLocal, ready, serving, terminating, zoneHints, nodeHints };
}

/** By the state of an endpoint, which a source shares among those of one node. */
const hinted = {
  here: new WeakMap<Hinted, EndpointCondition>(),
  elsewhere: new WeakMap<Hinted, EndpointCondition>(),
};

function hintedCondition(state: Hinted, isLocal: boolean): EndpointCondition {
  const known = hinted[isLocal ? 'here' : 'elsewhere'];
  let condition = known.get(state);
  if (!condition) {
    const { ready, serving, terminating, zoneHints, nodeHints } = state;
    known.set(state, (condition = { isLocal, ready, serving, terminating, zoneHints, nodeHints }));
  }
  return condition;
}

/** Whether the endpoints of this node are meant. */
export function isOn(nodeName: string, { nodeName: own }: Pick<EndpointState, 'nodeName'>): boolean {
  return nodeName !== '' && own === nodeName;
}

/** As their keys compare, without making them. Both are of one family. */
export function compareEndpoints(a: Endpoint, b: Endpoint): number {
  const { ip } = a;
  const { ip: other } = b;
  if (ip !== other && !ip.startsWith(other) && !other.startsWith(ip)) return ip < other ? -1 : 1;
  if (ip === other && a.port === b.port) return 0;
  // A colon or a bracket follows the shorter address.
  return a.key < b.key ? -1 : 1;
}
