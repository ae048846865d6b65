/** Routes that are answered from a subject, without a daemon. */
import { expect, test } from 'vitest';
import { apiPage } from '../../../src/daemon/api/routes.ts';
import { questionRoutes } from '../../../src/daemon/api/questions.ts';
import { QuestionTurns } from '../../../src/daemon/api/turns.ts';
import type { Subject } from '../../../src/explain/subject.ts';
import type { ServiceExplanation, ServiceObjects, ServiceRow } from '../../../src/explain/types.ts';
import type { KernelReader } from '../../../src/modes/kernelReader.ts';
import { systemClock } from '../../../src/time/systemClock.ts';
import { clusterOf } from '../../explain/given.ts';
import { service, slice, slice6 } from '../../scenarios/objects.ts';
import { askPage } from './ask.ts';

const OBJECTS = [
  service('web', { clusterIP: '10.96.1.1 fd00:96::1', ports: 'http=80' }),
  slice('web', 'http=8080', 'pod-a', 'pod-c'),
  slice6('web', 'http=8080', 'pod-a'),
  service('db', { clusterIP: '10.96.1.2' }),
  slice('db', '5432', 'pod-d'),
  service('idle', { clusterIP: '10.96.1.3' }),
];

let subject: Subject = clusterOf(OBJECTS);
const turns = new QuestionTurns({ clock: systemClock, isSyncing: () => false });
const page = apiPage(questionRoutes({ subject: () => subject, turns }), (error) => {
  throw error;
});

const ask = (path: string) => askPage(page, path);

async function answerTo<T>(path: string): Promise<T> {
  const { status, text } = await ask(path);
  expect([status, text]).toEqual([200, text]);
  return JSON.parse(text) as T;
}

const namesIn = (rows: readonly ServiceRow[]): readonly string[] => rows.map((row) => row.service);

test('rows of all services, and of those that are named', async () => {
  expect(namesIn(await answerTo('/v1/services'))).toEqual(['default/web', 'default/db', 'default/idle']);
  const named = '/v1/services?service=default/idle&service=default/none&service=default/web&service=x';
  const rows = await answerTo<readonly ServiceRow[]>(named);
  expect(rows.map(({ service: name, state }) => [name, state])).toEqual([
    ['default/idle', 'no endpoints'],
    ['default/web', 'ok'],
  ]);
});

test('not of too many, and not together with what says something else', async () => {
  const many = Array.from({ length: 201 }, (_, index) => `service=shop/s${index}`).join('&');
  expect(await ask(`/v1/services?${many}`)).toMatchObject({
    status: 400,
    text: expect.stringContaining('201 services are asked for, of at most 200'),
  });
  expect((await ask('/v1/services?service=a/b&format=table')).status).toBe(400);
});

test('a table, of each subject its own', async () => {
  const table = async (): Promise<readonly string[]> =>
    (await ask('/v1/services?format=table')).text.split('\n').map((line) => line.split('\t')[0] ?? '');
  const all = ['SERVICE', 'default/db', 'default/idle', 'default/web', ''];
  expect(await table()).toEqual(all);
  expect(await table()).toEqual(all);
  subject = clusterOf(OBJECTS.slice(0, 3));
  expect(await table()).toEqual(['SERVICE', 'default/web', '']);
  subject = clusterOf(OBJECTS);
  expect(await table()).toEqual(all);
});

test('names of services that have an endpoint', async () => {
  const names = (endpoint: string): Promise<readonly string[]> =>
    answerTo(`/v1/names?kind=services&endpoint=${endpoint}`);
  expect(await names('10.244.')).toEqual(['default/db', 'default/web']);
  expect(await names('10.244.1.')).toEqual(['default/web']);
  expect(await names('fd00:244:')).toEqual(['default/web']);
  expect(await names('10.96.')).toEqual([]);
  expect(await answerTo('/v1/names?kind=services&prefix=default/d&endpoint=10.')).toEqual(['default/db']);
  expect((await ask('/v1/names?kind=nodes&endpoint=10.')).status).toBe(400);
});

test('objects of a service', async () => {
  const { service: whole, endpointSlices } = await answerTo<ServiceObjects>('/v1/objects/default/web');
  expect([whole.kind, endpointSlices.length]).toEqual(['Service', 2]);
  expect((await ask('/v1/objects/default/wep')).text).toContain('did you mean default/web?');
});

test('what an endpoint got is read before the answer, and says when', async () => {
  const before = subject;
  let reads = 0;
  const countConnections = async (): Promise<void> => void (await Promise.resolve(), reads++);
  const counting = apiPage(questionRoutes({ subject: () => subject, turns, countConnections }), (error) => {
    throw error;
  });
  subject = { ...before, connectionsOf: () => ({ connections: reads, countedAt: 7 }) };
  const { text } = await askPage(counting, '/v1/endpoints/default/db');
  expect(JSON.parse(text)).toMatchObject([{ pod: 'pod-d', connections: 1, countedAt: 7 }]);
  subject = before;
});

test('a service with what the kernel does, and the plan alone', async () => {
  const kernel: KernelReader = {
    walk: () => Promise.resolve({ outcomes: [], notes: ['walked'] }),
    compare: () => Promise.resolve([]),
    dump: () => Promise.resolve(undefined),
  };
  const before = subject;
  subject = { ...before, families: before.families.map((family) => ({ ...family, kernel })) };
  const notes = async (query: string): Promise<ReadonlySet<string | undefined>> => {
    const { ports } = await answerTo<ServiceExplanation>(`/v1/explain/default/web${query}`);
    return new Set(ports.flatMap(({ packets }) => packets.map((packet) => packet.kernel?.notes[0])));
  };
  expect(await notes('')).toEqual(new Set(['walked']));
  expect(await notes('?kernel=none')).toEqual(new Set([undefined]));
  expect((await ask('/v1/explain/default/web?kernel=all')).status).toBe(400);
  subject = before;
});

test('names of the pods in a namespace', async () => {
  expect(await answerTo('/v1/names?kind=endpoints&namespace=default&prefix=pod-')).toEqual([
    'pod-a',
    'pod-c',
    'pod-d',
  ]);
  expect(await answerTo('/v1/names?kind=endpoints&namespace=def')).toEqual([]);
});

test.each([
  ['from=nobody&to=10.96.1.1:80', 'from'],
  ['from=pod/default/none&to=10.96.1.1:80', 'from'],
  ['from=fd00:244:1::11&to=10.96.1.1:80', 'from'],
  ['from=node&to=10.96.1.1', 'to'],
  ['from=node&to=svc/default/none', 'to'],
  ['from=node&to=svc/default/web:81', 'to'],
])('what is wrong with %s is said of its part', async (query, parameter) => {
  const { status, text } = await ask(`/v1/explain?${query}`);
  expect(status).toBeGreaterThanOrEqual(400);
  expect(JSON.parse(text)).toMatchObject({ error: { parameter } });
});
