/**
 * Which fields of which messages are read, by the numbers of Kubernetes' generated.proto. What is not named here is
 * skipped: managed fields, annotations and most labels are most of an object.
 *
 * Go writes a text or number that has no pointer even where it is empty or 0, and its JSON leaves it out. So does the
 * decoder: `text` and `int` that are empty are no fields. What Go has a pointer for, or writes into JSON always, is
 * `kept` as it is.
 */
import { HEADLESS, TRIGGER_TIME } from '../../../model/project/names.ts';
import { ZONE } from '../../../model/project/node.ts';
import { SERVICE_NAME } from '../../../model/project/endpointSlice.ts';
import { OTHER_PROXY } from '../../../model/project/service.ts';
import { INITIAL_EVENTS_END } from '../received.ts';

interface FieldRule {
  /** As in JSON. */
  readonly name: string;
  readonly isList?: boolean;
  readonly keepsEmpty?: boolean;
}

export type WireField = FieldRule &
  (
    | { readonly kind: 'text' | 'sharedText' | 'int' | 'bool' | 'time' }
    | { readonly kind: 'message'; readonly message: MessageTable }
    /** A map of texts. Other keys than these are skipped. */
    | { readonly kind: 'map'; readonly keys: readonly MapKey[] }
  );

export interface MapKey {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** By the number of the field. */
export type MessageTable = readonly (WireField | undefined)[];

const text = (name: string): WireField => ({ kind: 'text', name });
const shared = (name: string): WireField => ({ kind: 'sharedText', name });
const int = (name: string): WireField => ({ kind: 'int', name });
const bool = (name: string): WireField => ({ kind: 'bool', name });
const time = (name: string): WireField => ({ kind: 'time', name });
const message = (name: string, fields: MessageTable): WireField => ({
  kind: 'message',
  name,
  message: fields,
});
const list = (field: WireField): WireField => ({ ...field, isList: true, keepsEmpty: true });
const kept = (field: WireField): WireField => ({ ...field, keepsEmpty: true });
const map = (name: string, keys: readonly string[]): WireField => ({
  kind: 'map',
  name,
  keys: keys.map((key) => ({ name: key, bytes: Buffer.from(key) })),
});

function numbered(fields: Readonly<Record<number, WireField>>): MessageTable {
  const numbers = Object.keys(fields).map(Number);
  return Array.from({ length: Math.max(...numbers) + 1 }, (_, number) => fields[number]);
}

const OBJECT_META = numbered({
  1: text('name'),
  3: shared('namespace'),
  6: text('resourceVersion'),
  8: time('creationTimestamp'),
  9: time('deletionTimestamp'),
  11: map('labels', [SERVICE_NAME, HEADLESS, OTHER_PROXY, ZONE]),
  12: map('annotations', [TRIGGER_TIME, INITIAL_EVENTS_END]),
});

const SERVICE_PORT = numbered({
  1: shared('name'),
  2: shared('protocol'),
  3: kept(int('port')),
  5: int('nodePort'),
});

const CLIENT_IP = numbered({ 1: kept(int('timeoutSeconds')) });

const SERVICE_SPEC = numbered({
  1: list(message('ports', SERVICE_PORT)),
  3: text('clusterIP'),
  4: shared('type'),
  5: list(text('externalIPs')),
  7: shared('sessionAffinity'),
  9: list(text('loadBalancerSourceRanges')),
  11: shared('externalTrafficPolicy'),
  12: int('healthCheckNodePort'),
  14: message('sessionAffinityConfig', numbered({ 1: message('clientIP', CLIENT_IP) })),
  18: list(text('clusterIPs')),
  19: list(shared('ipFamilies')),
  22: kept(shared('internalTrafficPolicy')),
});

const INGRESS = numbered({ 1: text('ip'), 3: kept(shared('ipMode')) });
const LOAD_BALANCER = numbered({ 1: list(message('ingress', INGRESS)) });

const SERVICE = numbered({
  1: message('metadata', OBJECT_META),
  2: message('spec', SERVICE_SPEC),
  3: message('status', numbered({ 1: message('loadBalancer', LOAD_BALANCER) })),
});

const HINT = numbered({ 1: kept(shared('name')) });

const ENDPOINT = numbered({
  1: list(text('addresses')),
  2: message('conditions', numbered({ 1: bool('ready'), 2: bool('serving'), 3: bool('terminating') })),
  4: message('targetRef', numbered({ 1: shared('kind'), 3: text('name') })),
  6: kept(shared('nodeName')),
  7: kept(shared('zone')),
  8: message('hints', numbered({ 1: list(message('forZones', HINT)), 2: list(message('forNodes', HINT)) })),
});

const ENDPOINT_PORT = numbered({
  1: kept(shared('name')),
  2: kept(shared('protocol')),
  3: kept(int('port')),
});

const ENDPOINT_SLICE = numbered({
  1: message('metadata', OBJECT_META),
  2: list(message('endpoints', ENDPOINT)),
  3: list(message('ports', ENDPOINT_PORT)),
  4: kept(shared('addressType')),
});

const NODE_ADDRESS = numbered({ 1: kept(shared('type')), 2: kept(text('address')) });

const NODE = numbered({
  1: message('metadata', OBJECT_META),
  2: message(
    'spec',
    numbered({
      1: text('podCIDR'),
      5: list(message('taints', numbered({ 1: kept(text('key')) }))),
      7: list(text('podCIDRs')),
    }),
  ),
  3: message('status', numbered({ 5: list(message('addresses', NODE_ADDRESS)) })),
});

const SERVICE_CIDR = numbered({
  1: message('metadata', OBJECT_META),
  2: message('spec', numbered({ 1: list(text('cidrs')) })),
});

/** What is listed and watched. */
export const OBJECTS: Readonly<Record<string, MessageTable>> = {
  Service: SERVICE,
  EndpointSlice: ENDPOINT_SLICE,
  Node: NODE,
  ServiceCIDR: SERVICE_CIDR,
};

export const LIST_META = numbered({ 2: text('resourceVersion'), 3: text('continue') });

const CAUSE = numbered({ 1: text('reason'), 2: text('message') });

export const STATUS = numbered({
  3: text('message'),
  4: text('reason'),
  5: message('details', numbered({ 4: list(message('causes', CAUSE)), 5: int('retryAfterSeconds') })),
  6: int('code'),
});

export const TYPE_META = numbered({ 2: text('kind') });
