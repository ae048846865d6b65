/** What a server, or something before it, may answer; and the changes of the cluster that go on meanwhile. */
import { type Fault, StatusError, type TestApiServer } from '../../support/apiServer/index.ts';
import { type StatusOptions, statusObject } from '../../support/apiServer/status.ts';
import { service, slice } from './objects.ts';

export const ALWAYS = Number.POSITIVE_INFINITY;
export const JSON_TYPE = 'application/json';
export const PROTOBUF = 'application/vnd.kubernetes.protobuf';

export function status(code: number, options: StatusOptions = {}): Fault {
  return { kind: 'status', error: new StatusError(code, options) };
}

export function answer(body: string, contentType = JSON_TYPE, code = 200): Fault {
  return { kind: 'answer', code, contentType, body };
}

/** The answer begins, and its first event is an error. */
export function inStream(code: number, options: StatusOptions = {}): Fault {
  return answer(`${JSON.stringify({ type: 'ERROR', object: statusObject(code, options) })}\n`);
}

export const BUSY = status(429, { reason: 'TooManyRequests', retryAfter: '7' });

export const AT_FIRST = [
  '+ EndpointSlice shop/web-1',
  '+ EndpointSlice shop/web-2',
  '+ Node node1',
  '+ Service shop/db',
  '+ Service shop/web',
  'synced',
];

export function change(server: TestApiServer): void {
  server.put(service('new', { clusterIP: '10.96.0.20' }), slice('web-1', ['10.0.0.7']));
  server.delete('Service', 'shop/db');
}

export const CHANGED = ['+ Service shop/new', '- Service shop/db', '~ EndpointSlice shop/web-1'];
