/** Which writer is chosen, by a trial with the iptables of this machine, and with one that writes rules in another way. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FAMILIES } from '../../../../src/model/ip.ts';
import { inside, output } from '../../../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../../system/support/namespace.ts';

let namespace: Namespace;
beforeEach(async (context) => {
  requireNamespaces(context);
  namespace = await openNamespace();
});
afterEach(() => namespace.close());

const IMPORTS = `
  import { mkdtempSync, rmSync } from 'node:fs';
  import { tmpdir } from 'node:os';
  import { join } from 'node:path';
  import { IptablesClient } from './src/modes/iptables/client.ts';
  import { chooseWriter } from './src/modes/iptables/netlink/chooseWriter.ts';
  import { LAYOUTS } from './src/modes/iptables/rules/layouts/index.ts';
  import { withChannel } from './src/netlink/channel.ts';
  import { NETLINK_NETFILTER } from './src/netlink/socket.ts';
  import { run } from './src/system/processes.ts';
  const stateDir = mkdtempSync(join(tmpdir(), 'junction-writer-'));
  process.on('exit', () => rmSync(stateDir, { recursive: true }));
  const programs = [];
  const choose = async (family, iptablesWriter, { variant = 'nft', layout = 'current', change = (text) => text, folder = stateDir } = {}) => {
    const runner = (argv, options) => {
      programs.push(argv[0]);
      return run(argv, options?.stdin ? { ...options, stdin: change(options.stdin) } : options);
    };
    const client = await IptablesClient.open({ family, variant, runner });
    const log = [];
    const error = await withChannel(NETLINK_NETFILTER, (channel) => chooseWriter(client, {
      junction: { iptablesWriter, stateDir: folder }, layout: LAYOUTS[layout], channel,
      log: { info: (message, { writer, reason }) => log.push(writer + ': ' + reason), warn: () => undefined },
    })).catch(({ code, message }) => code + ': ' + message);
    return { isNetlink: client.netlink !== undefined, log, error };
  };
`;

describe.each(FAMILIES)('%s', (family) => {
  it.each(['current', 'classic'])(
    'is netlink where the trial finds no difference, layout %s',
    async (layout) => {
      const chosen = await inside(
        namespace,
        'writer-same',
        `${IMPORTS} console.log(JSON.stringify(await choose('${family}', 'auto', { layout: '${layout}' })));`,
      );
      expect(chosen).toEqual({
        isNetlink: true,
        log: [expect.stringMatching(/^netlink: a trial with iptables \S+ found no difference$/)],
      });
      expect(await output(namespace, 'nft', 'list', 'ruleset')).not.toContain('KUBE-');
    },
  );

  it('is iptables-restore where that writes a rule in another way, and an error where netlink was asked for', async () => {
    const source = `${IMPORTS}
      const change = (text) => text.replaceAll('--probability 0.5', '--probability 0.4').replaceAll('-j MARK --or-mark', '-j MARK --set-mark');
      console.log(JSON.stringify([await choose('${family}', 'auto', { change }), await choose('${family}', 'netlink', { change })]));`;
    expect(await inside(namespace, 'writer-differs', source)).toEqual([
      {
        isNetlink: false,
        log: [expect.stringMatching(/^restore: iptables-restore writes ".*" in another way$/)],
      },
      {
        isNetlink: false,
        log: [],
        error: expect.stringMatching(/^IPTABLES_WRITER_UNUSABLE: .* in another way$/),
      },
    ]);
  });

  it('is not tried again by the same programs until the machine is started again', async () => {
    const source = `${IMPORTS}
      await choose('${family}', 'auto');
      programs.length = 0;
      const again = await choose('${family}', 'auto');
      console.log(JSON.stringify({ ...again, restores: programs.filter((name) => name.includes('restore')).length }));`;
    expect(await inside(namespace, 'writer-known', source)).toMatchObject({ isNetlink: true, restores: 0 });
  });
});

it('is iptables-restore in the legacy variant, and where it is asked for', async () => {
  const source = `${IMPORTS}
    console.log(JSON.stringify([await choose('IPv4', 'auto', { variant: 'legacy' }), await choose('IPv4', 'restore')]));`;
  expect(await inside(namespace, 'writer-restore', source)).toEqual([
    { isNetlink: false, log: ['restore: the legacy variant is not in nf_tables'] },
    { isNetlink: false, log: ['restore: as configured'] },
  ]);
});
