/** Events as the API server takes them (events.k8s.io/v1). */
import { messageOf } from '../../errors.ts';
import type { ObjectKey } from '../../model/objects.ts';

interface ObjectReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  /** Absent for a Node. */
  readonly namespace?: string;
}

export interface EventReport {
  readonly reason: string;
  readonly action: string;
  readonly type: 'Normal' | 'Warning';
  readonly regarding: ObjectReference;
  readonly note: string;
}

export interface EventSeries {
  /** How often the same has happened; 2 or more. */
  readonly count: number;
  readonly lastObservedTime: string;
}

export interface EventBody extends EventReport {
  readonly apiVersion: 'events.k8s.io/v1';
  readonly kind: 'Event';
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly eventTime: string;
  readonly reportingController: string;
  readonly reportingInstance: string;
  readonly series?: EventSeries;
}

const CONTROLLER = 'kube-proxy';
/** What the API server takes of each; longer ones are refused as a whole. */
const MAX_NOTE_BYTES = 1024;
const MAX_INSTANCE = 128;
const MAX_NAME = 253;

interface EventOrigin {
  readonly nodeName: string;
  /** Milliseconds since the epoch. */
  readonly time: number;
  /** From 0 up to, but not including, 1: so that two events of one millisecond have two names. */
  readonly random: number;
}

export function eventBody(report: EventReport, origin: EventOrigin, series?: EventSeries): EventBody {
  const { nodeName, time } = origin;
  const { reason, action, type, regarding } = report;
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    // An object without a namespace has its events in `default`.
    metadata: { name: eventName(origin), namespace: regarding.namespace || 'default' },
    eventTime: microTime(time),
    reportingController: CONTROLLER,
    reportingInstance: `${CONTROLLER}-${nodeName}`.slice(0, MAX_INSTANCE),
    action,
    reason,
    regarding,
    note: shorten(report.note),
    type,
    ...(series && { series }),
  };
}

export function eventsPath(namespace: string, name?: string): string {
  const path = `/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(namespace)}/events`;
  return name === undefined ? path : `${path}/${encodeURIComponent(name)}`;
}

/** Whether two reports are one event that happened twice. The note does not count: it often holds a number. */
export function seriesKey({ reason, action, type, regarding }: EventReport): string {
  const { apiVersion, kind, namespace, name } = regarding;
  return JSON.stringify([reason, action, type, apiVersion, kind, namespace, name]);
}

/** `2026-11-15T04:17:09.123000Z` */
export function microTime(time: number): string {
  return new Date(time).toISOString().replace('Z', '000Z');
}

/** `node-a.18a2f3c4d5e6f708`: nanoseconds since the epoch, as other controllers write it. */
function eventName({ nodeName, time, random }: EventOrigin): string {
  const nanoseconds = BigInt(Math.floor(time)) * 1_000_000n + BigInt(Math.floor(random * 1_000_000));
  const suffix = `.${nanoseconds.toString(16)}`;
  return `${nodeName.slice(0, MAX_NAME - suffix.length).replace(/[-.]+$/, '')}${suffix}`;
}

function shorten(note: string): string {
  const bytes = new TextEncoder().encode(note);
  if (bytes.length <= MAX_NOTE_BYTES) return note;
  const ellipsis = '…';
  // A character that is cut in the middle decodes to a mark that stands for nothing.
  const kept = new TextDecoder().decode(bytes.subarray(0, MAX_NOTE_BYTES - 3)).replace(/\uFFFD$/, '');
  return `${kept}${ellipsis}`;
}

/** The events that operators know from kube-proxy, and ours. */
export function starting(nodeName: string): EventReport {
  return { ...aboutNode(nodeName, 'Starting', 'StartKubeProxy', ''), type: 'Normal' };
}

export function failedToStart(
  nodeName: string,
  reason: 'FailedToStartProxierHealthcheck' | 'FailedToStartMetricServer',
  error: unknown,
): EventReport {
  return aboutNode(nodeName, reason, 'StartKubeProxy', messageOf(error));
}

/** Another program has a port that Junction was asked to hold. */
export function failedToHoldPort(nodeName: string, note: string): EventReport {
  return aboutNode(nodeName, 'FailedToHoldPort', 'Listen', note);
}

export function failedToStartServiceHealthcheck(
  nodeName: string,
  service: ObjectKey,
  port: number,
  error: unknown,
): EventReport {
  const note = `node ${nodeName} failed to start healthcheck "${service}" on port ${port}: ${messageOf(error)}`;
  return aboutService(service, 'FailedToStartServiceHealthcheck', 'Listen', note);
}

/** An external or load-balancer IP of a Service that this node must not serve. */
export function addressNotServed(nodeName: string, service: ObjectKey, reason: string): EventReport {
  const note = `node ${nodeName} does not serve an address of it: ${reason}`;
  return aboutService(service, 'AddressNotServed', 'Serve', note);
}

/** Something of a Service is beyond what one Service may have on a node. */
export function serviceTooLarge(
  nodeName: string,
  service: ObjectKey,
  messages: readonly string[],
): EventReport {
  const note = `node ${nodeName} serves a part of it: ${messages.join('; ')}`;
  return aboutService(service, 'ServiceTooLarge', 'Serve', note);
}

/** Without a uid: what is known of the node at the start is its name. */
function aboutNode(name: string, reason: string, action: string, note: string): EventReport {
  return { reason, action, type: 'Warning', regarding: { apiVersion: 'v1', kind: 'Node', name }, note };
}

function aboutService(service: ObjectKey, reason: string, action: string, note: string): EventReport {
  const [namespace = '', name = ''] = service.split('/');
  const regarding = { apiVersion: 'v1', kind: 'Service', namespace, name };
  return { reason, action, type: 'Warning', regarding, note };
}
