import { expect, test } from 'vitest';
import { HELP, parseOptions } from '../../../lab/demo/options.ts';

test.each([
  [[], { mode: 'iptables', layout: 'current', variant: 'auto', once: false }],
  [['--mode=ipvs', '--variant', 'legacy', '--once'], { mode: 'ipvs', variant: 'legacy', once: true }],
  [['--mode', 'nftable'], 'must be one of iptables, ipvs, nftables (did you mean nftables?)'],
  [['--mode', 'ipvs', '--layout', 'classic'], '--layout is for --mode iptables'],
  [['--manifests', '/no/such'], '--manifests /no/such does not exist'],
  [['--mod', 'ipvs'], 'Unknown option --mod (did you mean --mode?)'],
  [['--image', 'nothing.tar'], '--image nothing.tar does not exist; npm run image writes one to release/'],
])('%j', (args, wanted) => {
  const parsed = parseOptions(['--manifests', '.', ...args], {});
  if (typeof wanted === 'string')
    expect(parsed).toEqual({ kind: 'mistake', message: expect.stringContaining(wanted) });
  else expect(parsed).toMatchObject({ kind: 'run', options: wanted });
});

test('npm kept an option, because the "--" was forgotten; the help fits a terminal of 80 columns', () => {
  const npm = { npm_config_mode: 'true', npm_config_once: 'true', npm_lifecycle_event: 'start' };
  const wanted =
    'npm keeps options that come before "--" for itself. Did you mean: npm start -- --mode ipvs --once';
  expect(parseOptions(['ipvs'], npm)).toEqual({ kind: 'mistake', message: wanted });
  expect(HELP.split('\n').filter((line) => line.length > 80)).toEqual([]);
});
