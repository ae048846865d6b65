import { beforeEach, describe, expect, test } from 'vitest';
import { type Denial, NamedDenials } from '../../src/daemon/unserved.ts';

const WEB = 'shop/web:http';
const MAIL = 'shop/mail:smtp';
const FIRST: Denial = { key: '203.0.113.1/TCP/80', owner: 'shop/old:http' };
const SECOND: Denial = { key: '203.0.113.2/TCP/80', owner: 'shop/old:http' };

describe('what a service port is denied', () => {
  let told: NamedDenials;
  beforeEach(() => {
    told = new NamedDenials();
  });

  test('is told once', () => {
    expect(told.added(WEB, [FIRST])).toEqual([FIRST]);
    expect(told.added(WEB, [FIRST])).toEqual([]);
    expect(told.added(WEB, [FIRST, SECOND])).toEqual([SECOND]);
  });

  test('is told to each that is denied it', () => {
    told.added(WEB, [FIRST]);
    expect(told.added(MAIL, [FIRST])).toEqual([FIRST]);
  });

  test('is told again where another has the address now', () => {
    told.added(WEB, [FIRST]);
    const denial = { ...FIRST, owner: MAIL };
    expect(told.added(WEB, [denial])).toEqual([denial]);
  });

  test('is forgotten once it is over, and told again when it comes back', () => {
    told.added(WEB, [FIRST, SECOND]);
    told.added(MAIL, [FIRST]);
    expect(told.added(WEB, [SECOND])).toEqual([]);
    expect(told.added(WEB, [FIRST, SECOND])).toEqual([FIRST]);
    expect(told.added(WEB, [])).toEqual([]);
    expect(told.added(WEB, [SECOND])).toEqual([SECOND]);
    expect(told.added(MAIL, [FIRST])).toEqual([]);
  });
});
