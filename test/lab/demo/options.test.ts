import { expect, test } from 'vitest';
import { HELP, parseOptions } from '../../../lab/demo/options.ts';

const parsed = (...args: readonly string[]): unknown => {
  const result = parseOptions(['--manifests', '.', ...args], {});
  return result.kind === 'mistake' ? result.message : result;
};

test.each([
  [[], { mode: 'iptables', layout: 'current', variant: 'auto', once: false }],
  [['--mode', 'nftables', '--once'], { mode: 'nftables', once: true }],
  [['--mode=ipvs', '--variant', 'legacy'], { mode: 'ipvs', variant: 'legacy' }],
  [['--image', '.'], { image: '.' }],
])('%j', (args, options) => {
  expect(parsed(...args)).toMatchObject({ kind: 'run', options });
});

test.each([
  [['--layout', 'modern'], '--layout "modern" must be one of current, classic'],
  [
    ['--mode', 'nftable'],
    '--mode "nftable" must be one of iptables, ipvs, nftables (did you mean nftables?)',
  ],
  [['--mode=IPVS'], '(did you mean ipvs?)'],
  [['--mode', 'nftables', '--variant', 'nft'], '--variant is not for --mode nftables'],
  [['--mode', 'ipvs', '--layout', 'classic'], '--layout is for --mode iptables'],
  [['ipvs'], "Unexpected argument 'ipvs'"],
  [['--manifests', '/no/such'], '--manifests /no/such does not exist'],
  [['--mod', 'ipvs'], 'Unknown option --mod (did you mean --mode?)'],
  [['--no-such'], 'Unknown option --no-such'],
  [['--image', 'nothing.tar'], '--image nothing.tar does not exist; npm run image writes one to release/'],
  [['--image', '.', '--mode', 'ipvs'], '--image is not for --mode ipvs'],
])('%j is a mistake', (args, message) => {
  expect(parsed(...args)).toContain(message);
});

test.each([
  [{ npm_config_mode: 'true' }, ['ipvs'], 'npm start -- --mode ipvs'],
  [{ npm_config_mode: 'ipvs', npm_config_once: 'true' }, [], 'npm start -- --mode ipvs --once'],
  [{ npm_config_mode: 'true', npm_config_once: 'true' }, ['ipvs'], 'npm start -- --mode ipvs --once'],
  [{ npm_config_once: 'true' }, ['--layout', 'classic'], 'npm start -- --once --layout classic'],
] as const)('npm kept an option, because the "--" was forgotten: %j %j', (env, args, wanted) => {
  const message = `npm keeps options that come before "--" for itself. Did you mean: ${wanted}`;
  const given = parseOptions(args, { ...env, npm_lifecycle_event: 'start' });
  expect(given).toEqual({ kind: 'mistake', message });
});

test('the help fits a terminal of 80 columns', () => {
  expect(parsed('--help')).toEqual({ kind: 'help' });
  for (const line of HELP.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
});
