import { beforeEach, describe, expect, test } from 'vitest';
import { type Denial, ToldDenials } from '../../src/daemon/toldDenials.ts';

const WEB = 'shop/web:http';
const MAIL = 'shop/mail:smtp';
const FIRST: Denial = { key: '203.0.113.1/TCP/80', owner: 'shop/old:http' };
const SECOND: Denial = { key: '203.0.113.2/TCP/80', owner: 'shop/old:http' };

describe('what a service port is denied', () => {
  let told: ToldDenials;
  beforeEach(() => {
    told = new ToldDenials();
  });

  test('is told once', () => {
    expect(told.news(WEB, [FIRST])).toEqual([FIRST]);
    expect(told.news(WEB, [FIRST])).toEqual([]);
    expect(told.news(WEB, [FIRST, SECOND])).toEqual([SECOND]);
  });

  test('is told to each that is denied it', () => {
    told.news(WEB, [FIRST]);
    expect(told.news(MAIL, [FIRST])).toEqual([FIRST]);
  });

  test('is told again where another has the address now', () => {
    told.news(WEB, [FIRST]);
    const denial = { ...FIRST, owner: MAIL };
    expect(told.news(WEB, [denial])).toEqual([denial]);
  });

  test('is forgotten once it is over, and told again when it comes back', () => {
    told.news(WEB, [FIRST, SECOND]);
    told.news(MAIL, [FIRST]);
    expect(told.news(WEB, [SECOND])).toEqual([]);
    expect(told.news(WEB, [FIRST, SECOND])).toEqual([FIRST]);
    expect(told.news(WEB, [])).toEqual([]);
    expect(told.news(WEB, [SECOND])).toEqual([SECOND]);
    expect(told.news(MAIL, [FIRST])).toEqual([]);
  });
});
