import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Retries } from '../../src/modes/nftables/retries.ts';
import type { Family } from '../../src/model/ip.ts';

describe('retries', () => {
  let ran: Family[] = [];
  let retries: Retries;
  beforeEach(() => {
    vi.useFakeTimers();
    ran = [];
    retries = new Retries((family) => ran.push(family));
  });
  afterEach(() => void vi.useRealTimers());

  test('come once, at the soonest time that was asked for', () => {
    retries.ask('IPv4', 2000);
    retries.ask('IPv4', 1000);
    retries.ask('IPv4', 3000);
    vi.advanceTimersByTime(999);
    expect(ran).toEqual([]);
    vi.advanceTimersByTime(10_000);
    expect(ran).toEqual(['IPv4']);
  });

  test('of each family by themselves, and again when asked again', () => {
    retries.ask('IPv4', 1000);
    retries.ask('IPv6', 500);
    vi.advanceTimersByTime(1000);
    expect(ran).toEqual(['IPv6', 'IPv4']);
    retries.ask('IPv6', 500);
    vi.advanceTimersByTime(500);
    expect(ran).toEqual(['IPv6', 'IPv4', 'IPv6']);
  });

  test('not after the end', () => {
    retries.ask('IPv4', 1000);
    retries.close();
    vi.advanceTimersByTime(5000);
    expect(ran).toEqual([]);
  });
});
