/** The events that operators know from kube-proxy. */
import type { EventReport, ObjectReference } from './event.ts';

export function starting(nodeName: string): EventReport {
  return { ...atStart(nodeName), reason: 'Starting', type: 'Normal', note: '' };
}

export function failedToStartProxierHealthcheck(nodeName: string, error: unknown): EventReport {
  return {
    ...atStart(nodeName),
    reason: 'FailedToStartProxierHealthcheck',
    type: 'Warning',
    note: text(error),
  };
}

export function failedToStartMetricServer(nodeName: string, error: unknown): EventReport {
  return { ...atStart(nodeName), reason: 'FailedToStartMetricServer', type: 'Warning', note: text(error) };
}

/** Somebody else has a port that Junction was asked to hold. */
export function failedToHoldPort(nodeName: string, message: string): EventReport {
  return {
    reason: 'FailedToHoldPort',
    action: 'Listen',
    type: 'Warning',
    regarding: nodeReference(nodeName),
    note: message,
  };
}

export interface ServiceHealthcheckFailure {
  readonly nodeName: string;
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
  readonly error: unknown;
}

export function failedToStartServiceHealthcheck(failure: ServiceHealthcheckFailure): EventReport {
  const { nodeName, namespace, name, port, error } = failure;
  return {
    reason: 'FailedToStartServiceHealthcheck',
    action: 'Listen',
    type: 'Warning',
    regarding: { apiVersion: 'v1', kind: 'Service', namespace, name },
    note: `node ${nodeName} failed to start healthcheck "${namespace}/${name}" on port ${port}: ${text(error)}`,
  };
}

/** An external or load-balancer IP of a Service that this node must not answer at. */
export function addressNotServed(
  nodeName: string,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  reason: string,
): EventReport {
  return {
    reason: 'AddressNotServed',
    action: 'Serve',
    type: 'Warning',
    regarding: { apiVersion: 'v1', kind: 'Service', namespace, name },
    note: `node ${nodeName} does not serve an address of it: ${reason}`,
  };
}

/** Something of a Service is beyond what one Service may have on a node. */
export function serviceTooLarge(
  nodeName: string,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  messages: readonly string[],
): EventReport {
  return {
    reason: 'ServiceTooLarge',
    action: 'Serve',
    type: 'Warning',
    regarding: { apiVersion: 'v1', kind: 'Service', namespace, name },
    note: `node ${nodeName} serves a part of it: ${messages.join('; ')}`,
  };
}

function atStart(nodeName: string): Pick<EventReport, 'action' | 'regarding'> {
  return { action: 'StartKubeProxy', regarding: nodeReference(nodeName) };
}

/** Without a uid: what is known of the node at the start is its name. */
export function nodeReference(name: string): ObjectReference {
  return { apiVersion: 'v1', kind: 'Node', name };
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
