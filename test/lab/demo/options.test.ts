import { describe, expect, test } from 'vitest';
import { HELP, parseOptions } from '../../../lab/demo/options.ts';

describe('an option that npm kept, because the "--" was forgotten', () => {
  test.each([
    [{ npm_config_mode: 'true' }, ['ipvs'], 'npm start -- --mode ipvs'],
    [{ npm_config_mode: 'ipvs', npm_config_once: 'true' }, [], 'npm start -- --mode ipvs --once'],
    [{ npm_config_mode: 'true', npm_config_once: 'true' }, ['ipvs'], 'npm start -- --mode ipvs --once'],
    [{ npm_config_once: 'true' }, ['--layout', 'classic'], 'npm start -- --once --layout classic'],
  ] as const)('%j %j', (env, args, wanted) => {
    const message = `npm keeps options that come before "--" for itself. Did you mean: ${wanted}`;
    expect(parseOptions(args, { ...env, npm_lifecycle_event: 'start' })).toEqual({
      kind: 'mistake',
      message,
    });
  });
});

test('each mode, and what it is by default', () => {
  const modeOf = (...args: readonly string[]): unknown => {
    const parsed = parseOptions([...args, '--manifests', '.'], {});
    return parsed.kind === 'run' ? parsed.options.mode : parsed;
  };
  expect(modeOf()).toBe('iptables');
  expect(modeOf('--mode', 'nftables', '--once')).toBe('nftables');
  expect(modeOf('--mode=ipvs', '--variant', 'legacy')).toBe('ipvs');
  expect(modeOf('--mode=ipvs', '--mode=nftables')).toBe('nftables');
});

test('the help fits a terminal of 80 columns', () => {
  for (const line of HELP.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
});

test('an image: one that is there, and not for the mode ipvs', () => {
  const parse = (...args: readonly string[]): unknown => parseOptions([...args, '--manifests', '.'], {});
  expect(parse('--image', '.')).toMatchObject({ kind: 'run', options: { image: '.' } });
  expect(parse('--image', 'nothing.oci.tar')).toEqual({
    kind: 'mistake',
    message: '--image nothing.oci.tar does not exist; npm run image writes one to release/',
  });
  expect(parse('--image', '.', '--mode', 'ipvs')).toMatchObject({
    kind: 'mistake',
    message: expect.stringContaining('--image is not for --mode ipvs'),
  });
});
