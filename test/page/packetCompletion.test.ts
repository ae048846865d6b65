/** What the fields propose, and which questions the page begins with: from what exists. */
import { describe, expect, test } from 'vitest';
import { destinationChoices, sourceChoices } from '../../page/src/views/packetCompletion.ts';
import { examplesOf } from '../../page/src/views/packetExamples.ts';
import { isPacketTouched } from '../../page/src/views/packetTouch.ts';
import { apiPage } from '../../src/daemon/api/routes.ts';
import { questionRoutes } from '../../src/daemon/api/questions.ts';
import { QuestionTurns } from '../../src/daemon/api/turns.ts';
import { explainPackets } from '../../src/explain/packet.ts';
import { serviceRows } from '../../src/explain/rows.ts';
import type { WatchEvent } from '../../src/explain/types.ts';
import { systemClock } from '../../src/time/systemClock.ts';
import { loadManifests } from '../../src/sources/manifests/store.ts';
import { askPage } from '../daemon/api/ask.ts';
import { subjectOf } from '../explain/given.ts';
import { NODE1, scenario } from '../scenarios/scenario.ts';

const manifests = await loadManifests(['examples']);
const { settings } = scenario('examples', [], '');
const subject = subjectOf({ manifests, settings, host: NODE1 });
const turns = new QuestionTurns({ clock: systemClock, isSyncing: () => false });
const page = apiPage(questionRoutes({ subject: () => subject, turns }), (error) => {
  throw error;
});
const asked: string[] = [];

async function ask<T>(path: string): Promise<readonly T[]> {
  asked.push(path);
  const { status, text } = await askPage(page, path);
  expect([path, status]).toEqual([path, 200]);
  return JSON.parse(text) as readonly T[];
}

describe('sources', () => {
  const values = async (text: string): Promise<readonly string[]> =>
    (await sourceChoices(text, ask)).map(({ value }) => value);

  test.each([
    ['', ['outside', 'node', 'pod/']],
    ['o', ['outside']],
    ['po', ['pod/']],
    ['pod/', ['pod/shop/']],
    ['pod/sh', ['pod/shop/']],
    ['pod/x', []],
    ['pod/shop/', ['pod/shop/pod-a', 'pod/shop/pod-b', 'pod/shop/pod-c', 'pod/shop/pod-d']],
    ['pod/shop/pod-c', ['pod/shop/pod-c']],
    ['pod/other/', []],
    ['10.244.', []],
  ])('%s', async (text, expected) => expect(await values(text)).toEqual(expected));

  test('a beginning says that more follows', async () => {
    expect((await sourceChoices('pod/', ask)).map(({ isPartial }) => isPartial)).toEqual([true]);
  });
});

describe('destinations', () => {
  const values = async (text: string): Promise<readonly string[]> =>
    (await destinationChoices(text, ask)).map(({ value }) => value);

  test.each([
    ['shop/c', ['svc/shop/cart', 'svc/shop/catalog']],
    ['svc/shop/c', ['svc/shop/cart', 'svc/shop/catalog']],
    ['svc/shop/dns:', ['svc/shop/dns:53/udp', 'svc/shop/dns:53']],
    ['svc/shop/web', ['svc/shop/web:80', '203.0.113.10:80', '10.96.0.20:80']],
    ['svc/shop/none:', []],
  ])('%s', async (text, expected) => expect(await values(text)).toEqual(expected));

  test('all services, where nothing is typed', async () => {
    expect(await values('')).toHaveLength(7);
    expect(await values('svc')).toHaveLength(7);
  });

  test('an address is not asked for', async () => {
    asked.length = 0;
    expect(await values('10.96.')).toEqual([]);
    expect(await values('[fd00')).toEqual([]);
    expect(asked).toEqual([]);
  });
});

describe('examples', () => {
  const rows = [...serviceRows(subject)];

  test('three, of the cluster, that can be answered', async () => {
    const examples = examplesOf(rows, { name: 'shop/pod-a', service: 'shop/api' });
    expect(examples.map(({ title, question }) => [title, question.from, question.to])).toEqual([
      ['A client outside the cluster dials shop/web', 'outside', '203.0.113.10:80'],
      ['The pod shop/pod-a dials shop/api', 'pod/shop/pod-a', 'svc/shop/api:80'],
      ['This node dials shop/idle: no endpoints', 'node', 'svc/shop/idle:80'],
    ]);
    for (const { question } of examples) expect(await explainPackets(subject, question)).toHaveLength(1);
  });

  test('of one service, one or two; of none, none', () => {
    expect(examplesOf(rows.slice(0, 1), undefined).length).toBeGreaterThan(0);
    expect(examplesOf([], undefined)).toEqual([]);
  });
});

describe('an answer is old', () => {
  const change = (service: string, cause: string): WatchEvent => ({
    kind: 'change',
    id: 1,
    family: 'IPv4',
    service,
    causes: [cause],
    effects: [],
    seenAt: 0,
    plannedAt: 0,
  });
  const foreign = (family: 'IPv4' | 'IPv6'): WatchEvent => ({
    kind: 'foreign',
    at: 0,
    family,
    objects: [],
    program: 'nft',
  });

  test('when its service changes, or the rules of its family', async () => {
    const answers = await explainPackets(subject, { from: 'node', to: '10.96.0.10:80' });
    const isTouched = (event: WatchEvent): boolean => isPacketTouched(event, '10.96.0.10:80', answers);
    expect(isTouched(change('shop/api', 'EndpointSlice shop/api-1: changed'))).toBe(true);
    expect(isTouched(change('shop/web', 'Service shop/web changed'))).toBe(false);
    expect(isTouched(foreign('IPv4'))).toBe(true);
    expect(isTouched(foreign('IPv6'))).toBe(false);
    const refused = { kind: 'refused', at: 0, family: 'IPv4', error: 'EEXIST' } as const;
    expect(isTouched({ ...refused, servicePort: 'shop/api:http/TCP' })).toBe(true);
    expect(isTouched({ ...refused, servicePort: 'shop/apis:http/TCP' })).toBe(false);
    expect(isTouched({ kind: 'conntrack', at: 0, family: 'IPv4', deleted: 1, ms: 1 })).toBe(false);
  });

  test('where nobody answers, when a Service may begin to', async () => {
    const answers = await explainPackets(subject, { from: 'node', to: '10.96.0.99:80' });
    const isTouched = (event: WatchEvent): boolean => isPacketTouched(event, '10.96.0.99:80', answers);
    expect(isTouched(change('shop/new', 'Service shop/new added'))).toBe(true);
    expect(isTouched(change('shop/new', 'EndpointSlice shop/new-1 added'))).toBe(false);
  });

  test('where the Service that is asked for was not there', () => {
    const event = change('shop/later', 'EndpointSlice shop/later-1 added');
    expect(isPacketTouched(event, 'svc/shop/later:80', [])).toBe(true);
    expect(isPacketTouched(event, 'svc/shop/later2:80', [])).toBe(false);
  });
});
