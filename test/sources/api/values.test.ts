/** Values of headers and settings. */
import { expect, it } from 'vitest';
import { encodingOf, wantedEncoding } from '../../../src/sources/api/encoding.ts';
import { readRetryAfter } from '../../../src/sources/api/failure.ts';
import { isOlder } from '../../../src/sources/api/resourceVersion.ts';
import { PROTOBUF } from './faults.ts';

it.each([
  [PROTOBUF, '', 'protobuf'],
  ['application/json', '', 'json'],
  ['', '', 'json'],
  ['foo', '', 'json'],
  [PROTOBUF, 'application/json', 'json'],
  ['application/json', `${PROTOBUF},application/json`, 'protobuf'],
  ['application/json', `application/json, ${PROTOBUF}`, 'protobuf'],
  ['application/json', `application/json, ${PROTOBUF};q=0.9`, 'json'],
  ['application/json', ` ${PROTOBUF.toUpperCase()} ;q=1`, 'protobuf'],
  [PROTOBUF, `${PROTOBUF};q=0`, 'json'],
  [PROTOBUF, `${PROTOBUF};q=x`, 'json'],
])('contentType %j, acceptContentTypes %j: %s', (contentType, accept, expected) => {
  expect(wantedEncoding(contentType, accept)).toBe(expected);
});

it.each([
  [PROTOBUF, 'protobuf'],
  [`${PROTOBUF};stream=watch`, 'protobuf'],
  ['application/json;charset=utf-8', 'json'],
  ['text/html', 'json'],
  [undefined, 'json'],
])('an answer with content type %s is read as %s', (type, expected) => {
  expect(encodingOf(type)).toBe(expected);
});

it.each([
  [undefined, undefined],
  ['', undefined],
  ['soon', undefined],
  ['0', 0],
  [' 7 ', 7000],
  ['Fri, 01 May 2026 12:00:30 GMT', 30_000],
  ['Fri, 01 May 2026 11:59:00 GMT', 0],
  ['86400', 60_000],
  ['99999999999999999999', 60_000],
])('Retry-After %j: %s ms', (header, expected) => {
  expect(readRetryAfter(header, () => Date.parse('2026-05-01T12:00:00Z'))).toBe(expected);
});

it.each([
  ['9', '10', true],
  ['10', '9', false],
  ['10', '10', false],
  ['99999999999999999998', '99999999999999999999', true],
  ['a', 'b', false],
  ['', '1', false],
  ['007', '8', false],
])('version %s is older than %s: %s', (one, other, expected) => {
  expect(isOlder(one, other)).toBe(expected);
});
