import { describe, expect, it } from 'vitest';
import {
  eventBody,
  type EventReport,
  seriesKey,
  failedToStart,
  starting,
} from '../../../src/telemetry/events/event.ts';

const TIME = Date.UTC(2026, 10, 15, 4, 17, 9, 123);
const origin = { nodeName: 'node-a', time: TIME, random: 0.5 };

describe('an event', () => {
  it('has the shape that the API server takes', () => {
    expect(eventBody(starting('node-a'), origin)).toEqual({
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: 'node-a.18e81ce6cd88e7e0', namespace: 'default' },
      eventTime: '2026-11-15T04:17:09.123000Z',
      reportingController: 'kube-proxy',
      reportingInstance: 'kube-proxy-node-a',
      action: 'StartKubeProxy',
      reason: 'Starting',
      regarding: { apiVersion: 'v1', kind: 'Node', name: 'node-a' },
      note: '',
      type: 'Normal',
    });
  });

  it('is named for the nanosecond', () => {
    const { name } = eventBody(starting('node-a'), origin).metadata;
    expect(BigInt(`0x${name.split('.')[1]}`)).toBe(BigInt(TIME) * 1_000_000n + 500_000n);
  });

  it('keeps within what the API server takes of names and notes', () => {
    const nodeName = `${'n'.repeat(230)}.${'m'.repeat(20)}`;
    const note = `${'x'.repeat(1019)}${'é'.repeat(100)}`;
    const body = eventBody({ ...starting(nodeName), note }, { ...origin, nodeName });
    expect(body.metadata.name).toHaveLength(253);
    expect(body.metadata.name).toMatch(/^n{230}\.m+\.[0-9a-f]{16}$/);
    expect(body.reportingInstance).toHaveLength(128);
    expect(body.note).toBe(`${'x'.repeat(1019)}é…`);
    expect(Buffer.byteLength(body.note)).toBe(1024);
  });

  it('does not cut a character in two', () => {
    const { note } = eventBody({ ...starting('a'), note: 'é'.repeat(600) }, origin);
    expect(note).toBe(`${'é'.repeat(510)}…`);
  });
});

describe('the events that operators know', () => {
  const error = new Error('address in use');
  it.each<readonly [string, EventReport]>([
    ['Starting StartKubeProxy Normal Node', starting('a')],
    [
      'FailedToStartProxierHealthcheck StartKubeProxy Warning Node',
      failedToStart('a', 'FailedToStartProxierHealthcheck', error),
    ],
    [
      'FailedToStartMetricServer StartKubeProxy Warning Node',
      failedToStart('a', 'FailedToStartMetricServer', error),
    ],
  ])('%s', (text, { reason, action, type, regarding }) => {
    expect([reason, action, type, regarding.kind].join(' ')).toBe(text);
  });

  it('carry the error', () => {
    expect(failedToStart('a', 'FailedToStartMetricServer', error).note).toBe('address in use');
    expect(failedToStart('a', 'FailedToStartProxierHealthcheck', 'plain text').note).toBe('plain text');
  });

  it('are the same when only the note differs', () => {
    const one = failedToStart('a', 'FailedToStartMetricServer', 'x');
    expect(seriesKey(one)).toBe(seriesKey(failedToStart('a', 'FailedToStartMetricServer', 'y')));
    expect(seriesKey(one)).not.toBe(seriesKey(failedToStart('b', 'FailedToStartMetricServer', 'x')));
  });
});
